/** The numbers of the cell that is pointed at or chosen, in words. */

import { findLargest, findRank, measureEntropy, pickRow } from "../answer/matrix.js";
import { writeFloat32 } from "../formats/dtypes.js";
import { writeWeight } from "../picture/scale.js";
import { nameToken, pickLabels, pickMatrix } from "../shown.js";
import { find, make } from "./elements.js";

/** @typedef {import("../store.js").State} State */
/** @typedef {import("../store.js").Store} Store */

const MOST_LARGEST = 5;

/** Writes what a cell holds, and the keys that its query looks at most. */
export class Readout {
  #weight = find("weight");
  #facts = find("cell-facts");
  #largest = find("largest");

  /** @param {Store} store */
  constructor(store) {
    const parts = /** @type {(keyof State)[]} */ ([
      "answer",
      "item",
      "head",
      "cell",
      "hover",
      "input",
    ]);
    store.watch(parts, (state) => this.#show(state));
  }

  /** @param {State} state */
  #show(state) {
    const { answer, hover, cell } = state;
    if (!answer) return;
    const { query, key } = hover ?? cell;
    const matrix = pickMatrix(state, answer);
    if (query >= matrix.rows || key >= matrix.columns) return;
    const row = pickRow(matrix, query);
    const words = pickLabels(state);
    this.#weight.textContent = writeFloat32(row[key]);
    const facts = [
      ["Query", nameToken(words.rows, query)],
      ["Key", nameToken(words.columns, key)],
      ["Rank in the row", writeRank(row, key)],
      [
        "Entropy of the row",
        `${measureEntropy(row).toFixed(2)} of ${Math.log2(row.length).toFixed(2)} bit`,
      ],
    ];
    this.#facts.replaceChildren(
      ...facts.flatMap(([name, text]) => [make("dt", name), make("dd", text)]),
    );
    const largest = findLargest(row, MOST_LARGEST).filter((at) => row[at] > 0);
    const entries = largest.map((at) => {
      const entry = make("li", nameToken(words.columns, at));
      entry.append(make("span", writeWeight(row[at])));
      return entry;
    });
    this.#largest.replaceChildren(...entries);
  }
}

/** @param {Float32Array} row [S] @param {number} key */
const writeRank = (row, key) =>
  Number.isNaN(row[key]) ? "none" : `${findRank(row, key)} of ${row.length}`;
