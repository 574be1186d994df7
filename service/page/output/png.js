/** The large picture as a file. */

import { drawFigure } from "../picture/figure.js";
import { FONT } from "../picture/layout.js";

/** @typedef {import("../picture/figure.js").Figure} Figure */

/** Device pixels in a CSS pixel: for paper, whatever the screen has. */
export const RATIO = 2;
export const TITLE = 28;

/**
 * Draw a picture with a line above it that says what it shows.
 *
 * @param {Figure} figure
 * @param {string} title
 * @returns {Promise<Blob>}
 */
export async function writePng(figure, title) {
  const canvas = document.createElement("canvas");
  canvas.width = figure.layout.width * RATIO;
  canvas.height = (figure.layout.height + TITLE) * RATIO;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  drawFigure(context, figure, RATIO, { top: TITLE });
  context.setTransform(RATIO, 0, 0, RATIO, 0, 0);
  context.font = FONT;
  context.fillStyle = figure.inks.muted;
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.fillText(title, 4, TITLE / 2);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no PNG"))), "image/png");
  });
}
