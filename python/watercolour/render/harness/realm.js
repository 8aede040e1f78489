// Runs after p5, p5.brush and the rest of the harness, before any sketch. Waits for one job, runs
// it, sends back one result through the port that came with the job: the sketch can reach neither
// port nor result.
(() => {
  "use strict";
  const own = window.__watercolour;
  delete window.__watercolour;
  delete window.__watercolourHooks;
  const P5 = window.p5;
  const { now, later } = own;
  const { apply, getOwnPropertyDescriptor } = Reflect;
  const WebGL2 = WebGL2RenderingContext.prototype;
  const { readPixels, bindFramebuffer, bindBuffer, pixelStorei, readBuffer, isContextLost } = WebGL2;
  const widthOf = getOwnPropertyDescriptor(WebGL2, "drawingBufferWidth").get;
  const heightOf = getOwnPropertyDescriptor(WebGL2, "drawingBufferHeight").get;
  const toBase64 = Uint8Array.prototype.toBase64;

  const IDLE = { ticks: 60, tickMs: 50 };
  const timings = {};
  let limits = null;
  let replay = null; // filled when the job asks for it
  own.finish = () => {};

  // A sketch runs inside a function: its own top-level names may then be p5's (a function `line`),
  // and a `const draw` is found like a `function draw`. The head stands on the sketch's first line.
  const HEAD = "(() => { ";
  const TAIL = `
;for (const [name, entry] of Object.entries({
  setup: typeof setup === "function" ? setup : undefined,
  draw: typeof draw === "function" ? draw : undefined,
})) if (entry) window[name] = entry;
})();
//# sourceURL=sketch.js`;
  own.head = HEAD.length;

  // One frame: p5's own loop would draw until the page dies.
  P5.prototype._draw = async function () {
    this._loop = false;
    timings.setup = now();
    own.stage = "draw";
    try {
      await own.redraw(this);
    } catch (error) {
      own.note(error);
      await flush(this);
    }
    own.finish();
  };
  const postdraw = [...P5.lifecycleHooks.postdraw];
  const flush = async (instance) => {
    // What was painted before the error is still in p5.brush's masks.
    try {
      for (const hook of postdraw) await apply(hook, instance, []);
    } catch (error) {
      own.note(error);
    }
  };

  const read = () => {
    const { gl } = own.canvas;
    const [width, height] = [apply(widthOf, gl, []), apply(heightOf, gl, [])];
    const { scale, minSide, maxSide } = limits;
    const fits = (side) => side >= minSide * scale && side <= maxSide * scale;
    if (!fits(width) || !fits(height)) {
      const message = `The canvas was made ${width} by ${height} pixels behind p5's back.`;
      own.blame("canvas_out_of_bounds", message);
      return {};
    }
    const pixels = new Uint8Array(width * height * 4);
    // A sketch may have left any state behind.
    apply(bindFramebuffer, gl, [gl.FRAMEBUFFER, null]);
    apply(bindBuffer, gl, [gl.PIXEL_PACK_BUFFER, null]);
    apply(readBuffer, gl, [gl.BACK]);
    for (const name of [gl.PACK_ROW_LENGTH, gl.PACK_SKIP_PIXELS, gl.PACK_SKIP_ROWS]) {
      apply(pixelStorei, gl, [name, 0]);
    }
    apply(readPixels, gl, [0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, pixels]);
    return { width, height, pixels: apply(toBase64, pixels, []) };
  };

  const blameFirst = (fallback, code = "render_failed") => {
    own.blame(code, own.errors.length ? own.errors[0].message : fallback, own.errors[0]);
  };
  const outcome = () => {
    const { canvas } = own;
    const start = now();
    let picture = {};
    if (own.fault || (canvas && canvas.lost)) {
      // Nothing is read.
    } else if (!canvas) {
      const words = "setup made no WEBGL canvas; call createCanvas(w, h, WEBGL).";
      if (own.canvases < 2 && own.errors.length) blameFirst(words);
      else own.blame("not_webgl", words);
    } else if (own.stage === "setup" && own.errors.length && own.shapes === 0) {
      blameFirst("setup failed");
    } else {
      picture = read();
      timings.read = now() - start;
    }
    const lost = !own.fault && Boolean(canvas) && (canvas.lost || apply(isContextLost, canvas.gl, []));
    const { shapes, errors, unlisted, fault } = own;
    const replayed = fault ? null : replay;
    const made = Boolean(canvas);
    return { shapes, errors, unlisted, timings, fault, lost, canvas: made, replay: replayed, ...picture };
  };

  const run = (job, send) => {
    limits = job.limits;
    own.limit(limits);
    own.reseed(job.seed);
    if (job.replay) replay = own.record(job.replay);
    let over = false;
    let instance = null;
    own.finish = () => {
      if (over) return;
      over = true;
      timings.draw = now();
      own.endTimers();
      // p5.brush composes in its postdraw hook, so pixels are read in a later task.
      later(async () => {
        if (instance && own.stage === "setup") await flush(instance);
        own.settle(() => {
          let result;
          try {
            result = outcome();
          } catch {
            own.blame("render_failed", "The sketch took apart what its painting is read with.");
            const { shapes, errors, unlisted, fault } = own;
            result = { shapes, errors, unlisted, timings, fault, lost: false, replay: null };
          }
          timings.total = now() - timings.start;
          send(result);
        });
      });
    };
    P5.lifecycleHooks.presetup.push(function () {
      this.randomSeed(job.seed);
      this.noiseSeed(job.seed);
    });
    timings.start = now();
    const script = document.createElement("script");
    script.textContent = HEAD + job.sketch + TAIL;
    document.head.appendChild(script);
    script.remove();
    timings.load = now();
    if (own.fault) return own.finish();
    if (typeof window.setup !== "function" && typeof window.draw !== "function") {
      const words = "The sketch defines neither setup() nor draw().";
      blameFirst(words, own.errors.length ? "render_failed" : "missing_entry_points");
      return own.finish();
    }
    own.stage = "setup";
    // A promise that the sketch never settles would wait for the deadline. Ticks, not seconds:
    // they come late when the machine is busy, so a loaded machine never ends a sketch.
    let ticks = 0;
    let seen = 0;
    const patience = () => {
      if (over) return;
      ticks = own.progress === seen ? ticks + 1 : 0;
      seen = own.progress;
      if (ticks > IDLE.ticks) {
        own.blame("render_failed", `${own.stage}() waits for something that never comes.`);
        own.finish();
      } else {
        own.afterReal(patience, IDLE.tickMs);
      }
    };
    own.afterReal(patience, IDLE.tickMs);
    try {
      instance = new P5();
    } catch (error) {
      own.note(error);
      own.finish();
    }
  };

  const receive = (event) => {
    if (event.source !== window.parent) return;
    window.removeEventListener("message", receive);
    const port = event.ports[0];
    const send = port.postMessage.bind(port);
    run(event.data, send);
  };
  window.addEventListener("message", receive);
  window.parent.postMessage("ready", "*");
})();
