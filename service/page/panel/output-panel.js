/** Taking away what is shown: as a picture, as numbers, as code. */

import { FILE, writeCode } from "../code/code.js";
import { encodeNpz } from "../formats/npz.js";
import { writeCsv } from "../output/csv.js";
import { download } from "../output/download.js";
import { writePng } from "../output/png.js";
import { readKey } from "../server/key.js";
import { nameHead, pickItem, pickLabels, pickMatrix } from "../shown.js";
import { bindRadios, find } from "../view/elements.js";

/** @typedef {import("../store.js").Store} Store */
/** @typedef {import("../session.js").Session} Session */
/** @typedef {import("../view/heat-map.js").HeatMap} HeatMap */
/** @typedef {import("../code/code.js").Language} Language */

/** @param {Store} store @param {Session} session @param {HeatMap} map */
export function bindOutputPanel(store, session, map) {
  find("save-png").addEventListener("click", async () => {
    if (map.figure)
      download(await writePng(map.figure, nameShown(store)), `${nameFile(store)}.png`);
  });
  find("save-csv").addEventListener("click", () => {
    const { answer } = store.state;
    if (!answer) return;
    const csv = writeCsv(pickMatrix(store.state, answer), pickLabels(store.state));
    download(csv, `${nameFile(store)}.csv`);
  });
  find("save-npz").addEventListener("click", () => {
    const { answer } = store.state;
    if (answer) download(encodeNpz(answer.tensors), "attention.npz");
  });
  bindCode(store, session);
}

/** @param {Store} store @param {Session} session */
function bindCode(store, session) {
  /** @type {HTMLDialogElement} */
  const dialog = find("code-dialog");
  /** @type {Language} */
  let language = "curl";
  const write = () => {
    const { question } = session;
    if (!question) return;
    const { text, needsFile } = writeCode(language, question, readKey() !== "");
    find("code").textContent = text;
    find("code-file").hidden = !needsFile;
    find("copied").textContent = "";
    showLanguage(language);
  };
  const showLanguage = bindRadios("language", (chosen) => {
    language = /** @type {Language} */ (chosen);
    write();
  });
  find("copy-as").addEventListener("click", () => {
    write();
    dialog.showModal();
  });
  find("close-code").addEventListener("click", () => dialog.close());
  find("save-request").addEventListener("click", () => {
    if (session.question) download(encodeNpz(session.question.tensors), FILE);
  });
  find("copy").addEventListener("click", async () => {
    find("copied").textContent = (await copy(find("code")))
      ? "Copied"
      : "Select the text to copy it";
  });
  store.watch(["input"], ({ input }) => {
    /** @type {HTMLButtonElement} */ (find("copy-as")).disabled = !input;
  });
}

/** Browsers let pages write to the clipboard over TLS and on this machine alone. */
/** @param {HTMLElement} source */
async function copy(source) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(source.textContent ?? "");
    return true;
  }
  getSelection()?.selectAllChildren(source);
  return false;
}

/** @param {Store} store */
function nameShown({ state }) {
  const { model, version, head, scale, answer } = state;
  const item = answer && answer.items > 1 ? [`item ${pickItem(state, answer)}`] : [];
  const source = state.input && model ? [`${model.name}, version ${version}`] : [state.fileName];
  return [...source, ...item, nameHead(head).toLowerCase(), `${scale} scale`].join(" · ");
}

/** @param {Store} store */
function nameFile({ state: { model, head, input } }) {
  return `${input && model ? model.name : "attention"}-${head === "mean" ? "mean" : `head-${head}`}`;
}
