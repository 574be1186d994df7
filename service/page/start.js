/** Puts the page together. */

import { readAddress, writeAddress } from "./address.js";
import { bindHidingPanel } from "./panel/hiding-panel.js";
import { bindInputPanel } from "./panel/input-panel.js";
import { askForKey } from "./panel/key-dialog.js";
import { bindModelPanel } from "./panel/model-panel.js";
import { bindOutputPanel } from "./panel/output-panel.js";
import { bindPicturePanel } from "./panel/picture-panel.js";
import { bindStatus } from "./panel/status.js";
import { Session } from "./session.js";
import { Store } from "./store.js";
import { HeatMap } from "./view/heat-map.js";
import { Readout } from "./view/readout.js";
import { RowChart } from "./view/row-chart.js";
import { Thumbnails } from "./view/thumbnails.js";

/** @typedef {import("./store.js").State} State */

/** Browsers refuse, or slow down, whoever changes the address hundreds of times in half a minute. */
const ADDRESS_MS = 250;

const store = new Store();
const session = new Session(store, askForKey);

bindStatus(store, session);
bindModelPanel(store, session);
bindInputPanel(store, session);
bindHidingPanel(store, session);
bindPicturePanel(store);
new Thumbnails(store);
const map = new HeatMap(store, session);
bindOutputPanel(store, session, map);
new RowChart(store);
new Readout(store);

const { wish, patch } = readAddress(new URLSearchParams(location.search));
store.set({ ...store.state, ...patch });
const addressed = /** @type {(keyof State)[]} */ ([
  "answer",
  "head",
  "item",
  "cell",
  "scale",
  "range",
  "causal",
  "random",
  "source",
]);
let writing = 0;
store.watch(addressed, () => {
  clearTimeout(writing);
  writing = setTimeout(() => {
    const { state } = store;
    if (state.model && state.answer) history.replaceState(null, "", writeAddress(state));
  }, ADDRESS_MS);
});
await session.start(wish);
