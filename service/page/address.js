/** The view in the page's address, so that a link shows the same again. */

/** @typedef {import("./store.js").State} State */

/**
 * What an address says.
 *
 * @param {URLSearchParams} query
 * @returns {{wish: {model: string, version: string}, patch: Partial<State>}}
 */
export function readAddress(query) {
  const wish = { model: query.get("model") ?? "", version: query.get("version") ?? "" };
  /** @type {Partial<State>} */
  const patch = {};
  const head = query.get("head");
  if (head === "mean") patch.head = "mean";
  else if (isNumber(head)) patch.head = Number(head);
  const item = query.get("item");
  if (isNumber(item)) patch.item = Number(item);
  const cell = (query.get("cell") ?? "").split(",");
  if (cell.length === 2 && cell.every(isNumber)) {
    patch.cell = { query: Number(cell[0]), key: Number(cell[1]) };
  }
  if (query.get("scale") === "log") patch.scale = "log";
  if (query.get("range") === "head") patch.range = "head";
  const causal = query.get("causal");
  if (causal === "top_left" || causal === "bottom_right") patch.causal = causal;
  const random = (query.get("random") ?? "").split(",");
  if (random.length === 3 && random.every(isNumber)) {
    const [queries, keys, seed] = random.map(Number);
    patch.source = "random";
    patch.random = { queries: Math.max(1, queries), keys: Math.max(1, keys), seed };
  }
  return { wish, patch };
}

/** @param {string | null} text */
const isNumber = (text) => text !== null && /^\d{1,9}$/.test(text);

/**
 * The address of a state. Opened files are not in it: nobody else has them.
 *
 * @param {State} state
 * @returns {string} a query string, with its question mark
 */
export function writeAddress(state) {
  const { model, version, head, item, cell, scale, range, causal, source, random } = state;
  const query = new URLSearchParams();
  if (model) query.set("model", model.name);
  if (model && version !== model.versions[model.versions.length - 1]) query.set("version", version);
  query.set("head", String(head));
  if (item) query.set("item", String(item));
  if (cell.query || cell.key) query.set("cell", `${cell.query},${cell.key}`);
  if (scale === "log") query.set("scale", scale);
  if (range === "head") query.set("range", range);
  if (causal) query.set("causal", causal);
  if (source === "random") query.set("random", `${random.queries},${random.keys},${random.seed}`);
  return `?${query.toString().replaceAll("%2C", ",")}`;
}
