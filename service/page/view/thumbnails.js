/** All heads as small pictures beside each other, to compare and to choose from. */

import { measureEntropy } from "../answer/matrix.js";
import { makePaint } from "../picture/colours.js";
import { makePalette, readInks } from "../picture/palette.js";
import { sample } from "../picture/sample.js";
import { showAll } from "../picture/view.js";
import { pickItem, pickScale } from "../shown.js";
import { Work } from "../work.js";
import { getContext, readRatio } from "./canvas.js";
import { find, make } from "./elements.js";

/** @typedef {import("../store.js").State} State */
/** @typedef {import("../store.js").Store} Store */
/** @typedef {import("../answer/answer.js").Answer} Answer */
/** @typedef {import("../answer/answer.js").Head} Head */
/** @typedef {import("../answer/matrix.js").Matrix} Matrix */

/**
 * The picture of a head.
 *
 * @typedef {object} Entry
 * @property {HTMLButtonElement} button
 * @property {HTMLCanvasElement} canvas
 * @property {HTMLElement} note
 * @property {Matrix | null} matrix that was sampled
 * @property {Float32Array} values its pixels' weights, which stay when their colours change
 */

const SIDE = 112;
const LONGEST_SIDE = 2;
const SLICE_CELLS = 2 ** 14;

/** Shows a button with a picture for each head. */
export class Thumbnails {
  #list = find("thumbnails");
  /** @type {Map<Head, Entry>} */
  #entries = new Map();
  #painting = new Work();
  #measuring = new Work();

  /** @param {Store} store */
  constructor(store) {
    const choose = (/** @type {Head} */ head) => store.set({ head });
    store.watch(["answer"], ({ answer }) => answer && this.#fill(answer, choose));
    store.watch(["answer", "item", "scale", "range"], (state) => this.#paint(state));
    store.watch(["answer", "item"], (state) => this.#measure(state));
    store.watch(["answer", "head"], ({ head }) => this.#mark(head));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
      this.#paint(store.state),
    );
  }

  /** @param {Answer} answer @param {(head: Head) => void} choose */
  #fill(answer, choose) {
    if (answer.choices.join() === [...this.#entries.keys()].join()) return;
    this.#entries = new Map(answer.choices.map((head) => [head, makeEntry(head, choose)]));
    const items = [...this.#entries.values()].map(({ button }) => {
      const item = make("li");
      item.append(button);
      return item;
    });
    this.#list.replaceChildren(...items);
  }

  /** @param {State} state */
  #paint(state) {
    const { answer } = state;
    if (!answer) return;
    const palette = makePalette(readInks());
    this.#list.ariaBusy = "true";
    this.#painting.start(async (breathe) => {
      for (const [head, entry] of this.#entries) {
        sampleEntry(entry, answer.pick(pickItem(state, answer), head));
        const pixels = makePaint(pickScale(state, answer, head), palette)(entry.values);
        const { width, height } = entry.canvas;
        const image = new ImageData(new Uint8ClampedArray(pixels.buffer), width, height);
        getContext(entry.canvas).putImageData(image, 0, 0);
        await breathe();
      }
      this.#list.ariaBusy = "false";
    });
  }

  /** Behind the pictures: logarithms of millions of weights take a while. */
  /** @param {State} state */
  #measure(state) {
    const { answer } = state;
    if (!answer) return;
    for (const { note } of this.#entries.values()) note.textContent = "…";
    this.#measuring.start(async (breathe) => {
      for (const [head, { note }] of this.#entries) {
        const { data, rows } = answer.pick(pickItem(state, answer), head);
        let bits = 0;
        for (let at = 0; at < data.length; at += SLICE_CELLS) {
          bits += measureEntropy(data.subarray(at, at + SLICE_CELLS));
          await breathe();
        }
        note.textContent = `${writeBits(bits / rows)} bit`;
      }
    });
  }

  /** @param {Head} chosen */
  #mark(chosen) {
    for (const [head, { button }] of this.#entries) {
      button.setAttribute("aria-pressed", String(head === chosen));
      if (head === chosen) this.#reveal(button);
    }
  }

  /** Where there are many heads their pictures scroll, which must not move the page. */
  /** @param {HTMLElement} button */
  #reveal(button) {
    const [list, own] = [this.#list.getBoundingClientRect(), button.getBoundingClientRect()];
    this.#list.scrollTop += Math.min(0, own.top - list.top) + Math.max(0, own.bottom - list.bottom);
  }
}

/** @param {Head} head @param {(head: Head) => void} choose @returns {Entry} */
function makeEntry(head, choose) {
  const button = make("button", "", "thumbnail");
  const canvas = make("canvas");
  const name = make("span", head === "mean" ? "Mean" : String(head), "thumbnail-name");
  const note = make("span", "", "thumbnail-note");
  button.type = "button";
  canvas.dataset.head = String(head);
  note.title = "mean entropy of the rows";
  name.prepend(make("span", head === "mean" ? "" : "Head ", "spoken"));
  button.append(canvas, name, note);
  button.addEventListener("click", () => choose(head));
  return { button, canvas, note, matrix: null, values: new Float32Array() };
}

/** Three digits are what there is room for. @param {number} bits */
const writeBits = (bits) => bits.toFixed(bits < 10 ? 2 : 1);

/** @param {Entry} entry @param {Matrix} matrix */
function sampleEntry(entry, matrix) {
  const { width, height } = sizePicture(matrix);
  if (entry.matrix === matrix && entry.canvas.width === width) return;
  Object.assign(entry.canvas, { width, height });
  Object.assign(entry, { matrix, values: sample(matrix, showAll(matrix), width, height) });
}

/** @param {{rows: number, columns: number}} matrix */
function sizePicture({ rows, columns }) {
  const ratio = Math.min(LONGEST_SIDE, Math.max(1 / LONGEST_SIDE, rows / columns));
  const side = SIDE * readRatio();
  const [width, height] = ratio <= 1 ? [side, side * ratio] : [side / ratio, side];
  return { width: Math.round(width), height: Math.round(height) };
}
