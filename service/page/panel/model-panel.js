/** Which model and version is asked. */

import { fillSelect, find } from "../view/elements.js";

/**
 * @param {import("../store.js").Store} store
 * @param {import("../session.js").Session} session
 */
export function bindModelPanel(store, session) {
  /** @type {HTMLSelectElement} */
  const models = find("model");
  /** @type {HTMLSelectElement} */
  const versions = find("version");
  models.addEventListener("change", () => session.openModel(models.value));
  versions.addEventListener("change", () => session.openModel(models.value, versions.value));
  store.watch(["models", "model", "version"], ({ models: names, model, version }) => {
    fillSelect(
      models,
      names.map((name) => ({ value: name, text: name })),
      model?.name ?? "",
    );
    const options = (model?.versions ?? []).map((each) => ({ value: each, text: each }));
    fillSelect(versions, options, version);
  });
}
