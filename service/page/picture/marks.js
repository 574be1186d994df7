/** What points at a cell: its row, its column, and itself. They lie on a canvas of their own. */

/** @typedef {import("./layout.js").Layout} Layout */
/** @typedef {import("./view.js").View} View */

/**
 * Draw the marks of a cell.
 *
 * @param {CanvasRenderingContext2D} context in CSS pixels, empty
 * @param {Layout} layout
 * @param {View} view
 * @param {{query: number, key: number}} cell
 */
export function drawMarks(context, { plot }, view, { query, key }) {
  const width = plot.width / view.columns;
  const height = plot.height / view.rows;
  const x = plot.x + (key - view.left) * width;
  const y = plot.y + (query - view.top) * height;
  context.save();
  context.beginPath();
  context.rect(plot.x - 1, plot.y - 1, plot.width + 2, plot.height + 2);
  context.clip();
  outline(context, plot.x, y, plot.width, height, 0.55);
  outline(context, x, plot.y, width, plot.height, 0.3);
  outline(context, x, y, width, height, 1);
  context.restore();
}

/** White within dark: to be seen on every colour. */
/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {number} height
 * @param {number} strength 0 to 1
 */
function outline(context, x, y, width, height, strength) {
  const [w, h] = [Math.max(3, width), Math.max(3, height)];
  context.globalAlpha = strength;
  context.strokeStyle = "#000";
  context.lineWidth = strength === 1 ? 3 : 2;
  context.strokeRect(x, y, w, h);
  context.strokeStyle = "#fff";
  context.lineWidth = strength === 1 ? 1.5 : 1;
  context.strokeRect(x, y, w, h);
}
