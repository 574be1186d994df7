/** The cells of the large picture: cut out of sheets while they move, exact once they rest. */

import { drawCells, drawFigure, findCells, sampleFigure } from "../picture/figure.js";
import { Sheets } from "../picture/sheets.js";
import { Work } from "../work.js";
import { readRatio, resize } from "./canvas.js";

/** @typedef {import("../picture/figure.js").Figure} Figure */
/** @typedef {import("../picture/figure.js").Place} Place */

const REST_MS = 120;

/** Draws figures on a canvas. */
export class Cells {
  /** @type {Figure | null} */
  #last = null;
  #sheets = new Sheets({ data: new Float32Array(), rows: 0, columns: 0 });
  #colouring = new Work();
  /** @type {{key: string, data: Float32Array, values: Float32Array} | null} */
  #sampled = null;
  #rest = 0;

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
  }

  /** Draw a figure instead of the last. @param {Figure} figure */
  show(figure) {
    const last = this.#last;
    this.#last = figure;
    const isSame = last?.matrix === figure.matrix && last.paint === figure.paint;
    if (!isSame) this.#prepare(figure);
    this.#draw(figure, isSame && last.view !== figure.view);
  }

  /** @param {Figure} figure @param {boolean} isMoving */
  #draw(figure, isMoving) {
    const { layout, view } = figure;
    const ratio = readRatio();
    const context = resize(this.canvas, layout.width, layout.height);
    let drawn = "none";
    const fill = (/** @type {Place} */ place) => {
      if (isMoving) drawn = this.#sheets.draw(context, view, place);
      if (drawn === "none") drawCells(context, place, figure.paint(this.#sample(figure, place)));
    };
    drawFigure(context, figure, ratio, { fill });
    this.canvas.dataset.plot = JSON.stringify(findCells(layout, ratio));
    this.canvas.dataset.view = JSON.stringify(view);
    this.canvas.dataset.drawn = drawn === "rough" ? "rough" : "exact";
    clearTimeout(this.#rest);
    if (drawn === "rough") this.#rest = setTimeout(() => this.#draw(figure, false), REST_MS);
  }

  /** The weights of pixels, which stay when their colours change. */
  /** @param {Figure} figure @param {Place} place */
  #sample(figure, place) {
    const { data } = figure.matrix;
    const key = JSON.stringify([figure.view, place]);
    if (this.#sampled?.data !== data || this.#sampled.key !== key) {
      this.#sampled = { key, data, values: sampleFigure(figure, place) };
    }
    return this.#sampled.values;
  }

  /** @param {Figure} figure */
  #prepare({ matrix, paint }) {
    if (this.#sheets.matrix !== matrix) this.#sheets = new Sheets(matrix);
    this.canvas.dataset.sheets = "none";
    return this.#colouring.start(async (breathe) => {
      await this.#sheets.colour(paint, breathe);
      this.canvas.dataset.sheets = "coloured";
    });
  }
}
