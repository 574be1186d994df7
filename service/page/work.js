/** Long work in slices, between which frames and clicks have their turn. */

const SLICE_MS = 6;
const PATIENCE_MS = 100;

/** Until there is time before the next frame. */
const rest = () =>
  new Promise((resolve) => {
    if ("requestIdleCallback" in globalThis) requestIdleCallback(resolve, { timeout: PATIENCE_MS });
    else setTimeout(resolve);
  });

/** @typedef {() => Promise<void>} Breathe goes on at once while a slice is short */

/** Does one thing at a time: a newer one ends the one before it. */
export class Work {
  #running = new AbortController();

  /**
   * Do this instead of what is being done.
   *
   * @param {(breathe: Breathe) => Promise<void>} steps which end with an error in `breathe` where
   *   they have become needless
   */
  async start(steps) {
    this.#running.abort();
    const running = new AbortController();
    this.#running = running;
    let start = performance.now();
    const breathe = async () => {
      if (performance.now() - start < SLICE_MS) return;
      await rest();
      running.signal.throwIfAborted();
      start = performance.now();
    };
    try {
      await steps(breathe);
    } catch (error) {
      if (!running.signal.aborted) throw error;
    }
  }
}
