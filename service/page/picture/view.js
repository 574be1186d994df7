/** The part of a matrix that is looked at, in cells; fractions of cells are allowed. */

/**
 * @typedef {object} View
 * @property {number} left first column
 * @property {number} top first row
 * @property {number} columns
 * @property {number} rows
 */

/** @typedef {{rows: number, columns: number}} Size of a matrix */

const LEAST_CELLS = 4;

/** All of a matrix. @param {Size} size @returns {View} */
export const showAll = ({ rows, columns }) => ({ left: 0, top: 0, columns, rows });

/** Whether a view is all of a matrix. @param {View} view @param {Size} size */
export const isAll = (view, size) => view.columns >= size.columns && view.rows >= size.rows;

/**
 * Come nearer, or go back.
 *
 * @param {View} view
 * @param {Size} size
 * @param {number} factor above 1 to come nearer
 * @param {{x: number, y: number}} anchor what stays in its place, 0 to 1 across the view
 * @returns {View}
 */
export function zoom(view, size, factor, anchor = { x: 0.5, y: 0.5 }) {
  const least = Math.max(
    Math.min(LEAST_CELLS, size.columns) / size.columns,
    Math.min(LEAST_CELLS, size.rows) / size.rows,
  );
  const share = Math.min(1, Math.max(least, view.columns / size.columns / factor));
  const columns = size.columns * share;
  const rows = size.rows * share;
  const left = view.left + (view.columns - columns) * anchor.x;
  const top = view.top + (view.rows - rows) * anchor.y;
  return keepWithin({ left, top, columns, rows }, size);
}

/**
 * Move by so many cells.
 *
 * @param {View} view
 * @param {Size} size
 * @param {number} columns to the right
 * @param {number} rows down
 * @returns {View}
 */
export function pan(view, size, columns, rows) {
  return keepWithin({ ...view, left: view.left + columns, top: view.top + rows }, size);
}

/**
 * Move just so far that a cell is in sight.
 *
 * @param {View} view
 * @param {Size} size
 * @param {{query: number, key: number}} cell
 * @returns {View}
 */
export function reveal(view, size, { query, key }) {
  const left = Math.min(key, Math.max(view.left, key + 1 - view.columns));
  const top = Math.min(query, Math.max(view.top, query + 1 - view.rows));
  return keepWithin({ ...view, left, top }, size);
}

/** @param {View} view @param {Size} size @returns {View} */
function keepWithin(view, size) {
  const left = Math.min(size.columns - view.columns, Math.max(0, view.left));
  const top = Math.min(size.rows - view.rows, Math.max(0, view.top));
  return { ...view, left, top };
}
