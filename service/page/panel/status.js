/** The quiet corner: which model answered, where, how, and how fast; and what went wrong. */

import { keepKey, readKey } from "../server/key.js";
import { find, make } from "../view/elements.js";

/** @typedef {import("../store.js").State} State */

/** What is shorter is not spoken of. */
const PATIENCE_MS = 300;

/**
 * @param {import("../store.js").Store} store
 * @param {import("../session.js").Session} session
 */
export function bindStatus(store, session) {
  const error = find("error");
  store.watch(["error"], ({ error: found }) => {
    error.hidden = !found;
    // What is shown is then not the answer to what was asked.
    document.body.classList.toggle("stale", found !== null && found.status !== null);
    const status = found?.status ? `${found.status} ` : "";
    error.replaceChildren(make("strong", status), found?.message ?? "");
  });
  bindWaiting(store, session);
  store.watch(["model", "version", "facts", "input"], (state) => {
    const facts = listFacts(state).flatMap(([name, text]) => [make("dt", name), make("dd", text)]);
    find("service-facts").replaceChildren(...facts);
  });
  const forget = find("forget-key");
  store.watch(["models"], () => (forget.hidden = readKey() === ""));
  forget.addEventListener("click", () => {
    keepKey("");
    location.reload();
  });
}

/** @param {import("../store.js").Store} store @param {import("../session.js").Session} session */
function bindWaiting(store, session) {
  const cancel = find("cancel");
  let patience = 0;
  const show = (/** @type {boolean} */ isLong) => {
    find("busy").textContent = isLong ? "computing …" : "";
    cancel.hidden = !isLong;
  };
  store.watch(["busy"], ({ busy }) => {
    document.body.classList.toggle("busy", busy);
    clearTimeout(patience);
    if (busy) patience = setTimeout(() => show(true), PATIENCE_MS);
    else show(false);
  });
  cancel.addEventListener("click", () => session.cancel());
}

/** @param {State} state @returns {[string, string][]} */
function listFacts({ model, version, facts }) {
  if (!model) return [];
  const { provider, num_heads: heads, d_model: width } = model.properties;
  /** @type {[string, string][]} */
  const served = [
    ["Model", `${model.name}, version ${version}: ${heads} heads, ${width} wide`],
    ["Provider", provider],
  ];
  if (!facts) return served;
  return [
    ...served,
    ["Graph", facts.graph],
    ["Queue", writeTime(facts.queue_ms)],
    ["Compute", writeTime(facts.compute_ms)],
    ["Answer", `${writeBytes(facts.bytes)} in ${writeTime(facts.total_ms)}`],
  ];
}

/** @param {number} ms */
const writeTime = (ms) => `${ms < 10 ? ms.toFixed(2) : Math.round(ms)} ms`;

/** @param {number} bytes */
const writeBytes = (bytes) =>
  bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
