/** Canvases as sharp as the screen. */

/** Device pixels in a CSS pixel. */
export const readRatio = () => Math.max(1, window.devicePixelRatio);

/**
 * Give a canvas a size, and empty it. One that has the size keeps its memory.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {number} width in CSS pixels
 * @param {number} height in CSS pixels
 * @returns {CanvasRenderingContext2D} in CSS pixels
 */
export function resize(canvas, width, height) {
  const ratio = readRatio();
  const pixels = { width: Math.round(width * ratio), height: Math.round(height * ratio) };
  const context = getContext(canvas);
  if (canvas.width !== pixels.width || canvas.height !== pixels.height) {
    Object.assign(canvas, pixels);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width + 1, height + 1);
  return context;
}

/** @param {HTMLCanvasElement} canvas */
export function getContext(canvas) {
  return /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
}
