/** The words and numbers beside the rows and above the columns. */

import { FONT, shorten, SLANT } from "./layout.js";
import { chooseStep } from "./scale.js";

/** @typedef {import("./layout.js").Layout} Layout */
/** @typedef {import("./palette.js").Inks} Inks */
/** @typedef {import("./view.js").View} View */

const LEAST_GAP = 13;

/**
 * Draw both axes.
 *
 * @param {CanvasRenderingContext2D} context in CSS pixels
 * @param {Layout} layout
 * @param {View} view
 * @param {{rows: string[], columns: string[]}} labels empty where there are none
 * @param {Set<number>} hidden columns that are switched off
 * @param {Inks} inks
 */
export function drawAxes(context, layout, view, labels, hidden, inks) {
  context.font = FONT;
  drawTitles(context, layout.plot, inks);
  drawRows(context, layout, view, labels.rows, inks);
  drawColumns(context, layout, view, labels.columns, hidden, inks);
}

/** @param {CanvasRenderingContext2D} context @param {Layout["plot"]} plot @param {Inks} inks */
function drawTitles(context, plot, inks) {
  context.fillStyle = inks.muted;
  context.textAlign = "center";
  context.textBaseline = "top";
  context.fillText("key", plot.x + plot.width / 2, 0);
  context.save();
  context.translate(0, plot.y + plot.height / 2);
  context.rotate(-Math.PI / 2);
  context.fillText("query", 0, 0);
  context.restore();
}

/** @param {CanvasRenderingContext2D} context @param {Layout} layout @param {View} view @param {string[]} words @param {Inks} inks */
function drawRows(context, { plot }, view, words, inks) {
  const cell = plot.height / view.rows;
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.fillStyle = inks.ink;
  for (const row of chooseMarks(view.top, view.rows, cell, words.length > 0)) {
    const y = plot.y + (row + 0.5 - view.top) * cell;
    context.fillText(shorten(context, words[row] ?? String(row)), plot.x - 6, y);
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Layout} layout
 * @param {View} view
 * @param {string[]} words
 * @param {Set<number>} hidden
 * @param {Inks} inks
 */
function drawColumns(context, { plot, slanted }, view, words, hidden, inks) {
  const cell = plot.width / view.columns;
  const isDense = words.length > 0 || slanted;
  context.textAlign = slanted ? "left" : "center";
  for (const column of chooseMarks(view.left, view.columns, isDense ? cell : cell / 2.5, isDense)) {
    const word = shorten(context, words[column] ?? String(column));
    context.fillStyle = hidden.has(column) ? inks.muted : inks.ink;
    context.save();
    context.translate(plot.x + (column + 0.5 - view.left) * cell, plot.y - 6);
    if (slanted) context.rotate(SLANT);
    context.textBaseline = slanted ? "middle" : "bottom";
    context.fillText(word, 0, 0);
    if (hidden.has(column)) strike(context, word, slanted);
    context.restore();
  }
}

/** @param {CanvasRenderingContext2D} context @param {string} word @param {boolean} slanted */
function strike(context, word, slanted) {
  const width = context.measureText(word).width;
  context.fillRect(slanted ? 0 : -width / 2, slanted ? -0.5 : -6, width, 1);
}

/**
 * Which rows or columns are named: all of them, or as many as there is room for.
 *
 * @param {number} start first cell in sight
 * @param {number} length cells in sight
 * @param {number} cell its size in pixels
 * @param {boolean} isDense whether words are named one by one, not in round numbers
 */
function chooseMarks(start, length, cell, isDense) {
  const least = LEAST_GAP / cell;
  const step = least <= 1 ? 1 : isDense ? Math.ceil(least) : chooseStep(least * 2);
  const marks = [];
  const end = start + length;
  for (let at = Math.ceil((start - 0.5) / step) * step; at + 0.5 < end; at += step) {
    if (at + 0.5 >= start) marks.push(at);
  }
  return marks;
}
