/** The state of the page: one object, changed by patches, and shown once a frame. */

/**
 * @typedef {object} State
 * @property {string[]} models names
 * @property {import("./server/server.js").Model | null} model the one that is asked
 * @property {string} version of it
 * @property {"example" | "random" | "file" | "json"} source of the input
 * @property {{queries: number, keys: number, seed: number}} random what is drawn where it is random
 * @property {string} fileName of a file that was opened
 * @property {import("./input/input.js").Input | null} input null where weights alone were opened
 * @property {number[][]} hidden keys that are switched off, for each item of the batch
 * @property {import("./input/input.js").Causal} causal
 * @property {import("./answer/answer.js").Answer | null} answer
 * @property {import("./server/server.js").Facts | null} facts of the last request
 * @property {boolean} busy while an answer is waited for
 * @property {{status: number | null, message: string} | null} error what went wrong; without a
 *   status, with what a person gave
 * @property {number} item of the batch that is shown
 * @property {import("./answer/answer.js").Head} head
 * @property {{query: number, key: number}} cell that was chosen
 * @property {{query: number, key: number} | null} hover the cell below the pointer
 * @property {import("./picture/view.js").View} view
 * @property {import("./picture/scale.js").ScaleKind} scale
 * @property {"shared" | "head"} range of the colours
 */

/** @type {State} */
const START = {
  models: [],
  model: null,
  version: "",
  source: "example",
  random: { queries: 24, keys: 24, seed: 1 },
  fileName: "",
  input: null,
  hidden: [],
  causal: false,
  answer: null,
  facts: null,
  busy: false,
  error: null,
  item: 0,
  head: 0,
  cell: { query: 0, key: 0 },
  hover: null,
  view: { left: 0, top: 0, columns: 1, rows: 1 },
  scale: "linear",
  range: "shared",
};

/** Holds the state, and tells whoever watches a part of it. */
export class Store {
  /** @type {State} */
  state = START;
  /** @type {{keys: (keyof State)[], show: (state: State) => void}[]} */
  #watchers = [];
  /** @type {Set<keyof State>} */
  #changed = new Set();

  /**
   * Change a part of the state.
   *
   * @param {Partial<State>} patch
   */
  set(patch) {
    if (this.#changed.size === 0) requestAnimationFrame(() => this.#show());
    const keys = /** @type {(keyof State)[]} */ (Object.keys(patch));
    keys.forEach((key) => this.#changed.add(key));
    this.state = { ...this.state, ...patch };
  }

  /**
   * Call `show` in the frame after a change of one of these parts.
   *
   * @param {(keyof State)[]} keys
   * @param {(state: State) => void} show
   */
  watch(keys, show) {
    this.#watchers.push({ keys, show });
  }

  #show() {
    const changed = this.#changed;
    this.#changed = new Set();
    for (const { keys, show } of this.#watchers) {
      if (keys.some((key) => changed.has(key))) show(this.state);
    }
  }
}
