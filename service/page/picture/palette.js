/** The colours of pictures: those of weights from the map, all others from the style sheet. */

import { COLOURS, pickColour } from "./viridis.js";

/** @typedef {import("./colours.js").Palette} Palette */

/**
 * Colours by the names of the style sheet's custom properties.
 *
 * @typedef {Record<"surface" | "ink" | "muted" | "line" | "zero" | "nan" | "accent" | "bar", string>} Inks
 */

/** The colours of light or dark, whichever counts now. @returns {Inks} */
export function readInks() {
  const style = getComputedStyle(document.documentElement);
  const names = ["surface", "ink", "muted", "line", "zero", "nan", "accent", "bar"];
  const colours = names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]);
  return /** @type {Inks} */ (Object.fromEntries(colours));
}

/** Colours as pixels. @param {Inks} inks @returns {Palette} */
export function makePalette(inks) {
  const map = Uint32Array.from({ length: COLOURS }, (_, index) => packPixel(pickColour(index)));
  return { map, zero: packPixel(readHex(inks.zero)), nan: packPixel(readHex(inks.nan)) };
}

/** @param {number[]} colour red, green, blue */
function packPixel(colour) {
  return new Uint32Array(Uint8Array.of(colour[0], colour[1], colour[2], 255).buffer)[0];
}

/** @param {string} text `#rrggbb` */
const readHex = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
