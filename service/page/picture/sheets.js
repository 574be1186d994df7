/** A matrix coloured in advance, as fine as it is and coarser, so that what moves is only cut out. */

/** @typedef {import("../answer/matrix.js").Matrix} Matrix */
/** @typedef {import("../work.js").Breathe} Breathe */
/** @typedef {import("./colours.js").Paint} Paint */
/** @typedef {import("./view.js").View} View */

/**
 * @typedef {object} Sheet
 * @property {Matrix} matrix each cell the largest of `step` × `step`
 * @property {number} step
 * @property {HTMLCanvasElement | null} canvas a pixel for each cell; null until it is coloured
 */

/** Finer ones are not kept: 2048 × 2048 are 16 MiB of pixels. */
const MOST_CELLS = 2 ** 22;
const LEAST_SIDE = 64;
const SLICE_CELLS = 2 ** 16;

/** The sheets of one matrix. */
export class Sheets {
  /** @type {Sheet[]} the finest first */
  #sheets = [];

  /** @param {Matrix} matrix */
  constructor(matrix) {
    this.matrix = matrix;
  }

  /**
   * Colour all sheets, the coarsest first, in slices.
   *
   * @param {Paint} paint
   * @param {Breathe} breathe
   */
  async colour(paint, breathe) {
    for (const sheet of this.#sheets) sheet.canvas = null;
    if (this.#sheets.length === 0) this.#sheets = await stack(this.matrix, breathe);
    for (const sheet of this.#sheets.toReversed()) {
      if (sheet.matrix.data.length > MOST_CELLS) continue;
      sheet.canvas = await colourSheet(sheet.matrix, paint, breathe);
    }
  }

  /**
   * Draw a part. Where there are more cells than pixels, the next coarser sheet is taken: a peak
   * grows by less than a pixel on each side, and none is lost.
   *
   * @param {CanvasRenderingContext2D} context
   * @param {View} view
   * @param {{x: number, y: number, width: number, height: number}} place in pixels
   * @returns {"none" | "rough" | "exact"} what could be drawn
   */
  draw(context, view, place) {
    const pitch = Math.max(view.columns / place.width, view.rows / place.height);
    const ready = this.#sheets.filter(({ canvas }) => canvas);
    const sheet = ready.find(({ step }) => pitch <= step) ?? ready[ready.length - 1];
    if (!sheet?.canvas) return "none";
    const { canvas, step } = sheet;
    context.imageSmoothingEnabled = false;
    context.drawImage(
      canvas,
      ...[view.left / step, view.top / step, view.columns / step, view.rows / step],
      ...[place.x, place.y, place.width, place.height],
    );
    return step === 1 && pitch <= 1 ? "exact" : "rough";
  }
}

/** @param {Matrix} matrix @param {Breathe} breathe */
async function stack(matrix, breathe) {
  /** @type {Sheet[]} */
  const sheets = [{ matrix, step: 1, canvas: null }];
  let { rows, columns } = matrix;
  for (let step = 2; Math.max(rows, columns) > LEAST_SIDE; step *= 2) {
    matrix = await halve(matrix, breathe);
    ({ rows, columns } = matrix);
    sheets.push({ matrix, step, canvas: null });
  }
  return sheets;
}

/** @param {Matrix} matrix @param {Breathe} breathe @returns {Promise<Matrix>} */
async function halve({ data, rows, columns }, breathe) {
  const half = { rows: Math.ceil(rows / 2), columns: Math.ceil(columns / 2) };
  const largest = new Float32Array(half.rows * half.columns);
  for (let row = 0; row < half.rows; row += 1) {
    const upper = data.subarray(2 * row * columns, (2 * row + 1) * columns);
    const start = Math.min(2 * row + 1, rows - 1) * columns;
    const lower = data.subarray(start, start + columns);
    joinRows(upper, lower, largest.subarray(row * half.columns, (row + 1) * half.columns));
    await breathe();
  }
  return { data: largest, ...half };
}

/** @param {Float32Array} upper @param {Float32Array} lower @param {Float32Array} target */
function joinRows(upper, lower, target) {
  const last = upper.length - 1;
  for (let at = 0; at < target.length; at += 1) {
    const left = 2 * at;
    const right = left < last ? left + 1 : left;
    const above = takeLarger(upper[left], upper[right]);
    target[at] = takeLarger(above, takeLarger(lower[left], lower[right]));
  }
}

/** What is no number is shown, too, however small the picture. */
/** @param {number} a @param {number} b */
const takeLarger = (a, b) => (a >= b || a !== a ? a : b);

/** @param {Matrix} matrix @param {Paint} paint @param {Breathe} breathe */
async function colourSheet({ data, rows, columns }, paint, breathe) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [columns, rows];
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const most = Math.max(1, Math.floor(SLICE_CELLS / columns));
  for (let row = 0; row < rows; row += most) {
    const values = data.subarray(row * columns, Math.min(rows, row + most) * columns);
    const pixels = new Uint8ClampedArray(paint(values).buffer);
    context.putImageData(new ImageData(pixels, columns), 0, row);
    await breathe();
  }
  return canvas;
}
