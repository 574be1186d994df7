/** Elements of the page. */

/**
 * The element that index.html gives a name.
 *
 * @template {HTMLElement} [T=HTMLElement]
 * @param {string} id
 * @returns {T}
 */
export function find(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no #${id}`);
  return /** @type {T} */ (element);
}

/**
 * A new element with a text.
 *
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {string} [text]
 * @param {string} [className]
 * @returns {HTMLElementTagNameMap[K]}
 */
export function make(tag, text = "", className = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  if (className) element.className = className;
  return element;
}

/**
 * Fill a list to choose from.
 *
 * @param {HTMLSelectElement} select
 * @param {{value: string, text: string}[]} options
 * @param {string} chosen
 */
export function fillSelect(select, options, chosen) {
  select.replaceChildren(...options.map(({ value, text }) => new Option(text, value)));
  select.value = chosen;
}

/**
 * Radio buttons of one name: show which is chosen, and tell when another one is.
 *
 * @param {string} name
 * @param {(value: string) => void} choose
 * @returns {(value: string) => void} shows a choice
 */
export function bindRadios(name, choose) {
  const radios = [...document.querySelectorAll(`input[name="${name}"]`)];
  for (const radio of /** @type {HTMLInputElement[]} */ (radios)) {
    radio.addEventListener("change", () => choose(radio.value));
  }
  return (value) => {
    for (const radio of /** @type {HTMLInputElement[]} */ (radios))
      radio.checked = radio.value === value;
  };
}
