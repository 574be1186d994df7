/** One head's weights: a matrix with a row for each query and a column for each key. */

/**
 * @typedef {object} Matrix
 * @property {Float32Array} data [L,S], row by row
 * @property {number} rows L
 * @property {number} columns S
 */

/** One row. @param {Matrix} matrix @param {number} row @returns {Float32Array} [S] */
export const pickRow = ({ data, columns }, row) =>
  data.subarray(row * columns, (row + 1) * columns);

/**
 * The largest weight and the smallest above 0; NaN counts as neither.
 *
 * @param {{data: Float32Array}} matrix or a row of one
 * @returns {{high: number, low: number}} both 0 where all weights are
 */
export function findRange({ data }) {
  let high = 0;
  let low = Infinity;
  for (let at = 0; at < data.length; at += 1) {
    const value = data[at];
    if (value > high) high = value;
    if (value > 0 && value < low) low = value;
  }
  return { high, low: high ? low : 0 };
}

/**
 * The entropy of one row: 0 where one key has all the weight, log2 S where all have the same. Of
 * several rows it is the sum.
 *
 * @param {Float32Array} row [S]
 * @returns {number} in bits; NaN where a weight is
 */
export function measureEntropy(row) {
  let bits = 0;
  for (let key = 0; key < row.length; key += 1) {
    if (row[key] !== 0) bits -= row[key] * Math.log2(row[key]);
  }
  return bits;
}

/**
 * The place of a key among those of its row: 1 for the largest weight; equal weights share a place.
 *
 * @param {Float32Array} row [S]
 * @param {number} key
 */
export function findRank(row, key) {
  let rank = 1;
  for (let other = 0; other < row.length; other += 1) if (row[other] > row[key]) rank += 1;
  return rank;
}

/**
 * The keys with the largest weights, the largest first.
 *
 * @param {Float32Array} row [S]
 * @param {number} count
 */
export function findLargest(row, count) {
  /** @type {number[]} */
  const found = [];
  for (let key = 0; key < row.length; key += 1) {
    if (found.length === count && !(row[key] > row[found[count - 1]])) continue;
    const place = found.findIndex((other) => row[key] > row[other]);
    found.splice(place < 0 ? found.length : place, 0, key);
    found.length = Math.min(found.length, count);
  }
  return found;
}
