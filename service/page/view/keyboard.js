/** The keyboard on the large picture. */

import { reveal, showAll, zoom } from "../picture/view.js";

/** @typedef {import("../store.js").Store} Store */
/** @typedef {import("../session.js").Session} Session */

const FAR = 10;
/** @type {Record<string, [number, number]>} rows and columns to move by */
const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/**
 * Arrows choose a cell (with Shift ten further; Home and End the ends of its row), + and - zoom, 0
 * shows all, [ and ] change the head, x switches the key off.
 *
 * @param {HTMLElement} element
 * @param {Store} store
 * @param {Session} session
 */
export function bindKeyboard(element, store, session) {
  element.addEventListener("keydown", (event) => {
    const { answer } = store.state;
    if (!answer || event.ctrlKey || event.metaKey || event.altKey) return;
    const size = { rows: answer.queries, columns: answer.keys };
    if (moveCell(event, size) || moveView(event.key, size) || act(event.key))
      event.preventDefault();
  });

  /** @param {KeyboardEvent} event @param {{rows: number, columns: number}} size */
  function moveCell({ key, shiftKey }, size) {
    const { cell, view } = store.state;
    const far = shiftKey ? FAR : 1;
    let next = null;
    if (key in ARROWS)
      next = { query: cell.query + ARROWS[key][0] * far, key: cell.key + ARROWS[key][1] * far };
    if (key === "Home") next = { ...cell, key: 0 };
    if (key === "End") next = { ...cell, key: size.columns - 1 };
    if (!next) return false;
    const within = {
      query: Math.min(size.rows - 1, Math.max(0, next.query)),
      key: Math.min(size.columns - 1, Math.max(0, next.key)),
    };
    store.set({ cell: within, hover: null, view: reveal(view, size, within) });
    return true;
  }

  /** @param {string} key @param {{rows: number, columns: number}} size */
  function moveView(key, size) {
    const { view } = store.state;
    if (key === "+" || key === "=") store.set({ view: zoom(view, size, 1.5) });
    else if (key === "-") store.set({ view: zoom(view, size, 1 / 1.5) });
    else if (key === "0") store.set({ view: showAll(size) });
    else return false;
    return true;
  }

  /** @param {string} key */
  function act(key) {
    const { answer, head, cell } = store.state;
    if (key === "x") session.switchKey(cell.key);
    else if (answer && (key === "[" || key === "]")) {
      const at = answer.choices.indexOf(head) + (key === "]" ? 1 : -1);
      store.set({ head: answer.choices[(at + answer.choices.length) % answer.choices.length] });
    } else return false;
    return true;
  }
}
