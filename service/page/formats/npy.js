/**
 * numpy's .npy: a magic, a Python literal that describes the array, then its bytes.
 *
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
 */

import { bytesOf, countElements, InputError, readTensor } from "./dtypes.js";

/** @typedef {import("./dtypes.js").Tensor} Tensor */

const MAGIC = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];
const ALIGNMENT_BYTES = 64;
/** @type {Record<string, string>} */
const DTYPES = {
  b1: "BOOL",
  u1: "U8",
  i1: "I8",
  u2: "U16",
  i2: "I16",
  u4: "U32",
  i4: "I32",
  u8: "U64",
  i8: "I64",
  f2: "F16",
  f4: "F32",
  f8: "F64",
};

/** Whether bytes begin as a .npy does. @param {Uint8Array} bytes */
export const isNpy = (bytes) => MAGIC.every((byte, at) => bytes[at] === byte);

/**
 * Read an array.
 *
 * @param {Uint8Array} bytes the whole file
 * @returns {{tensor: Tensor} | {texts: string[], shape: number[]}} numbers, or texts
 * @throws {InputError} saying what is wrong with it
 */
export function decodeNpy(bytes) {
  if (!isNpy(bytes)) throw new InputError("the bytes are not those of a .npy file");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const [length, start] =
    bytes[6] === 1 ? [view.getUint16(8, true), 10] : [view.getUint32(8, true), 12];
  const header = new TextDecoder().decode(bytes.subarray(start, start + length));
  const { order, kind, size, shape } = parseHeader(header);
  const count = countElements(shape);
  const data = bytes.slice(start + length, start + length + count * size);
  if (order === ">") swapBytes(data, kind === "U" ? 4 : size);
  if (kind === "U") return { texts: readTexts(data, count, size), shape };
  const dtype = DTYPES[kind + size];
  if (!dtype)
    throw new InputError(`the .npy holds ${kind}${size}, expected numbers or truth values`);
  return { tensor: readTensor(dtype, shape, data) };
}

/** @param {string} header */
function parseHeader(header) {
  const descr = /'descr':\s*'([<>|=])([a-zA-Z])(\d+)'/.exec(header);
  const shape = /'shape':\s*\(([\d, ]*)\)/.exec(header);
  if (!descr || !shape) throw new InputError("the header of the .npy is not one that is read here");
  if (/'fortran_order':\s*True/.test(header)) {
    throw new InputError("the .npy is in Fortran order; save numpy.ascontiguousarray(array)");
  }
  const sizes = shape[1]
    .split(",")
    .map((text) => text.trim())
    .filter(Boolean)
    .map(Number);
  const size = Number(descr[3]) * (descr[2] === "U" ? 4 : 1);
  return { order: descr[1], kind: descr[2], size, shape: sizes };
}

/** @param {Uint8Array} data @param {number} size */
function swapBytes(data, size) {
  for (let at = 0; at < data.length; at += size) data.subarray(at, at + size).reverse();
}

/** numpy's texts have four bytes a character, filled up with zeros. */
/** @param {Uint8Array} data @param {number} count @param {number} size */
function readTexts(data, count, size) {
  const points = new Uint32Array(data.buffer, data.byteOffset, (count * size) / 4);
  return Array.from({ length: count }, (_, index) => {
    const text = points.subarray((index * size) / 4, ((index + 1) * size) / 4);
    return String.fromCodePoint(...text.filter(Boolean));
  });
}

/**
 * Write an array, in version 1.0.
 *
 * @param {Tensor} tensor
 */
export function encodeNpy(tensor) {
  const [code] = /** @type {[string, string]} */ (
    Object.entries(DTYPES).find(([, dtype]) => dtype === tensor.dtype)
  );
  const descr = (code.endsWith("1") ? "|" : "<") + code;
  const axes = tensor.shape.join(", ") + (tensor.shape.length === 1 ? "," : "");
  const text = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${axes}), }`;
  const start = Math.ceil((text.length + 11) / ALIGNMENT_BYTES) * ALIGNMENT_BYTES;
  const file = new Uint8Array(start + tensor.data.byteLength);
  file.set([...MAGIC, 1, 0]);
  new DataView(file.buffer).setUint16(8, start - 10, true);
  file.set(new TextEncoder().encode(text.padEnd(start - 11) + "\n"), 10);
  file.set(bytesOf(tensor), start);
  return file;
}
