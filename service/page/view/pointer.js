/** The mouse, the pen and fingers on the large picture. */

import { isAll, pan, zoom } from "../picture/view.js";

/** @typedef {import("../store.js").Store} Store */
/** @typedef {import("../session.js").Session} Session */
/** @typedef {import("./heat-map.js").HeatMap} HeatMap */

const STILL = 4;
const WHEEL_SPEED = 0.0015;

/**
 * Pointing shows a cell, a click chooses it, a click on a key's name switches the key off, dragging
 * moves, the wheel and two fingers zoom. A finger that drags all of the picture, which cannot be
 * moved, points, and chooses where it leaves.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {Store} store
 * @param {Session} session
 * @param {HeatMap} map
 */
export function bindPointer(canvas, store, session, map) {
  /** @type {Map<number, {x: number, y: number}>} */
  const pointers = new Map();
  let moved = 0;

  canvas.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, place(event));
    moved = pointers.size === 1 ? 0 : Infinity;
    if (event.pointerType === "mouse") canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const last = pointers.get(event.pointerId);
    const now = place(event);
    if (!last) {
      hover(now);
      return;
    }
    moved += Math.abs(now.x - last.x) + Math.abs(now.y - last.y);
    if (pointers.size === 2) pinch(event.pointerId, last, now);
    else if (moved > STILL && isAll(store.state.view, size())) hover(now);
    else if (moved > STILL) drag(last, now);
    pointers.set(event.pointerId, now);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (moved <= STILL && pointers.size === 1) click(place(event));
    else if (event.pointerType === "touch" && store.state.hover) keepHover(store.state.hover);
    pointers.delete(event.pointerId);
  });
  canvas.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
  canvas.addEventListener("pointerleave", () => store.set({ hover: null }));
  canvas.addEventListener("wheel", wheel, { passive: false });
  // Two fingers that move together would scroll the page, and end their events here.
  const keepPage = (/** @type {TouchEvent} */ event) =>
    event.touches.length > 1 && event.preventDefault();
  canvas.addEventListener("touchmove", keepPage, { passive: false });
  store.watch(["view", "answer"], () => {
    // Whoever sees all of the picture scrolls the page with a finger on it, not the picture.
    canvas.style.touchAction = isAll(store.state.view, size()) ? "pan-y" : "none";
  });

  const size = () => ({
    rows: store.state.answer?.queries ?? 1,
    columns: store.state.answer?.keys ?? 1,
  });

  /** @param {{x: number, y: number}} at */
  function hover(at) {
    const found = map.locate(at.x, at.y);
    canvas.style.cursor = found?.part === "keys" ? "pointer" : "crosshair";
    const cell = found?.part === "cells" ? { query: found.query, key: found.key } : null;
    const last = store.state.hover;
    if (cell?.query !== last?.query || cell?.key !== last?.key) store.set({ hover: cell });
  }

  /** @param {{x: number, y: number}} at */
  function click(at) {
    const found = map.locate(at.x, at.y);
    if (found?.part === "keys") session.switchKey(found.key);
    else if (found) store.set({ cell: { query: found.query, key: found.key } });
  }

  /** @param {{query: number, key: number}} cell */
  const keepHover = (cell) => store.set({ cell, hover: null });

  /** @param {{x: number, y: number}} last @param {{x: number, y: number}} now */
  function drag(last, now) {
    const { view } = store.state;
    if (!map.figure) return;
    const { plot } = map.figure.layout;
    const columns = ((last.x - now.x) / plot.width) * view.columns;
    const rows = ((last.y - now.y) / plot.height) * view.rows;
    store.set({ view: pan(view, size(), columns, rows), hover: null });
  }

  /** @param {number} id @param {{x: number, y: number}} last @param {{x: number, y: number}} now */
  function pinch(id, last, now) {
    const [other] = [...pointers].filter(([key]) => key !== id).map(([, at]) => at);
    const factor = distance(now, other) / Math.max(1, distance(last, other));
    approach(halfway(last, other), factor);
    drag(halfway(last, other), halfway(now, other));
  }

  /** @param {WheelEvent} event */
  function wheel(event) {
    const out = event.deltaY > 0 && isAll(store.state.view, size());
    if (out || !map.locate(event.offsetX, event.offsetY)) return; // the page scrolls
    event.preventDefault();
    approach({ x: event.offsetX, y: event.offsetY }, Math.exp(-event.deltaY * WHEEL_SPEED));
  }

  /** @param {{x: number, y: number}} at @param {number} factor */
  function approach(at, factor) {
    if (!map.figure) return;
    const { plot } = map.figure.layout;
    const anchor = { x: (at.x - plot.x) / plot.width, y: (at.y - plot.y) / plot.height };
    store.set({ view: zoom(store.state.view, size(), factor, anchor) });
  }
}

/** @param {PointerEvent} event */
const place = (event) => ({ x: event.offsetX, y: event.offsetY });

/** @param {{x: number, y: number}} a @param {{x: number, y: number}} b */
const halfway = (a, b) => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });

/** @param {{x: number, y: number}} a @param {{x: number, y: number}} b */
const distance = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);
