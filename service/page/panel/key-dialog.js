/** Asks for the key of the API, where the server wants one. */

import { keepKey, readKey } from "../server/key.js";
import { find } from "../view/elements.js";

/**
 * Wait until a person has typed in a key, or closed the dialog without one.
 *
 * @returns {Promise<boolean>} whether there is a key
 */
export function askForKey() {
  /** @type {HTMLDialogElement} */
  const dialog = find("key-dialog");
  /** @type {HTMLFormElement} */
  const form = find("key-form");
  /** @type {HTMLInputElement} */
  const input = find("key");
  find("key-note").textContent = readKey() ? "The server does not know this key." : "";
  input.value = "";
  if (!dialog.open) dialog.showModal();
  return new Promise((resolve) => {
    form.onsubmit = () => {
      keepKey(input.value.trim());
      resolve(true); // the form closes its dialog
    };
    dialog.onclose = () => resolve(false);
  });
}
