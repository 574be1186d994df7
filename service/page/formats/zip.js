/**
 * Zip archives as far as numpy's .npz needs them: stored or deflated entries, below 4 GiB.
 *
 * https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, sections 4.3.7, 4.3.12 and 4.3.16.
 */

import { InputError } from "./dtypes.js";

const LOCAL = 0x04034b50;
const CENTRAL = 0x02014b50;
const END = 0x06054b50;
const LOCAL_BYTES = 30;
const CENTRAL_BYTES = 46;
const END_BYTES = 22;
const VERSION = 20;
const DEFLATED = 8;

/** Whether bytes begin as an archive does. @param {Uint8Array} bytes */
export const isZip = (bytes) =>
  bytes[0] === 0x50 && bytes[1] === 0x4b && bytes[2] === 3 && bytes[3] === 4;

/**
 * Read an archive.
 *
 * @param {ArrayBuffer} buffer
 * @returns {Promise<Map<string, Uint8Array>>} the bytes of each file by name
 * @throws {InputError} saying what is wrong with it
 */
export async function readZip(buffer) {
  const view = new DataView(buffer);
  const files = new Map();
  try {
    const end = findEnd(view);
    let at = view.getUint32(end + 16, true);
    for (let left = view.getUint16(end + 10, true); left > 0; left -= 1) {
      const entry = readEntry(view, at);
      files.set(entry.name, await inflate(entry));
      at = entry.next;
    }
  } catch (error) {
    if (error instanceof InputError) throw error;
    throw new InputError("the archive is not whole");
  }
  return files;
}

/** @param {DataView} view */
function findEnd(view) {
  for (let at = view.byteLength - END_BYTES; at >= 0; at -= 1) {
    if (view.getUint32(at, true) === END) return at;
  }
  throw new InputError("the archive has no directory");
}

/** @param {DataView} view @param {number} at */
function readEntry(view, at) {
  if (view.getUint32(at, true) !== CENTRAL)
    throw new InputError("the directory of the archive is not whole");
  const sizes = [28, 30, 32].map((offset) => view.getUint16(at + offset, true));
  const name = new TextDecoder().decode(new Uint8Array(view.buffer, at + CENTRAL_BYTES, sizes[0]));
  const local = view.getUint32(at + 42, true);
  const start =
    local + LOCAL_BYTES + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
  const bytes = new Uint8Array(
    /** @type {ArrayBuffer} */ (view.buffer),
    start,
    view.getUint32(at + 20, true),
  );
  const next = at + CENTRAL_BYTES + sizes[0] + sizes[1] + sizes[2];
  return { name, bytes, method: view.getUint16(at + 10, true), next };
}

/** @param {{name: string, bytes: Uint8Array<ArrayBuffer>, method: number}} entry */
async function inflate({ name, bytes, method }) {
  if (method === 0) return bytes;
  if (method !== DEFLATED)
    throw new InputError(`'${name}' in the archive is packed by method ${method}`);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * Write an archive of files that are stored as they are.
 *
 * @param {Map<string, Uint8Array>} files
 * @returns {Uint8Array<ArrayBuffer>[]} its parts
 */
export function writeZip(files) {
  const parts = [];
  const directory = [];
  let at = 0;
  for (const [name, bytes] of files) {
    const text = new TextEncoder().encode(name);
    const facts = [
      VERSION,
      0,
      0,
      0,
      0x21,
      computeCrc(bytes),
      bytes.length,
      bytes.length,
      text.length,
      0,
    ];
    const local = writeRecord(LOCAL_BYTES, LOCAL, facts, text);
    directory.push(writeRecord(CENTRAL_BYTES, CENTRAL, [VERSION, ...facts, 0, 0, 0, 0, at], text));
    parts.push(local, /** @type {Uint8Array<ArrayBuffer>} */ (bytes));
    at += local.length + bytes.length;
  }
  const size = directory.reduce((sum, record) => sum + record.length, 0);
  const end = writeRecord(
    END_BYTES,
    END,
    [0, 0, files.size, files.size, size, at, 0],
    new Uint8Array(),
  );
  return [...parts, ...directory, end];
}

/** Widths in bytes of the fields behind each signature. @type {Record<number, number[]>} */
const WIDTHS = {
  [LOCAL]: [2, 2, 2, 2, 2, 4, 4, 4, 2, 2],
  [CENTRAL]: [2, 2, 2, 2, 2, 2, 4, 4, 4, 2, 2, 2, 2, 2, 4, 4],
  [END]: [2, 2, 2, 2, 4, 4, 2],
};

/** @param {number} size @param {number} signature @param {number[]} fields @param {Uint8Array} name */
function writeRecord(size, signature, fields, name) {
  const record = new Uint8Array(size + name.length);
  const view = new DataView(record.buffer);
  view.setUint32(0, signature, true);
  let at = 4;
  fields.forEach((value, index) => {
    const width = WIDTHS[signature][index];
    if (width === 2) view.setUint16(at, value, true);
    else view.setUint32(at, value, true);
    at += width;
  });
  record.set(name, size);
  return record;
}

/** CRC-32 as zip wants it (ISO 3309). @param {Uint8Array} bytes */
export function computeCrc(bytes) {
  const table = Uint32Array.from({ length: 256 }, (_, value) => {
    let bits = value;
    for (let step = 0; step < 8; step += 1)
      bits = bits & 1 ? (bits >>> 1) ^ 0xedb88320 : bits >>> 1;
    return bits;
  });
  let crc = 0xffffffff;
  for (let at = 0; at < bytes.length; at += 1) crc = table[(crc ^ bytes[at]) & 255] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}
