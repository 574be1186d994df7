/** From weights to colours, by a table: a logarithm for each weight took half the time of a frame. */

import { COLOURS } from "./viridis.js";

/** @typedef {import("./scale.js").Scale} Scale */

/**
 * Colours as pixels: R, G, B and A in memory.
 *
 * @typedef {object} Palette
 * @property {Uint32Array} map of 256
 * @property {number} zero of weights that are exactly 0
 * @property {number} nan of what is no number
 */

/** @typedef {(values: Float32Array) => Uint32Array<ArrayBuffer>} Paint as many pixels as weights */

/**
 * Choose the colours of a scale. Exactly 0 has a colour of its own, which is not in the map: what is
 * hidden is not just small.
 *
 * @param {Scale} scale
 * @param {Palette} palette
 * @returns {Paint}
 */
export function makePaint(scale, { map, zero, nan }) {
  const starts = findStarts(scale);
  const least = findLeast(starts);
  return (values) => {
    const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
    const pixels = new Uint32Array(values.length);
    for (let at = 0; at < values.length; at += 1) {
      const value = values[at];
      if (value > 0) {
        let index = least[bits[at] >>> 16];
        while (value >= starts[index + 1]) index += 1;
        pixels[at] = map[index];
      } else pixels[at] = value === 0 ? zero : nan;
    }
    return pixels;
  };
}

/** The weight that each colour begins with; that of the last is without end. */
/** @param {Scale} scale */
function findStarts({ kind, low, high }) {
  const starts = Float64Array.from({ length: COLOURS + 1 }, (_, index) => {
    const share = index / COLOURS;
    return kind === "linear" ? high * share : low * (high / low) ** share;
  });
  starts[COLOURS] = Infinity;
  return starts;
}

/** The colour that a float32 has at least, by the upper half of its bits. */
/** @param {Float64Array} starts */
function findLeast(starts) {
  const float = new Float32Array(1);
  const bits = new Uint32Array(float.buffer);
  const least = new Uint8Array(2 ** 15);
  let index = 0;
  for (let half = 0; half < least.length; half += 1) {
    bits[0] = half << 16;
    while (float[0] >= starts[index + 1] && index < COLOURS - 1) index += 1;
    least[half] = index;
  }
  return least;
}
