/** The large picture: cells, axes and legend, on the screen and in a PNG alike. */

import { drawAxes } from "./axes.js";
import { drawLegend } from "./legend.js";
import { sample } from "./sample.js";

/** @typedef {import("../answer/matrix.js").Matrix} Matrix */

/**
 * @typedef {object} Figure
 * @property {Matrix} matrix
 * @property {import("./view.js").View} view
 * @property {import("./layout.js").Layout} layout
 * @property {import("./scale.js").Scale} scale
 * @property {import("./colours.js").Paint} paint the colours of the scale
 * @property {import("./palette.js").Inks} inks
 * @property {{rows: string[], columns: string[]}} labels
 * @property {Set<number>} hidden keys that are switched off
 */

const GRID_FROM = 14;

/** @typedef {{x: number, y: number, width: number, height: number}} Place in device pixels */

/**
 * Draw all of it.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {Figure} figure
 * @param {number} ratio device pixels in a CSS pixel
 * @param {object} [options]
 * @param {number} [options.top] CSS pixels to leave free above
 * @param {(place: Place) => void} [options.fill] draws the cells in another way
 */
export function drawFigure(context, figure, ratio, { top = 0, fill } = {}) {
  const { layout, inks } = figure;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = inks.surface;
  context.fillRect(0, 0, layout.width, layout.height + top);
  context.resetTransform();
  const place = findCells(layout, ratio, top);
  if (fill) fill(place);
  else drawCells(context, place, figure.paint(sampleFigure(figure, place)));
  context.setTransform(ratio, 0, 0, ratio, 0, top * ratio);
  drawGrid(context, figure);
  drawAxes(context, layout, figure.view, figure.labels, figure.hidden, inks);
  drawLegend(context, layout, figure.scale, inks);
}

/**
 * Where the cells are.
 *
 * @param {import("./layout.js").Layout} layout
 * @param {number} ratio
 * @param {number} [top]
 * @returns {Place}
 */
export function findCells({ plot }, ratio, top = 0) {
  return {
    x: Math.round(plot.x * ratio),
    y: Math.round((plot.y + top) * ratio),
    width: Math.round(plot.width * ratio),
    height: Math.round(plot.height * ratio),
  };
}

/** The weight of each pixel. @param {Figure} figure @param {Place} place */
export const sampleFigure = ({ matrix, view }, { width, height }) =>
  sample(matrix, view, width, height);

/**
 * Draw the cells.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {Place} place
 * @param {Uint32Array<ArrayBuffer>} pixels
 */
export function drawCells(context, { x, y, width, height }, pixels) {
  context.putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer), width, height), x, y);
}

/** Lines between cells that are large enough to have some. */
/** @param {CanvasRenderingContext2D} context @param {Figure} figure */
function drawGrid(context, { layout: { plot }, view, inks }) {
  const [across, down] = [plot.width / view.columns, plot.height / view.rows];
  context.fillStyle = inks.surface;
  if (across < GRID_FROM || down < GRID_FROM) return;
  for (let column = Math.ceil(view.left + 0.01); column < view.left + view.columns; column += 1) {
    context.fillRect(Math.round(plot.x + (column - view.left) * across), plot.y, 1, plot.height);
  }
  for (let row = Math.ceil(view.top + 0.01); row < view.top + view.rows; row += 1) {
    context.fillRect(plot.x, Math.round(plot.y + (row - view.top) * down), plot.width, 1);
  }
}
