/** The weights of one query over all keys, in every head. */

import { findRange, pickRow } from "../answer/matrix.js";
import { readInks } from "../picture/palette.js";
import { sample } from "../picture/sample.js";
import { writeWeight } from "../picture/scale.js";
import { nameToken, pickItem, pickLabels } from "../shown.js";
import { resize } from "./canvas.js";
import { find } from "./elements.js";

/** @typedef {import("../store.js").State} State */
/** @typedef {import("../store.js").Store} Store */
/** @typedef {import("../answer/answer.js").Answer} Answer */
/** @typedef {import("../answer/answer.js").Head} Head */
/** @typedef {import("../picture/palette.js").Inks} Inks */
/** @typedef {{x: number, width: number, y: number, height: number}} Strip where one head's bars are */

const LEFT = 38;
const RIGHT = 52;
const GAP = 6;
const AXIS = 16;
const HEIGHT = 400;
const LEAST_STRIP = 16;
const MOST_STRIP = 72;
const MOST_GAP = 8;
const FONT = "11px system-ui, sans-serif";

/** Draws a strip of bars for each head, one below the other. */
export class RowChart {
  #frame = find("row-chart");
  /** @type {HTMLCanvasElement} */
  #canvas = find("bars");
  #title = find("row-title");

  /** @param {Store} store */
  constructor(store) {
    const parts = /** @type {(keyof State)[]} */ ([
      "answer",
      "item",
      "head",
      "cell",
      "hover",
      "view",
      "range",
      "input",
    ]);
    store.watch(parts, (state) => this.#show(state));
    this.#canvas.addEventListener("click", (event) => {
      const { answer } = store.state;
      const strip = Math.floor((event.offsetY / this.#canvas.clientHeight) * this.#heads.length);
      if (answer && strip < this.#heads.length) store.set({ head: this.#heads[strip] });
    });
  }

  /** @type {Head[]} */
  #heads = [];

  /** @param {State} state */
  #show(state) {
    const { answer } = state;
    if (!answer) return;
    this.#heads = answer.choices;
    const item = pickItem(state, answer);
    const { query, key } = state.hover ?? state.cell;
    const words = pickLabels(state);
    this.#title.textContent = `Query ${nameToken(words.rows, query)}, over keys`;
    this.#canvas.setAttribute(
      "aria-label",
      `Weights of query ${query} over the keys, a strip for each head`,
    );
    const pitch = Math.min(MOST_STRIP, Math.max(LEAST_STRIP, HEIGHT / this.#heads.length));
    const width = this.#frame.clientWidth;
    const context = resize(this.#canvas, width, Math.round(pitch * this.#heads.length + AXIS));
    context.font = FONT;
    const inks = readInks();
    const rows = this.#heads.map((head) => pickRow(answer.pick(item, head), query));
    const highs = rows.map((data) => findRange({ data }).high);
    const shared = Math.max(...highs);
    rows.forEach((row, at) => {
      const strip = {
        x: LEFT,
        width: width - LEFT - RIGHT,
        y: Math.round(at * pitch),
        height: Math.round(pitch - GAP),
      };
      const high = state.range === "shared" ? shared : highs[at];
      drawStrip(context, strip, row, state.view, high || 1, this.#heads[at] === state.head, inks);
      drawNames(context, strip, this.#heads[at], row[key], this.#heads[at] === state.head, inks);
    });
    drawKey(
      context,
      key,
      state.view,
      width - LEFT - RIGHT,
      pitch * this.#heads.length,
      words.columns,
      inks,
    );
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Strip} strip
 * @param {Float32Array} row [S]
 * @param {import("../picture/view.js").View} view
 * @param {number} high the weight of the highest bar
 * @param {boolean} isChosen
 * @param {Inks} inks
 */
function drawStrip(context, strip, row, view, high, isChosen, inks) {
  context.fillStyle = inks.line;
  context.fillRect(strip.x, strip.y + strip.height, strip.width, 1);
  context.fillStyle = isChosen ? inks.accent : inks.bar;
  const bars = Math.min(Math.floor(strip.width), Math.ceil(view.columns));
  const matrix = { data: row, rows: 1, columns: row.length };
  const values = sample(matrix, { ...view, top: 0, rows: 1 }, bars, 1);
  const pitch = strip.width / bars;
  const gap = pitch >= 4 ? Math.min(MOST_GAP, Math.max(1, Math.round(pitch * 0.15))) : 0;
  for (let at = 0; at < bars; at += 1) {
    if (!(values[at] > 0)) continue;
    const height = (values[at] / high) * strip.height;
    // Whole pixels across: edges within one cost a frame more than all else of a bar.
    const left = Math.round(at * pitch);
    const width = Math.round((at + 1) * pitch) - left - gap;
    const x = strip.x + left + Math.floor(gap / 2);
    context.fillRect(x, strip.y + strip.height - height, width, height);
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Strip} strip
 * @param {Head} head
 * @param {number} weight
 * @param {boolean} isChosen
 * @param {Inks} inks
 */
function drawNames(context, strip, head, weight, isChosen, inks) {
  context.textBaseline = "bottom";
  context.fillStyle = isChosen ? inks.ink : inks.muted;
  context.textAlign = "left";
  context.fillText(head === "mean" ? "Mean" : String(head), 0, strip.y + strip.height + 2);
  context.textAlign = "right";
  context.fillText(writeWeight(weight), strip.x + strip.width + RIGHT, strip.y + strip.height + 2);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} key
 * @param {import("../picture/view.js").View} view
 * @param {number} width
 * @param {number} height
 * @param {string[]} words
 * @param {Inks} inks
 */
function drawKey(context, key, view, width, height, words, inks) {
  const x = LEFT + ((key + 0.5 - view.left) / view.columns) * width;
  if (x < LEFT || x > LEFT + width) return;
  context.fillStyle = inks.muted;
  context.globalAlpha = 0.6;
  context.fillRect(Math.round(x), 0, 1, height - GAP + 3);
  context.globalAlpha = 1;
  context.textBaseline = "bottom";
  const text = words[key] ?? String(key);
  const half = context.measureText(text).width / 2;
  context.textAlign = "center";
  context.fillStyle = inks.ink;
  context.fillText(
    text,
    Math.min(LEFT + width + RIGHT - half, Math.max(half, x)),
    height + AXIS - 1,
  );
}
