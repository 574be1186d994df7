/** Tensors as literals of a programming language. */

import { countElements, writeFloat32 } from "../formats/dtypes.js";

/** @typedef {import("../formats/dtypes.js").Tensor} Tensor */
/** @typedef {{true: string, false: string}} Words of a language */

/** The most numbers that code holds; of more, it reads a file. */
const MOST_NUMBERS = 2048;

/** @type {Words} */
export const JSON_WORDS = { true: "true", false: "false" };
/** @type {Words} */
export const PYTHON_WORDS = { true: "True", false: "False" };

/** Whether tensors are small enough to be written out, and finite, as JSON wants. @param {Map<string, Tensor>} tensors */
export function areLiteral(tensors) {
  const all = [...tensors.values()];
  const count = all.reduce((sum, { shape }) => sum + countElements(shape), 0);
  return (
    count <= MOST_NUMBERS &&
    all.every(({ data }) => Array.from(data, Number).every(Number.isFinite))
  );
}

/**
 * Nested lists, each of the innermost on a line of its own.
 *
 * @param {Tensor} tensor
 * @param {Words} words
 * @returns {string}
 */
export function writeNested({ dtype, shape, data }, words) {
  const write = (/** @type {number | bigint} */ value) => {
    if (dtype === "BOOL") return value ? words.true : words.false;
    return dtype === "F32" ? writeFloat32(Number(value)) : String(value);
  };
  let parts = Array.from(/** @type {Iterable<number | bigint>} */ (data), write);
  let gap = ", ";
  for (const size of [...shape].reverse()) {
    const lists = [];
    for (let at = 0; at < parts.length; at += size) {
      lists.push(`[${parts.slice(at, at + size).join(gap)}]`);
    }
    parts = lists;
    gap = ",\n    ";
  }
  return parts[0];
}
