/** What of the state is on show: the matrix, its scale, its words. */

import { makeScale } from "./picture/scale.js";

/** @typedef {import("./store.js").State} State */
/** @typedef {import("./answer/answer.js").Answer} Answer */
/** @typedef {import("./answer/answer.js").Head} Head */

/** The item of the batch, where there may be fewer than there were. @param {State} state @param {Answer} answer */
export const pickItem = ({ item }, answer) => Math.min(item, answer.items - 1);

/** The matrix that is shown large. @param {State} state @param {Answer} answer */
export const pickMatrix = (state, answer) => answer.pick(pickItem(state, answer), state.head);

/**
 * The colours of a head.
 *
 * @param {State} state
 * @param {Answer} answer
 * @param {Head} head
 */
export function pickScale(state, answer, head) {
  const range = answer.range(pickItem(state, answer), state.range === "shared" ? "all" : head);
  return makeScale(state.scale, range);
}

/**
 * The words of the tokens; empty where there are none.
 *
 * @param {State} state
 * @returns {{rows: string[], columns: string[]}}
 */
export function pickLabels({ input, item }) {
  return { rows: input?.labels[item] ?? [], columns: input?.keyLabels[item] ?? [] };
}

/** The keys that are switched off. @param {State} state */
export const pickHidden = ({ hidden, item }) => new Set(hidden[item]);

/** A token for people: its number, and its word where it has one. @param {string[]} words @param {number} at */
export const nameToken = (words, at) =>
  words[at] === undefined ? String(at) : `${at} “${words[at]}”`;

/** A head for people. @param {Head} head */
export const nameHead = (head) => (head === "mean" ? "Mean of heads" : `Head ${head}`);
