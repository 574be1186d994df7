/** What a person does with the server: choose a model, give it tensors, and let it attend. */

import { Answer } from "./answer/answer.js";
import { InputError } from "./formats/dtypes.js";
import { readFile, readSafetensors } from "./formats/file.js";
import { decodeJson } from "./formats/json.js";
import { hideKeys, makeInput } from "./input/input.js";
import { drawTensors } from "./input/random.js";
import { showAll } from "./picture/view.js";
import { attend, listModels, readExample, readModel, ServerError } from "./server/server.js";

/** @typedef {import("./store.js").Store} Store */
/** @typedef {import("./formats/file.js").Contents} Contents */
/** @typedef {import("./store.js").State["source"]} Source */

const NOTHING_SERVED = "no model is served; load one, or open a file of weights";

/** Runs what is asked, one request at a time: a newer one ends the one before it. */
export class Session {
  #running = new AbortController();

  /**
   * @param {Store} store
   * @param {() => Promise<boolean>} askForKey waits until a person has typed one in, or did not
   *   want to
   */
  constructor(store, askForKey) {
    this.store = store;
    this.askForKey = askForKey;
  }

  /**
   * Begin: show what is served, and something true at once.
   *
   * @param {{model: string, version: string}} wish of the address; empty for the first
   */
  async start(wish) {
    await this.#guard(async (signal) => {
      const models = await listModels(signal);
      this.store.set({ models });
      if (models.length === 0) throw new InputError(NOTHING_SERVED);
      await this.#open(wish.model || models[0], wish.version, signal);
    });
  }

  /** Ask another model. @param {string} name @param {string} [version] */
  async openModel(name, version = "") {
    await this.#guard((signal) => this.#open(name, version, signal));
  }

  /** @param {string} name @param {string} version @param {AbortSignal} signal */
  async #open(name, version, signal) {
    const model = await readModel(name, version, signal);
    const highest = model.versions[model.versions.length - 1];
    this.store.set({ model, version: version || highest });
    const { source, input } = this.store.state;
    if (source === "example" || source === "random") await this.#draw(source, signal);
    else if (input) await this.#ask(signal);
  }

  /** Take the model's example, or random tensors where it has none. */
  async takeExample() {
    await this.#guard((signal) => this.#draw("example", signal));
  }

  /** Draw random tensors. @param {{queries: number, keys: number, seed: number}} random */
  async takeRandom(random) {
    this.store.set({ random });
    await this.#guard((signal) => this.#draw("random", signal));
  }

  /** @param {"example" | "random"} source @param {AbortSignal} signal */
  async #draw(source, signal) {
    const { model, version, random } = this.store.state;
    if (!model) return;
    const example = source === "example" ? await readExample(model.name, version, signal) : null;
    if (example) {
      await this.#take("example", readSafetensors(example), signal);
      return;
    }
    const { d_model, kdim, vdim } = model.properties;
    const widths = { d_model: Number(d_model), kdim: Number(kdim), vdim: Number(vdim) };
    const tensors = drawTensors(widths, random.queries, random.keys, random.seed);
    await this.#take("random", { tensors, options: {} }, signal);
  }

  /** Open a file. @param {File} file */
  async takeFile(file) {
    await this.#guard(async (signal) => {
      const contents = await readFile(await readBytes(file));
      signal.throwIfAborted();
      this.store.set({ fileName: file.name });
      await this.#take("file", contents, signal);
    });
  }

  /** Take what was pasted. @param {string} text */
  async takeJson(text) {
    await this.#guard((signal) => this.#take("json", decodeJson(text), signal));
  }

  /** @param {Source} source @param {Contents} contents @param {AbortSignal} signal */
  async #take(source, contents, signal) {
    if (contents.tensors.has("attention_weights") && !contents.tensors.has("query")) {
      const answer = new Answer(contents.tensors);
      this.store.set({ source, input: null, hidden: [], facts: null });
      this.#show(answer);
      return;
    }
    const input = makeInput(contents);
    const { causal } = this.store.state;
    this.store.set({ source, input, hidden: input.hidden, causal: input.causal || causal });
    await this.#ask(signal);
  }

  /**
   * Switch a key of the item that is shown off, or on again.
   *
   * @param {number} key
   */
  async switchKey(key) {
    const { hidden, item } = this.store.state;
    const keys = hidden[item] ?? [];
    const changed = keys.includes(key) ? keys.filter((one) => one !== key) : [...keys, key];
    await this.hide(changed.sort((a, b) => a - b));
  }

  /** Hide exactly these keys of the item that is shown. @param {number[]} keys ascending */
  async hide(keys) {
    const { hidden, item, input } = this.store.state;
    if (!input) return;
    this.store.set({ hidden: hidden.map((others, other) => (other === item ? keys : others)) });
    await this.run();
  }

  /** Hide what comes later. @param {import("./input/input.js").Causal} causal */
  async hideLater(causal) {
    this.store.set({ causal });
    await this.run();
  }

  /** Ask again. */
  async run() {
    await this.#guard((signal) => this.#ask(signal));
  }

  /** Wait no longer. */
  cancel() {
    this.#running.abort();
    this.store.set({ busy: false });
  }

  /** What the page asks, or would ask. @returns {import("./server/server.js").Question | null} */
  get question() {
    const { model, version, input, hidden, causal } = this.store.state;
    if (!model || !input) return null;
    return { model: model.name, version, tensors: hideKeys(input, hidden), causal };
  }

  /** @param {AbortSignal} signal */
  async #ask(signal) {
    const { question } = this;
    if (!question) return;
    const { tensors, facts } = await attend(question, signal);
    this.store.set({ facts });
    this.#show(new Answer(tensors));
  }

  /** @param {Answer} answer */
  #show(answer) {
    const { answer: last, item, head, cell, view } = this.store.state;
    const size = { rows: answer.queries, columns: answer.keys };
    const isSame = last?.queries === answer.queries && last?.keys === answer.keys;
    this.store.set({
      answer,
      item: item < answer.items ? item : 0,
      head: answer.choices.includes(head) ? head : 0,
      cell: {
        query: Math.min(cell.query, answer.queries - 1),
        key: Math.min(cell.key, answer.keys - 1),
      },
      hover: null,
      view: isSame ? view : showAll(size),
    });
  }

  /**
   * Do something instead of what is being done; what goes wrong is shown, and a key that is missing
   * is asked for.
   *
   * @param {(signal: AbortSignal) => Promise<unknown>} work
   */
  async #guard(work) {
    this.#running.abort();
    const running = new AbortController();
    this.#running = running;
    this.store.set({ busy: true, error: null });
    try {
      await work(running.signal);
    } catch (error) {
      if (running.signal.aborted) return;
      if (error instanceof ServerError && error.status === 401) {
        if (await this.askForKey()) {
          await this.#guard(work);
          return;
        }
      }
      this.store.set({ error: describe(error) });
    }
    if (!running.signal.aborted) this.store.set({ busy: false });
  }
}

/** @param {unknown} error */
function describe(error) {
  if (error instanceof ServerError) return { status: error.status, message: error.message };
  if (error instanceof InputError) return { status: null, message: error.message };
  reportError(error);
  return { status: null, message: `the page failed: ${error}` };
}

/** @param {File} file */
async function readBytes(file) {
  try {
    return await file.arrayBuffer();
  } catch {
    throw new InputError(`'${file.name}' cannot be read; is it a folder, or gone?`);
  }
}
