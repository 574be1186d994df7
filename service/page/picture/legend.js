/** Which weight a colour stands for. */

import { FONT } from "./layout.js";
import { chooseTicks, locate, writeWeight } from "./scale.js";
import { COLOURS, pickColour } from "./viridis.js";

/** @typedef {import("./layout.js").Layout} Layout */
/** @typedef {import("./palette.js").Inks} Inks */
/** @typedef {import("./scale.js").Scale} Scale */

const WIDTH = 12;
const SPACE = 16;
const SWATCH = 28;
const MOST_HEIGHT = 320;
/** So many colours are bridged by a gradient: 0 and 255 are among those that are named. */
const STRIDE = 15;

/**
 * Draw the legend to the right of the cells.
 *
 * @param {CanvasRenderingContext2D} context in CSS pixels
 * @param {Layout} layout
 * @param {Scale} scale
 * @param {Inks} inks
 */
export function drawLegend(context, { plot }, scale, inks) {
  const x = plot.x + plot.width + SPACE;
  const height = Math.min(MOST_HEIGHT, Math.max(60, plot.height - SWATCH));
  context.font = FONT;
  context.textAlign = "left";
  context.textBaseline = "middle";
  const colours = context.createLinearGradient(0, plot.y + height, 0, plot.y);
  for (let index = 0; index < COLOURS; index += STRIDE) {
    colours.addColorStop(index / (COLOURS - 1), `rgb(${pickColour(index)})`);
  }
  context.fillStyle = colours;
  context.fillRect(x, plot.y, WIDTH, height);
  for (const value of chooseTicks(scale)) {
    const y = plot.y + (1 - locate(scale, value)) * (height - 1);
    context.fillStyle = inks.muted;
    context.fillRect(x + WIDTH, Math.round(y), 4, 1);
    context.fillStyle = inks.ink;
    context.fillText(
      writeWeight(value),
      x + WIDTH + 7,
      Math.min(plot.y + height - 4, Math.max(plot.y + 4, y)),
    );
  }
  drawZero(context, x, plot.y + height + 12, inks);
}

/** Weights that are exactly 0 have a colour of their own. */
/** @param {CanvasRenderingContext2D} context @param {number} x @param {number} y @param {Inks} inks */
function drawZero(context, x, y, inks) {
  context.fillStyle = inks.zero;
  context.fillRect(x, y, WIDTH, WIDTH);
  context.strokeStyle = inks.line;
  context.strokeRect(x + 0.5, y + 0.5, WIDTH - 1, WIDTH - 1);
  context.fillStyle = inks.ink;
  context.fillText("= 0", x + WIDTH + 7, y + WIDTH / 2);
}
