/** A file that was opened or dropped: which format it has, told by its first bytes. */

import { InputError } from "./dtypes.js";
import { decodeJson } from "./json.js";
import { decodeNpy, isNpy } from "./npy.js";
import { decodeNpz } from "./npz.js";
import { decodeSafetensors } from "./safetensors.js";
import { isZip } from "./zip.js";

/** @typedef {import("./dtypes.js").Tensor} Tensor */

/**
 * What a file holds.
 *
 * @typedef {object} Contents
 * @property {Map<string, Tensor>} tensors by name
 * @property {Record<string, any>} options `labels`, `key_labels`, `causal` and whatever else it says
 */

/**
 * Read a file.
 *
 * @param {ArrayBuffer} buffer
 * @returns {Promise<Contents>}
 * @throws {InputError} saying what is wrong with it
 */
export async function readFile(buffer) {
  const bytes = new Uint8Array(buffer);
  if (isZip(bytes)) {
    const { tensors, texts } = await decodeNpz(buffer);
    return { tensors, options: Object.fromEntries(texts) };
  }
  if (isNpy(bytes)) return readQuery(bytes);
  if (bytes[8] === 0x7b && bytes.subarray(0, 8).includes(0)) return readSafetensors(buffer);
  return decodeJson(new TextDecoder().decode(bytes));
}

/** An array without a name is the query: key and value are the same where they are absent. */
/** @param {Uint8Array} bytes @returns {Contents} */
function readQuery(bytes) {
  const array = decodeNpy(bytes);
  if (!("tensor" in array)) throw new InputError("the .npy holds texts, expected numbers");
  return { tensors: new Map([["query", array.tensor]]), options: {} };
}

/**
 * Read a safetensors file; in its metadata, which holds texts alone, lists are JSON.
 *
 * @param {ArrayBuffer} buffer
 * @returns {Contents}
 */
export function readSafetensors(buffer) {
  const { tensors, notes } = decodeSafetensors(buffer);
  const options = Object.fromEntries(
    Object.entries(notes).map(([name, text]) => [name, readNote(text)]),
  );
  return { tensors, options };
}

/** @param {string} text */
function readNote(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
