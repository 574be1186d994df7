/** From cells to pixels. */

/** @typedef {import("../answer/matrix.js").Matrix} Matrix */
/** @typedef {import("./view.js").View} View */

/**
 * The weight of each pixel: that of its cell or, where several cells share a pixel, the largest, so
 * that no peak is lost however small the picture.
 *
 * @param {Matrix} matrix
 * @param {View} view
 * @param {number} width in pixels
 * @param {number} height in pixels
 * @returns {Float32Array} [height, width]
 */
export function sample({ data, columns, rows }, view, width, height) {
  const values = new Float32Array(width * height);
  const across = divide(view.left, view.columns, width, columns);
  const down = divide(view.top, view.rows, height, rows);
  const isOneToOne = across.every((start, x) => x === width || across[x + 1] - start <= 1);
  for (let y = 0; y < height; y += 1) {
    const target = values.subarray(y * width, (y + 1) * width);
    if (y > 0 && down[y] === down[y - 1] && down[y + 1] === down[y]) {
      target.set(values.subarray((y - 1) * width, y * width));
      continue;
    }
    const end = Math.max(down[y] + 1, down[y + 1]);
    for (let row = down[y]; row < end; row += 1) {
      const source = data.subarray(row * columns, (row + 1) * columns);
      if (isOneToOne && row === down[y])
        for (let x = 0; x < width; x += 1) target[x] = source[across[x]];
      else takeLargest(source, across, target, row === down[y]);
    }
  }
  return values;
}

/** @param {Float32Array} source @param {Int32Array} across @param {Float32Array} target @param {boolean} isFirst */
function takeLargest(source, across, target, isFirst) {
  for (let x = 0; x < target.length; x += 1) {
    let at = across[x];
    let largest = isFirst ? source[at] : target[x];
    const end = Math.max(at + 1, across[x + 1]);
    for (; at < end; at += 1) {
      const value = source[at];
      if (value > largest || value !== value) largest = value;
    }
    target[x] = largest;
  }
}

/**
 * The first cell of each pixel, and the one behind the last.
 *
 * @param {number} start
 * @param {number} length in cells
 * @param {number} pixels
 * @param {number} cells that there are
 */
function divide(start, length, pixels, cells) {
  const edges = Int32Array.from({ length: pixels + 1 }, (_, at) => {
    return Math.min(cells, Math.floor(start + (at * length) / pixels + 1e-9));
  });
  for (let at = 0; at < pixels; at += 1) edges[at] = Math.min(edges[at], cells - 1);
  return edges;
}
