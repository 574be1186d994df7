/** Datatypes of numbers in files, by the names that safetensors gives them. */

/**
 * @typedef {Float32Array | Float64Array | Uint8Array | Int8Array | Uint16Array | Int16Array
 *   | Uint32Array | Int32Array | BigUint64Array | BigInt64Array} Numbers
 */

/**
 * Numbers with a shape, row by row.
 *
 * @typedef {object} Tensor
 * @property {string} dtype F32, BOOL, or an integer's; other floats became F32 when they were read
 * @property {number[]} shape
 * @property {Numbers} data
 */

const VIEWS = {
  BOOL: Uint8Array,
  U8: Uint8Array,
  I8: Int8Array,
  U16: Uint16Array,
  I16: Int16Array,
  U32: Uint32Array,
  I32: Int32Array,
  U64: BigUint64Array,
  I64: BigInt64Array,
  F16: Uint16Array,
  BF16: Uint16Array,
  F32: Float32Array,
  F64: Float64Array,
};

/** What is wrong with what a person opened or typed, in a sentence. */
export class InputError extends Error {}

/** How many numbers a shape holds. @param {number[]} shape */
export const countElements = (shape) => shape.reduce((product, size) => product * size, 1);

/**
 * The bytes of one number.
 *
 * @param {string} dtype
 * @throws {InputError} if there is no such datatype
 */
export const countBytes = (dtype) => findView(dtype).BYTES_PER_ELEMENT;

/** @param {string} dtype */
function findView(dtype) {
  if (!Object.hasOwn(VIEWS, dtype)) {
    throw new InputError(`datatype ${dtype}, expected one of ${Object.keys(VIEWS).join(", ")}`);
  }
  return VIEWS[/** @type {keyof typeof VIEWS} */ (dtype)];
}

/**
 * A tensor from its little-endian bytes. Floats of any width become F32, the one that models take.
 *
 * @param {string} dtype
 * @param {number[]} shape
 * @param {Uint8Array} bytes as many as the shape says
 * @returns {Tensor}
 * @throws {InputError} if they are more or fewer
 */
export function readTensor(dtype, shape, bytes) {
  const View = findView(dtype);
  const count = countElements(shape);
  if (bytes.length !== count * View.BYTES_PER_ELEMENT) {
    const expected = count * View.BYTES_PER_ELEMENT;
    throw new InputError(
      `${bytes.length} bytes for shape [${shape}] of ${dtype}, expected ${expected}`,
    );
  }
  const isAligned = bytes.byteOffset % View.BYTES_PER_ELEMENT === 0;
  const whole = isAligned ? bytes : bytes.slice();
  const data = new View(/** @type {ArrayBuffer} */ (whole.buffer), whole.byteOffset, count);
  return widen(dtype, shape, data);
}

/**
 * @param {string} dtype
 * @param {number[]} shape
 * @param {Numbers} data
 * @returns {Tensor}
 */
function widen(dtype, shape, data) {
  if (dtype === "F64")
    return { dtype: "F32", shape, data: Float32Array.from(/** @type {any} */ (data)) };
  if (dtype === "F16")
    return {
      dtype: "F32",
      shape,
      data: Float32Array.from(/** @type {any} */ (data), halfToNumber),
    };
  if (dtype !== "BF16") return { dtype, shape, data };
  // bfloat16 is the upper half of a float32.
  const bits = Uint32Array.from(
    /** @type {any} */ (data),
    (/** @type {number} */ half) => half << 16,
  );
  return { dtype: "F32", shape, data: new Float32Array(bits.buffer) };
}

/**
 * A float16: one bit of sign, five of exponent, ten of fraction (IEEE 754-2019, 3.6).
 *
 * @param {number} bits
 */
export function halfToNumber(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** The bytes of a tensor. @param {Tensor} tensor */
export const bytesOf = ({ data }) =>
  new Uint8Array(/** @type {ArrayBuffer} */ (data.buffer), data.byteOffset, data.byteLength);

/**
 * A number with digits enough that the same float32 is read back, nine at most.
 *
 * @param {number} value
 */
export function writeFloat32(value) {
  if (!Number.isFinite(value) || (Number.isInteger(value) && Math.abs(value) < 1e6)) {
    return String(value);
  }
  for (let digits = 6; digits < 9; digits += 1) {
    const rounded = Number(value.toPrecision(digits));
    if (Math.fround(rounded) === value) return String(rounded);
  }
  return String(Number(value.toPrecision(9)));
}
