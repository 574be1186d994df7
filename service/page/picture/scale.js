/** Which colour a weight has: linear or logarithmic, from a range of weights. */

/** @typedef {"linear" | "log"} ScaleKind */

/** Decades of the logarithmic scale: what is smaller has the lowest colour. */
const MOST_DECADES = 6;

/**
 * @typedef {object} Scale
 * @property {ScaleKind} kind
 * @property {number} low the weight of the lowest colour: 0 on a linear scale
 * @property {number} high the weight of the highest colour, above `low`
 */

/**
 * A scale from 0, or from the smallest weight, to the largest.
 *
 * @param {ScaleKind} kind
 * @param {{high: number, low: number}} range of weights
 * @returns {Scale}
 */
export function makeScale(kind, range) {
  const high = range.high || 1;
  if (kind === "linear") return { kind, low: 0, high };
  const low = Math.max(range.low, high * 10 ** -MOST_DECADES);
  return { kind, low: low < high ? low : high / 10, high };
}

/**
 * Where a weight is on a scale.
 *
 * @param {Scale} scale
 * @param {number} value
 * @returns {number} 0 to 1
 */
export function locate({ kind, low, high }, value) {
  const place = kind === "linear" ? value / high : Math.log(value / low) / Math.log(high / low);
  return Math.min(1, Math.max(0, place));
}

/**
 * Weights to write beside a scale, ascending.
 *
 * @param {Scale} scale
 * @returns {number[]}
 */
export function chooseTicks({ kind, low, high }) {
  if (kind === "log") {
    const first = Math.ceil(Math.log10(low) - 1e-9);
    const last = Math.floor(Math.log10(high) + 1e-9);
    const decades = Array.from(
      { length: Math.max(0, last - first + 1) },
      (_, at) => 10 ** (first + at),
    );
    return decades.length > 1 ? decades : [low, high];
  }
  const step = chooseStep(high / 5);
  return Array.from({ length: Math.floor(high / step + 1e-9) + 1 }, (_, at) => at * step);
}

/** The next of 1, 2 and 5 times a power of ten. @param {number} least */
export function chooseStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return (
    power * /** @type {number} */ ([1, 2, 5, 10].find((factor) => factor * power >= least * 0.999))
  );
}

/** A weight for people: three digits that count. @param {number} value */
export function writeWeight(value) {
  if (value === 0 || Number.isNaN(value)) return String(value);
  return value < 0.001 ? value.toExponential(1) : String(Number(value.toPrecision(3)));
}
