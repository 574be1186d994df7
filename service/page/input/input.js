/** What the model is asked: tensors, the words of their tokens, and which keys start out hidden. */

import { countElements, InputError } from "../formats/dtypes.js";

/** @typedef {import("../formats/dtypes.js").Tensor} Tensor */
/** @typedef {false | "top_left" | "bottom_right"} Causal */

/**
 * @typedef {object} Input
 * @property {Map<string, Tensor>} tensors without `key_mask`, where it could be read into `hidden`
 * @property {boolean} batched whether they have a batch axis
 * @property {number} items B
 * @property {number} queries L
 * @property {number} keys S
 * @property {string[][]} labels of the query tokens, for each item; empty where there are none
 * @property {string[][]} keyLabels of the key tokens
 * @property {number[][]} hidden keys that are switched off, for each item, ascending
 * @property {Causal} causal
 */

/**
 * Take tensors in.
 *
 * @param {import("../formats/file.js").Contents} contents
 * @returns {Input}
 * @throws {InputError} if there is no query of two or three axes
 */
export function makeInput({ tensors, options }) {
  const { batched, items, queries, keys } = measure(tensors);
  const labels = readLabels(options.labels, items, queries);
  const keyLabels = readLabels(options.key_labels, items, keys);
  const causal = readCausal(options.causal);
  const own = new Map(tensors);
  const hidden = readHidden(own.get("key_mask"), items, keys);
  if (hidden) own.delete("key_mask");
  return {
    tensors: own,
    batched,
    items,
    queries,
    keys,
    labels,
    keyLabels: keyLabels.length || queries !== keys ? keyLabels : labels,
    hidden: hidden ?? Array.from({ length: items }, () => []),
    causal,
  };
}

/** @param {Map<string, Tensor>} tensors */
function measure(tensors) {
  const query = tensors.get("query");
  if (!query) {
    const names = [...tensors.keys()].join(", ") || "none";
    throw new InputError(`no tensor is named 'query'; tensors: ${names}`);
  }
  const { shape } = query;
  if (shape.length !== 2 && shape.length !== 3) {
    throw new InputError(
      `'query' has shape [${shape}], expected [query_length, d_model] or ` +
        "[batch_size, query_length, d_model]",
    );
  }
  const source = tensors.get("key") ?? tensors.get("value") ?? query;
  const batched = shape.length === 3;
  const items = batched ? shape[0] : 1;
  return {
    batched,
    items,
    queries: shape[shape.length - 2],
    keys: source.shape[source.shape.length - 2],
  };
}

/**
 * A list of words, one list for each item, or all of them in a row.
 *
 * @param {any} value
 * @param {number} items
 * @param {number} tokens
 * @returns {string[][]} empty where they do not fit: labels are an aid, no part of the request
 */
export function readLabels(value, items, tokens) {
  if (!Array.isArray(value)) return [];
  const words = value.flat(1).map(String);
  if (words.length === tokens) return Array.from({ length: items }, () => words);
  if (words.length !== items * tokens) return [];
  return Array.from({ length: items }, (_, item) =>
    words.slice(item * tokens, (item + 1) * tokens),
  );
}

/** @param {any} value @returns {Causal} */
function readCausal(value) {
  return value === "bottom_right" || value === "top_left" ? value : value === true && "top_left";
}

/**
 * @param {Tensor | undefined} mask
 * @param {number} items
 * @param {number} keys
 * @returns {number[][] | null} null for a mask that the server is to judge
 */
function readHidden(mask, items, keys) {
  if (!mask) return Array.from({ length: items }, () => []);
  const bits = Array.from(/** @type {Iterable<number | bigint>} */ (mask.data), Number);
  if (bits.length !== items * keys || bits.some((bit) => bit !== 0 && bit !== 1)) return null;
  return Array.from({ length: items }, (_, item) => {
    const row = bits.slice(item * keys, (item + 1) * keys);
    return row.flatMap((bit, key) => (bit ? [] : [key]));
  });
}

/**
 * The tensors that are sent: those of the input, and a `key_mask` where keys are switched off.
 *
 * @param {Input} input
 * @param {number[][]} hidden keys that are switched off, for each item
 * @returns {Map<string, Tensor>}
 */
export function hideKeys(input, hidden) {
  const tensors = new Map(input.tensors);
  if (hidden.every((keys) => keys.length === 0)) return tensors;
  const shape = input.batched ? [input.items, input.keys] : [input.keys];
  const data = new Uint8Array(countElements(shape)).fill(1);
  hidden.forEach((keys, item) => keys.forEach((key) => (data[item * input.keys + key] = 0)));
  return tensors.set("key_mask", { dtype: "BOOL", shape, data });
}
