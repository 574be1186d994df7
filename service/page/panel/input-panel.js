/** Where the tensors come from, and the words of their tokens. */

import { bindRadios, fillSelect, find } from "../view/elements.js";
import { readLabels } from "../input/input.js";

/** @typedef {import("../store.js").State} State */

/**
 * @param {import("../store.js").Store} store
 * @param {import("../session.js").Session} session
 */
export function bindInputPanel(store, session) {
  const panes = ["random", "file", "json"];
  const open = (/** @type {string} */ source) => {
    for (const pane of panes) find(`${pane}-pane`).hidden = pane !== source;
  };
  const show = bindRadios("source", (source) => {
    open(source);
    if (source === "example") session.takeExample();
    if (source === "random") session.takeRandom(readRandom());
  });
  store.watch(["source"], ({ source }) => {
    show(source);
    open(source);
  });
  find("random-pane").addEventListener("change", () => session.takeRandom(readRandom()));
  find("draw").addEventListener("click", () => {
    /** @type {HTMLInputElement} */
    const seed = find("seed");
    seed.value = String(Number(seed.value) + 1);
    session.takeRandom(readRandom());
  });
  /** @type {HTMLTextAreaElement} */
  const json = find("json");
  find("take-json").addEventListener("click", () => session.takeJson(json.value));
  find("run").addEventListener("click", () => session.run());
  bindFiles(store, session);
  bindLabels(store);
  bindItems(store);
  store.watch(["random"], ({ random }) => {
    for (const [name, value] of Object.entries(random)) {
      /** @type {HTMLInputElement} */ (find(name)).value = String(value);
    }
  });
}

function readRandom() {
  const [queries, keys, seed] = ["queries", "keys", "seed"].map((id) => {
    const { value, min } = /** @type {HTMLInputElement} */ (find(id));
    return Math.max(Number(min), Math.trunc(Number(value)) || 0);
  });
  return { queries, keys, seed };
}

/** @param {import("../store.js").Store} store @param {import("../session.js").Session} session */
function bindFiles(store, session) {
  /** @type {HTMLInputElement} */
  const file = find("file");
  file.addEventListener("change", () => {
    if (file.files?.[0]) session.takeFile(file.files[0]);
    file.value = ""; // so that the same file can be opened again
  });
  find("open-file").addEventListener("click", () => file.click());
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) document.body.classList.remove("dropping");
  });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    const dropped = event.dataTransfer?.files[0];
    if (dropped) session.takeFile(dropped);
  });
  store.watch(["fileName"], ({ fileName }) => (find("file-name").textContent = fileName));
}

/** @param {import("../store.js").Store} store */
function bindLabels(store) {
  /** @type {HTMLInputElement} */
  const labels = find("labels");
  labels.addEventListener("change", () => {
    const { input, item } = store.state;
    if (!input) return;
    const words = labels.value.split(/\s+/).filter(Boolean);
    const replace = (/** @type {string[][]} */ old, /** @type {number} */ tokens) => {
      const [row] = words.length ? readLabels(words, 1, tokens) : [[]];
      const lists = Array.from({ length: input.items }, (_, at) => old[at] ?? []);
      return row ? lists.map((list, at) => (at === item ? row : list)) : old;
    };
    const isSame = input.queries === input.keys;
    const fits = words.length === 0 || words.length === input.queries;
    find("labels-note").textContent = fits
      ? ""
      : `${words.length} words for ${input.queries} tokens`;
    const keyLabels = isSame ? replace(input.keyLabels, input.keys) : input.keyLabels;
    store.set({ input: { ...input, labels: replace(input.labels, input.queries), keyLabels } });
  });
  store.watch(["input", "item"], ({ input, item }) => {
    labels.value = input?.labels[item]?.join(" ") ?? "";
    labels.disabled = !input;
  });
}

/** @param {import("../store.js").Store} store */
function bindItems(store) {
  /** @type {HTMLSelectElement} */
  const items = find("item");
  items.addEventListener("change", () => store.set({ item: Number(items.value) }));
  store.watch(["answer", "item", "input"], ({ answer, item, input }) => {
    const count = answer?.items ?? 1;
    find("item-field").hidden = count < 2;
    const options = Array.from({ length: count }, (_, at) => {
      const words = input?.labels[at]?.join(" ") ?? "";
      return { value: String(at), text: words ? `${at}: ${words.slice(0, 60)}` : String(at) };
    });
    fillSelect(items, options, String(Math.min(item, count - 1)));
  });
}
