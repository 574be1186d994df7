/** How the picture is coloured, and what part of it is seen. */

import { showAll, zoom } from "../picture/view.js";
import { nameHead } from "../shown.js";
import { bindRadios, find } from "../view/elements.js";

/** @typedef {import("../picture/scale.js").ScaleKind} ScaleKind */

const STEP = 1.6;

/** @param {import("../store.js").Store} store */
export function bindPicturePanel(store) {
  const showScale = bindRadios("scale", (scale) =>
    store.set({ scale: /** @type {ScaleKind} */ (scale) }),
  );
  const showRange = bindRadios("range", (range) =>
    store.set({ range: range === "head" ? "head" : "shared" }),
  );
  store.watch(["scale", "range"], ({ scale, range }) => {
    showScale(scale);
    showRange(range);
  });
  const size = () => ({
    rows: store.state.answer?.queries ?? 1,
    columns: store.state.answer?.keys ?? 1,
  });
  const approach = (/** @type {number} */ factor) =>
    store.set({ view: zoom(store.state.view, size(), factor) });
  find("zoom-in").addEventListener("click", () => approach(STEP));
  find("zoom-out").addEventListener("click", () => approach(1 / STEP));
  find("zoom-all").addEventListener("click", () => store.set({ view: showAll(size()) }));
  store.watch(["answer", "head"], ({ answer, head }) => {
    if (!answer) return;
    find("head-name").textContent = nameHead(head);
    find("head-size").textContent = `${answer.queries} × ${answer.keys}`;
  });
}
