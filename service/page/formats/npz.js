/** numpy's .npz: an archive of .npy files. */

import { InputError } from "./dtypes.js";
import { decodeNpy, encodeNpy } from "./npy.js";
import { readZip, writeZip } from "./zip.js";

/** @typedef {import("./dtypes.js").Tensor} Tensor */

/**
 * Read an archive.
 *
 * @param {ArrayBuffer} buffer
 * @returns {Promise<{tensors: Map<string, Tensor>, texts: Map<string, string[]>}>} its arrays of
 *   numbers and those of texts, by name
 * @throws {InputError} naming the array that cannot be read
 */
export async function decodeNpz(buffer) {
  const tensors = new Map();
  const texts = new Map();
  for (const [file, bytes] of await readZip(buffer)) {
    const name = file.replace(/\.npy$/, "");
    try {
      const array = decodeNpy(bytes);
      if ("tensor" in array) tensors.set(name, array.tensor);
      else texts.set(name, array.texts);
    } catch (error) {
      throw new InputError(`array '${name}': ${/** @type {Error} */ (error).message}`);
    }
  }
  return { tensors, texts };
}

/**
 * Write an archive.
 *
 * @param {Map<string, Tensor>} tensors
 * @returns {Blob}
 */
export function encodeNpz(tensors) {
  const files = new Map([...tensors].map(([name, tensor]) => [`${name}.npy`, encodeNpy(tensor)]));
  return new Blob(writeZip(files), { type: "application/x-npz" });
}
