/** Keys as a person writes them: "0, 3-7". */

import { InputError } from "../formats/dtypes.js";

/**
 * Read a list.
 *
 * @param {string} text
 * @param {number} keys S, so that 0 to S - 1 are keys
 * @returns {number[]} ascending, each once
 * @throws {InputError} naming what is no key
 */
export function readKeyList(text, keys) {
  const found = new Set();
  for (const part of text.split(/[\s,]+/).filter(Boolean)) {
    const range = /^(\d+)(?:[-–](\d+))?$/.exec(part);
    const [first, last] = range ? [Number(range[1]), Number(range[2] ?? range[1])] : [NaN, NaN];
    if (!(first <= last && last < keys)) {
      throw new InputError(
        `'${part}' is no key; expected numbers from 0 to ${keys - 1}, such as 0, 3-7`,
      );
    }
    for (let key = first; key <= last; key += 1) found.add(key);
  }
  return [...found].sort((a, b) => a - b);
}

/**
 * Write a list, neighbours as ranges.
 *
 * @param {number[]} keys ascending
 */
export function writeKeyList(keys) {
  const parts = [];
  for (let at = 0; at < keys.length;) {
    let end = at;
    while (keys[end + 1] === keys[end] + 1) end += 1;
    parts.push(end === at ? `${keys[at]}` : `${keys[at]}-${keys[end]}`);
    at = end + 1;
  }
  return parts.join(", ");
}
