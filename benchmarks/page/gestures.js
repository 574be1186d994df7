/** What a hand does on the large picture, once a frame, and how far apart the frames are. */
(() => {
  const canvas = document.getElementById("marks");
  const plot = JSON.parse(document.getElementById("cells").dataset.plot);
  const middle = {
    x: (plot.x + plot.width / 2) / devicePixelRatio,
    y: (plot.y + plot.height / 2) / devicePixelRatio,
  };

  /** An event at so many pixels from the middle of the picture. */
  function send(Event, kind, x, y, options) {
    const { left, top } = canvas.getBoundingClientRect();
    const at = { clientX: left + middle.x + x, clientY: top + middle.y + y };
    canvas.dispatchEvent(new Event(kind, { ...at, ...options, bubbles: true, cancelable: true }));
  }

  const point = (kind, x, y) => send(PointerEvent, kind, x, y, { pointerId: 1, isPrimary: true });
  const turn = (deltaY) => send(WheelEvent, "wheel", 0, 0, { deltaY });
  const sway = (frame) => [Math.sin(frame / 9), Math.sin(frame / 7)];
  const choose = (scale) =>
    document.querySelector(`input[name="scale"][value="${scale}"]`).click();

  const steps = {
    nothing: () => {},
    zoom: (frame) => turn(frame % 60 < 30 ? -60 : 60),
    pan: (frame) => point("pointermove", ...sway(frame).map((share) => 60 * share)),
    hover: (frame) => point("pointermove", ...sway(frame).map((share) => 120 * share)),
    colour: (frame) => frame % 30 === 0 && choose(frame % 60 ? "linear" : "log"),
  };

  function begin(gesture) {
    if (gesture !== "pan") return;
    turn(-600);
    point("pointerdown", 0, 0);
  }

  function end() {
    point("pointerup", 0, 0);
    point("pointerleave", 0, 0);
    document.getElementById("zoom-all").click();
  }

  /** Milliseconds between the frames of a gesture, which begins at rest. */
  globalThis.perform = async (gesture, frames) => {
    begin(gesture);
    await new Promise((done) => setTimeout(done, 500));
    const times = [];
    await new Promise((done) => {
      requestAnimationFrame(function go(now) {
        times.push(now);
        if (times.length > frames) return done();
        steps[gesture](times.length);
        requestAnimationFrame(go);
      });
    });
    end();
    return times.slice(1).map((now, at) => now - times[at]);
  };
})();
