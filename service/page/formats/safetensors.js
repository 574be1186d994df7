/**
 * safetensors: eight bytes of length, a JSON header, then the tensors without gaps.
 *
 * https://github.com/huggingface/safetensors#format
 */

import { bytesOf, InputError, readTensor } from "./dtypes.js";

/** @typedef {import("./dtypes.js").Tensor} Tensor */

const LENGTH_BYTES = 8;
const METADATA = "__metadata__";

/**
 * Read a file.
 *
 * @param {ArrayBuffer} buffer
 * @returns {{tensors: Map<string, Tensor>, notes: Record<string, string>}} views into it, and its
 *   metadata
 * @throws {InputError} saying what is wrong with it
 */
export function decodeSafetensors(buffer) {
  const length =
    buffer.byteLength < LENGTH_BYTES ? NaN : Number(new DataView(buffer).getBigUint64(0, true));
  if (!(length <= buffer.byteLength - LENGTH_BYTES)) {
    throw new InputError("the safetensors file ends within its header");
  }
  const header = parseHeader(new Uint8Array(buffer, LENGTH_BYTES, length));
  const data = new Uint8Array(buffer, LENGTH_BYTES + length);
  const tensors = new Map();
  for (const [name, entry] of Object.entries(header)) {
    if (name !== METADATA) tensors.set(name, readEntry(name, entry, data));
  }
  return { tensors, notes: header[METADATA] ?? {} };
}

/** @param {Uint8Array} bytes @returns {Record<string, any>} */
function parseHeader(bytes) {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw new InputError("the header of the safetensors file is not JSON");
  }
}

/** @param {string} name @param {any} entry @param {Uint8Array} data */
function readEntry(name, entry, data) {
  try {
    const [start, end] = entry.data_offsets;
    return readTensor(entry.dtype, entry.shape, data.subarray(start, end));
  } catch (error) {
    const reason = error instanceof InputError ? error.message : "its entry is not whole";
    throw new InputError(`tensor '${name}' of the safetensors file: ${reason}`);
  }
}

/**
 * Write a file. The header is padded to eight bytes, so that numbers stay aligned.
 *
 * @param {Map<string, Tensor>} tensors
 * @param {Record<string, string>} [notes] its metadata
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function encodeSafetensors(tensors, notes) {
  /** @type {Record<string, any>} */
  const header = Object.create(null); // any name may be that of a tensor
  if (notes) header[METADATA] = notes;
  let end = 0;
  // Widest first: behind bytes of a mask, floats would not be aligned.
  const sorted = [...tensors].sort(
    ([, a], [, b]) => b.data.BYTES_PER_ELEMENT - a.data.BYTES_PER_ELEMENT,
  );
  for (const [name, { dtype, shape, data }] of sorted) {
    header[name] = { dtype, shape, data_offsets: [end, end + data.byteLength] };
    end += data.byteLength;
  }
  let text = new TextEncoder().encode(JSON.stringify(header));
  const padded = Math.ceil(text.length / LENGTH_BYTES) * LENGTH_BYTES;
  const body = new Uint8Array(LENGTH_BYTES + padded + end).fill(
    32,
    LENGTH_BYTES,
    LENGTH_BYTES + padded,
  );
  new DataView(body.buffer).setBigUint64(0, BigInt(padded), true);
  body.set(text, LENGTH_BYTES);
  let at = LENGTH_BYTES + padded;
  for (const [, tensor] of sorted) {
    body.set(bytesOf(tensor), at);
    at += tensor.data.byteLength;
  }
  return body;
}
