/** The weights of an answer, taken apart into heads. */

import { InputError } from "../formats/dtypes.js";
import { findRange } from "./matrix.js";

/** @typedef {import("../formats/dtypes.js").Tensor} Tensor */
/** @typedef {import("./matrix.js").Matrix} Matrix */
/** @typedef {number | "mean"} Head the number of a head, or the mean over all of them */

/** The weights of every head, for every item of a batch. */
export class Answer {
  /** @type {Map<string, Matrix>} */
  #matrices = new Map();
  /** @type {Map<string, {high: number, low: number}>} */
  #ranges = new Map();

  /**
   * @param {Map<string, Tensor>} tensors with `attention_weights`, [B,H,L,S] or [H,L,S]
   * @throws {InputError} if they have another shape, or none are there
   */
  constructor(tensors) {
    const weights = tensors.get("attention_weights");
    const shape = weights?.shape ?? [];
    if (!(weights?.data instanceof Float32Array) || (shape.length !== 3 && shape.length !== 4)) {
      throw new InputError(
        `'attention_weights' has shape [${shape}], expected floats [heads, queries, keys] or ` +
          "[batch, heads, queries, keys]",
      );
    }
    if (weights.data.length === 0) {
      throw new InputError(`'attention_weights' has shape [${shape}], which holds no weights`);
    }
    this.tensors = tensors;
    this.data = weights.data;
    const [items, heads, queries, keys] = shape.length === 4 ? shape : [1, ...shape];
    this.items = items;
    this.heads = heads;
    this.queries = queries;
    this.keys = keys;
  }

  /** All heads, and the mean where there are several. @returns {Head[]} */
  get choices() {
    const heads = Array.from({ length: this.heads }, (_, head) => head);
    return this.heads > 1 ? ["mean", ...heads] : heads;
  }

  /**
   * The weights of one head.
   *
   * @param {number} item of the batch
   * @param {Head} head
   * @returns {Matrix} [L,S], the same one each time
   */
  pick(item, head) {
    const key = `${item} ${head}`;
    let found = this.#matrices.get(key);
    if (!found) {
      const data = head === "mean" ? this.#average(item) : this.#cut(item, head);
      found = { data, rows: this.queries, columns: this.keys };
      this.#matrices.set(key, found);
    }
    return found;
  }

  /** @param {number} item @param {number} head */
  #cut(item, head) {
    const size = this.queries * this.keys;
    const start = (item * this.heads + head) * size;
    return this.data.subarray(start, start + size);
  }

  /** @param {number} item */
  #average(item) {
    const data = new Float32Array(this.queries * this.keys);
    for (let head = 0; head < this.heads; head += 1) {
      const added = this.#cut(item, head);
      for (let at = 0; at < data.length; at += 1) data[at] += added[at];
    }
    for (let at = 0; at < data.length; at += 1) data[at] /= this.heads;
    return data;
  }

  /**
   * The largest weight and the smallest above 0, of one head or of all.
   *
   * @param {number} item
   * @param {Head | "all"} head
   * @returns {{high: number, low: number}}
   */
  range(item, head) {
    const key = `${item} ${head}`;
    let found = this.#ranges.get(key);
    if (!found) {
      found = head === "all" ? this.#wholeRange(item) : findRange(this.pick(item, head));
      this.#ranges.set(key, found);
    }
    return found;
  }

  /** @param {number} item */
  #wholeRange(item) {
    const ranges = Array.from({ length: this.heads }, (_, head) => this.range(item, head));
    const lows = ranges.map(({ low }) => low).filter(Boolean);
    return {
      high: Math.max(...ranges.map(({ high }) => high)),
      low: lows.length ? Math.min(...lows) : 0,
    };
  }
}
