/** One head large: shown, pointed at, and moved about in. */

import { measureWidest, layOut } from "../picture/layout.js";
import { makePaint } from "../picture/colours.js";
import { drawMarks } from "../picture/marks.js";
import { makePalette, readInks } from "../picture/palette.js";
import { nameHead, pickHidden, pickLabels, pickMatrix, pickScale } from "../shown.js";
import { getContext, resize } from "./canvas.js";
import { Cells } from "./cells.js";
import { find } from "./elements.js";
import { bindKeyboard } from "./keyboard.js";
import { bindPointer } from "./pointer.js";

/** @typedef {import("../store.js").State} State */
/** @typedef {import("../store.js").Store} Store */
/** @typedef {import("../session.js").Session} Session */
/** @typedef {import("../picture/figure.js").Figure} Figure */

const LEAST_HEIGHT = 300;
const MOST_HEIGHT = 980;
const AROUND = 352;

/** Shows the large picture, on two canvases: marks move while the cells stay. */
export class HeatMap {
  /** @type {Figure | null} what is shown now */
  figure = null;
  #frame = find("heat-map");
  #cells = new Cells(find("cells"));
  /** @type {HTMLCanvasElement} */
  #marks = find("marks");
  /** @type {import("../picture/colours.js").Paint} */
  #paint = () => new Uint32Array();
  #paintKey = "";
  /** @type {WeakMap<string[], number>} */
  #widths = new WeakMap();

  /** @param {Store} store @param {Session} session */
  constructor(store, session) {
    bindPointer(this.#marks, store, session, this);
    bindKeyboard(this.#marks, store, session);
    const parts = /** @type {(keyof State)[]} */ ([
      "answer",
      "item",
      "head",
      "view",
      "scale",
      "range",
      "input",
      "hidden",
    ]);
    store.watch(parts, (state) => this.#show(state));
    store.watch(["cell", "hover"], (state) => this.#point(state));
    const redraw = () => store.set({ view: store.state.view });
    new ResizeObserver(redraw).observe(this.#frame);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  }

  /** @param {State} state */
  #show(state) {
    if (!state.answer) return;
    this.figure = this.#compose(state);
    this.#cells.show(this.figure);
    this.#cells.canvas.dataset.head = String(state.head);
    const { matrix, layout } = this.figure;
    this.#marks.setAttribute(
      "aria-label",
      `${nameHead(state.head)}: ${matrix.rows} queries by ${matrix.columns} keys`,
    );
    resize(this.#marks, layout.width, layout.height);
    this.#point(state);
  }

  /** @param {State} state @returns {Figure} */
  #compose(state) {
    const answer = /** @type {import("../answer/answer.js").Answer} */ (state.answer);
    const matrix = pickMatrix(state, answer);
    const labels = pickLabels(state);
    const layout = layOut({
      width: this.#frame.clientWidth,
      height: Math.min(MOST_HEIGHT, Math.max(LEAST_HEIGHT, window.innerHeight - AROUND)),
      view: state.view,
      rowWords: this.#measure(labels.rows.length ? labels.rows : [String(matrix.rows - 1)]),
      columnWords: this.#measure(labels.columns),
    });
    const scale = pickScale(state, answer, state.head);
    const inks = readInks();
    const paint = this.#choosePaint(scale, inks);
    return {
      ...{ matrix, view: state.view, layout, scale, paint, inks, labels },
      hidden: pickHidden(state),
    };
  }

  /** The width of the widest of some words, which are measured once. @param {string[]} words */
  #measure(words) {
    const found = this.#widths.get(words) ?? measureWidest(getContext(this.#marks), words);
    this.#widths.set(words, found);
    return found;
  }

  /** @param {import("../picture/scale.js").Scale} scale @param {import("../picture/palette.js").Inks} inks */
  #choosePaint(scale, inks) {
    const key = JSON.stringify([scale, inks]);
    if (key !== this.#paintKey) this.#paint = makePaint(scale, makePalette(inks));
    this.#paintKey = key;
    return this.#paint;
  }

  /** @param {State} state */
  #point({ cell, hover }) {
    if (!this.figure) return;
    const context = getContext(this.#marks);
    context.clearRect(0, 0, this.figure.layout.width, this.figure.layout.height);
    drawMarks(context, this.figure.layout, this.figure.view, hover ?? cell);
  }

  /**
   * What is at a place of the picture.
   *
   * @param {number} x in CSS pixels
   * @param {number} y in CSS pixels
   * @returns {{query: number, key: number, part: "cells" | "keys"} | null} a cell, or the name of a
   *   key above the cells
   */
  locate(x, y) {
    if (!this.figure) return null;
    const {
      layout: { plot },
      view,
      matrix,
    } = this.figure;
    const key = Math.floor(view.left + ((x - plot.x) / plot.width) * view.columns);
    const query = Math.floor(view.top + ((y - plot.y) / plot.height) * view.rows);
    if (x < plot.x || x >= plot.x + plot.width || key >= matrix.columns) return null;
    if (y < plot.y) return { query: 0, key, part: "keys" };
    return y < plot.y + plot.height && query < matrix.rows ? { query, key, part: "cells" } : null;
  }
}
