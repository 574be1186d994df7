/** Tensors as nested lists, in the members of /v1/attention. */

import { InputError } from "./dtypes.js";

/** @typedef {import("./dtypes.js").Tensor} Tensor */

const MASKS = ["mask", "key_mask"];
const MOST_AXES = 4;

/**
 * Read what was pasted.
 *
 * @param {string} text
 * @returns {{tensors: Map<string, Tensor>, options: Record<string, any>}} its lists of numbers, and
 *   all other members
 * @throws {InputError} saying what is wrong with it
 */
export function decodeJson(text) {
  const root = parse(text);
  const tensors = new Map();
  /** @type {Record<string, any>} */
  const options = {};
  for (const [name, value] of Object.entries(root)) {
    if (Array.isArray(value) && !isTexts(value)) tensors.set(name, readNested(name, value));
    else options[name] = value;
  }
  return { tensors, options };
}

/** @param {string} text @returns {Record<string, any>} */
function parse(text) {
  let root;
  try {
    root = JSON.parse(text);
  } catch (error) {
    throw new InputError(`not JSON: ${/** @type {Error} */ (error).message}`);
  }
  if (typeof root !== "object" || root === null || Array.isArray(root)) {
    throw new InputError('expected an object such as {"query": [[1, 0], [0, 1]]}');
  }
  return root;
}

/** Whether the first scalar of nested lists is a text. @param {any} value */
function isTexts(value) {
  while (Array.isArray(value)) value = value[0];
  return typeof value === "string";
}

/**
 * @param {string} name
 * @param {any[]} value
 * @returns {Tensor}
 */
function readNested(name, value) {
  const shape = [];
  for (let part = /** @type {any} */ (value); Array.isArray(part); part = part[0])
    shape.push(part.length);
  if (shape.length > MOST_AXES) {
    throw new InputError(`'${name}' is nested ${shape.length} deep, expected ${MOST_AXES} at most`);
  }
  /** @type {any[]} */
  const scalars = [];
  flatten(name, value, shape, scalars);
  const isMask =
    MASKS.includes(name) &&
    scalars.every((one) => one === true || one === false || one === 0 || one === 1);
  if (isMask) return { dtype: "BOOL", shape, data: Uint8Array.from(scalars, Number) };
  if (!scalars.every((one) => typeof one === "number")) {
    throw new InputError(`'${name}' holds something that is no number`);
  }
  return { dtype: "F32", shape, data: Float32Array.from(scalars) };
}

/** @param {string} name @param {any} value @param {number[]} shape @param {any[]} scalars */
function flatten(name, value, shape, scalars) {
  const [size, ...inner] = shape;
  if (!Array.isArray(value) || value.length !== size) {
    throw new InputError(`'${name}' is ragged: lists beside each other must be of one length`);
  }
  if (inner.length === 0) for (const one of value) scalars.push(one);
  else for (const part of value) flatten(name, part, inner, scalars);
}
