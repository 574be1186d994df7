/** Where the parts of the large picture are, in CSS pixels. */

/**
 * @typedef {object} Layout
 * @property {number} width of the whole
 * @property {number} height of the whole
 * @property {{x: number, y: number, width: number, height: number}} plot the cells
 * @property {boolean} slanted whether the words above the columns are
 */

/** @typedef {import("./view.js").View} View */

export const SLANT = (-50 * Math.PI) / 180;
export const FONT = "11px system-ui, sans-serif";
const LEGEND = 72;
const TITLE = 16;
const GAP = 8;
const BOTTOM = 6;
const LONGEST_WORD = 92;
const LONGEST_SIDE = 3;

/**
 * Find room for everything.
 *
 * @param {object} wish
 * @param {number} wish.width that there is
 * @param {number} wish.height that there is
 * @param {View} wish.view
 * @param {number} wish.rowWords the width of the widest word beside a row
 * @param {number} wish.columnWords the width of the widest word above a column; 0 for numbers
 * @returns {Layout}
 */
export function layOut({ width, height, view, rowWords, columnWords }) {
  const x = TITLE + Math.min(LONGEST_WORD, rowWords) + GAP;
  const flat = placePlot(width, height, view, x, TITLE + 14 + GAP);
  if (!columnWords || columnWords <= flat.width / view.columns - 6)
    return finish(width, flat, false);
  const rise = -Math.sin(SLANT) * Math.min(LONGEST_WORD, columnWords) + 8;
  return finish(width, placePlot(width, height, view, x, TITLE + rise + GAP), true);
}

/** @param {number} width @param {number} height @param {View} view @param {number} x @param {number} y */
function placePlot(width, height, view, x, y) {
  const most = { width: width - x - LEGEND, height: height - y - BOTTOM };
  const ratio = Math.min(LONGEST_SIDE, Math.max(1 / LONGEST_SIDE, view.rows / view.columns));
  const side = Math.min(most.width, most.height / ratio);
  return {
    x: Math.round(x),
    y: Math.round(y),
    width: fitCells(side, view.columns),
    height: fitCells(side * ratio, view.rows),
  };
}

/** Cells of whole pixels, where they are large enough to be seen. @param {number} length @param {number} cells */
function fitCells(length, cells) {
  const least = Math.max(16, Math.floor(length));
  const isWhole = Number.isInteger(cells) && least / cells >= 4;
  return isWhole ? Math.floor(least / cells) * cells : least;
}

/** @param {number} width @param {Layout["plot"]} plot @param {boolean} slanted @returns {Layout} */
const finish = (width, plot, slanted) => ({
  width,
  height: plot.y + plot.height + BOTTOM,
  plot,
  slanted,
});

/** The widest of some words. @param {CanvasRenderingContext2D} context @param {string[]} words */
export function measureWidest(context, words) {
  context.font = FONT;
  return Math.ceil(
    words.reduce((most, word) => Math.max(most, context.measureText(word).width), 0),
  );
}

/**
 * A word that is not wider than there is room, its end left out if need be.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {string} word
 */
export function shorten(context, word) {
  if (context.measureText(word).width <= LONGEST_WORD) return word;
  let length = word.length;
  while (length > 1 && context.measureText(`${word.slice(0, length)}…`).width > LONGEST_WORD)
    length -= 1;
  return `${word.slice(0, length)}…`;
}
