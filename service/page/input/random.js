/** Random tensors that come out the same for the same seed. */

/** @typedef {import("../formats/dtypes.js").Tensor} Tensor */

/**
 * @typedef {object} Widths
 * @property {number} d_model
 * @property {number} kdim
 * @property {number} vdim
 */

/**
 * Query [L,D], key [S,kdim] and value [S,vdim], normally distributed. Where the widths allow it and
 * L = S, the query alone: the layer attends to itself.
 *
 * @param {Widths} widths of the model
 * @param {number} queryLength L
 * @param {number} keyLength S
 * @param {number} seed
 * @returns {Map<string, Tensor>}
 */
export function drawTensors(widths, queryLength, keyLength, seed) {
  const draw = makeNormal(seed);
  const { d_model: width, kdim, vdim } = widths;
  const tensors = new Map([["query", drawTensor(draw, queryLength, width)]]);
  if (queryLength === keyLength && kdim === width && vdim === width) return tensors;
  tensors.set("key", drawTensor(draw, keyLength, kdim));
  tensors.set("value", drawTensor(draw, keyLength, vdim));
  return tensors;
}

/** @param {() => number} draw @param {number} tokens @param {number} width @returns {Tensor} */
function drawTensor(draw, tokens, width) {
  const data = Float32Array.from({ length: tokens * width }, draw);
  return { dtype: "F32", shape: [tokens, width], data };
}

/**
 * Normal numbers by the method of Box and Muller (1958).
 *
 * @param {number} seed
 */
function makeNormal(seed) {
  const uniform = makeUniform(seed);
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

/**
 * Numbers in [0, 1): mulberry32 by Tommy Ettinger, in the public domain.
 * https://gist.github.com/tommyettinger/46a874533244883189143505d203312c
 *
 * @param {number} seed
 */
function makeUniform(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}
