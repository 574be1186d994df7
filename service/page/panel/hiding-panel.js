/** Which keys are hidden: the later ones, and those that are switched off. */

import { InputError } from "../formats/dtypes.js";
import { readKeyList, writeKeyList } from "../input/key-list.js";
import { pickHidden, pickLabels } from "../shown.js";
import { bindRadios, find, make } from "../view/elements.js";

/** @typedef {import("../store.js").State} State */
/** @typedef {import("../input/input.js").Causal} Causal */

const MOST_SWITCHES = 96;

/**
 * @param {import("../store.js").Store} store
 * @param {import("../session.js").Session} session
 */
export function bindHidingPanel(store, session) {
  const showCausal = bindRadios("causal", (value) => {
    session.hideLater(value === "off" ? false : /** @type {Causal} */ (value));
  });
  store.watch(["causal"], ({ causal }) => showCausal(causal || "off"));
  bindList(store, session);
  const switches = find("switches");
  switches.addEventListener("click", (event) => {
    const button = /** @type {HTMLElement} */ (event.target).closest("button");
    if (button) session.switchKey(Number(button.dataset.key));
  });
  store.watch(["input", "hidden", "item"], (state) => showSwitches(switches, state));
  store.watch(["input"], ({ input }) => {
    /** @type {HTMLFieldSetElement} */ (find("hiding")).disabled = !input;
  });
}

/** @param {import("../store.js").Store} store @param {import("../session.js").Session} session */
function bindList(store, session) {
  /** @type {HTMLInputElement} */
  const list = find("hidden-keys");
  list.addEventListener("change", () => {
    const note = find("hidden-note");
    note.textContent = "";
    try {
      session.hide(readKeyList(list.value, store.state.input?.keys ?? 0));
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      note.textContent = error.message;
    }
  });
  find("show-all-keys").addEventListener("click", () => session.hide([]));
  store.watch(
    ["hidden", "item"],
    ({ hidden, item }) => (list.value = writeKeyList(hidden[item] ?? [])),
  );
}

/** A switch for each key; where there are too many, the list alone. */
/** @param {HTMLElement} place @param {State} state */
function showSwitches(place, state) {
  const { input } = state;
  const keys = input && input.keys <= MOST_SWITCHES ? input.keys : 0;
  const words = pickLabels(state).columns;
  const hidden = pickHidden(state);
  while (place.childElementCount > keys) place.lastElementChild?.remove();
  while (place.childElementCount < keys) place.append(makeSwitch(place.childElementCount));
  [...place.children].forEach((button, key) => {
    button.textContent = words[key] ?? String(key);
    button.setAttribute("aria-pressed", String(!hidden.has(key)));
  });
}

/** @param {number} key */
function makeSwitch(key) {
  const button = make("button", "", "switch");
  button.type = "button";
  button.dataset.key = String(key);
  button.title = `key ${key}`;
  return button;
}
