// Runs after p5 and p5.brush, before any sketch. Waits for one job, runs it, sends back one result
// through the port that came with the job: the sketch can reach neither port nor result.
(() => {
  "use strict";
  const own = window.__watercolour;
  delete window.__watercolour;
  delete window.__watercolourShape;
  const P5 = window.p5;
  const { now, later } = own;
  const apply = Reflect.apply;
  const readPixels = WebGL2RenderingContext.prototype.readPixels;
  const bindFramebuffer = WebGL2RenderingContext.prototype.bindFramebuffer;
  const isContextLost = WebGL2RenderingContext.prototype.isContextLost;
  const toBase64 = Uint8Array.prototype.toBase64;
  const { slice } = String.prototype;

  const LIMITS = { errors: 20, message: 500, idleTicks: 60, idleTickMs: 50 };
  const timings = {};
  let stage = "load"; // load, setup, draw, done
  let canvas = null; // {gl}, held by the harness, never looked up in the document
  let canvases = 0; // p5 makes one itself before setup
  let fault = null; // {code, message, line, column}: ends the sketch
  let finish = () => {};

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
  const column = (line, at) => (line === 1 ? Math.max(1, at - HEAD.length) : at);

  const place = (error) => {
    const found = /sketch\.js:(\d+):(\d+)/.exec(String((error && error.stack) || ""));
    return found ? { line: +found[1], column: column(+found[1], +found[2]) } : {};
  };
  const describe = (error) => {
    let text = "unknown error";
    try {
      text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    } catch {}
    text = text.replace("Failed to execute 'appendChild' on 'Node': ", "");
    return apply(slice, text, [0, LIMITS.message]);
  };
  const note = (error, where = {}) => {
    if (own.errors.length >= LIMITS.errors) return;
    let at = where;
    try {
      at = where.line ? where : place(error);
    } catch {}
    own.errors.push({ message: describe(error), stage, line: at.line || 0, column: at.column || 0 });
  };
  class Refused extends Error {}
  const refuse = (code, message) => {
    const error = new Refused(message);
    if (!fault) fault = { code, message, ...place(error) };
    throw error;
  };

  window.addEventListener("error", (event) => {
    // A text that does not parse has no sourceURL yet and goes by the document's name.
    const inSketch = /(sketch\.js|srcdoc)$/.test(event.filename || "");
    if (stage === "load" && event.error instanceof SyntaxError && inSketch) {
      fault ||= {
        code: "syntax_error",
        message: describe(event.error),
        line: event.lineno,
        column: column(event.lineno, event.colno),
      };
    }
    const at = { line: event.lineno, column: column(event.lineno, event.colno) };
    note(event.error || event.message, inSketch ? at : {});
  });
  window.addEventListener("unhandledrejection", (event) => {
    note(event.reason);
    event.preventDefault();
    // p5 does not await its own start: a rejected setup shows up here and nowhere else.
    if (stage === "setup") later(() => finish(), 0);
  });

  const proto = P5.prototype;
  const { createCanvas, resizeCanvas, createGraphics, createFramebuffer, pixelDensity } = proto;
  let limits = { minSide: 64, maxSide: 1024, shapes: 400 };

  const checkSides = (what, w, h) => {
    const [width, height] = [Math.floor(Number(w)), Math.floor(Number(h))];
    const fits = (side) => side >= limits.minSide && side <= limits.maxSide;
    if (!fits(width) || !fits(height)) {
      refuse(
        "canvas_out_of_bounds",
        `${what}(${w}, ${h}): each side must be ${limits.minSide} to ${limits.maxSide} pixels.`,
      );
    }
  };
  const checkBuffer = (what, w, h) => {
    if (!(w > 0 && h > 0 && w <= 2 * limits.maxSide && h <= 2 * limits.maxSide)) {
      refuse("canvas_out_of_bounds", `${what}(${w}, ${h}) is larger than ${2 * limits.maxSide}.`);
    }
  };
  const hold = (instance) => {
    const renderer = instance._renderer;
    const gl = renderer && renderer.isP3D ? renderer.drawingContext : null;
    canvas = gl instanceof WebGL2RenderingContext ? { gl } : null;
    if (canvas) {
      renderer.canvas.addEventListener("webglcontextlost", () => {
        canvas = { gl, lost: true };
        finish();
      });
    }
  };
  proto.createCanvas = function (w, h, ...rest) {
    checkSides("createCanvas", w, h);
    const made = apply(createCanvas, this, [w, h, ...rest]);
    canvases++;
    hold(this);
    return made;
  };
  proto.resizeCanvas = function (w, h, ...rest) {
    checkSides("resizeCanvas", w, h);
    return apply(resizeCanvas, this, [w, h, ...rest]);
  };
  proto.createGraphics = function (w, h, ...rest) {
    checkBuffer("createGraphics", w, h);
    return apply(createGraphics, this, [w, h, ...rest]);
  };
  proto.createFramebuffer = function (options = {}) {
    if (options.width !== undefined) checkBuffer("createFramebuffer", options.width, options.height);
    return apply(createFramebuffer, this, [{ ...options, density: 1 }]);
  };
  proto.pixelDensity = function (value) {
    return value === undefined ? apply(pixelDensity, this, []) : this;
  };
  proto.loop = () => {};
  proto.save = proto.saveCanvas = proto.saveGif = proto.saveFrames = () => {};
  // One frame: p5's own loop would draw until the page dies.
  proto._draw = async function () {
    this._loop = false;
    timings.setup = now();
    stage = "draw";
    try {
      await this.redraw();
    } catch (error) {
      note(error);
      await flush(this);
    }
    finish();
  };
  const hooks = P5.lifecycleHooks;
  const postdraw = [...hooks.postdraw];
  const flush = async (instance) => {
    // What was painted before the error is still in p5.brush's masks.
    try {
      for (const hook of postdraw) await apply(hook, instance, []);
    } catch (error) {
      note(error);
    }
  };

  const read = () => {
    const { gl } = canvas;
    const [width, height] = [gl.drawingBufferWidth, gl.drawingBufferHeight];
    const pixels = new Uint8Array(width * height * 4);
    apply(bindFramebuffer, gl, [gl.FRAMEBUFFER, null]);
    apply(readPixels, gl, [0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, pixels]);
    return { width, height, pixels: apply(toBase64, pixels, []) };
  };

  const outcome = () => {
    const result = { shapes: own.shapes, errors: own.errors, timings };
    if (fault) return { ...result, fault };
    if (canvas && canvas.lost) return { ...result, lost: true };
    if (!canvas) {
      const first = canvases < 2 && own.errors[0];
      const message = "setup made no WEBGL canvas; call createCanvas(w, h, WEBGL).";
      const code = first ? "render_failed" : "not_webgl";
      return { ...result, fault: { message, ...first, code } };
    }
    if (stage === "setup" && own.errors.length && own.shapes === 0) {
      return { ...result, fault: { code: "render_failed", ...own.errors[0] } };
    }
    const start = now();
    const picture = read();
    timings.read = now() - start;
    if (apply(isContextLost, canvas.gl, [])) return { ...result, lost: true };
    return { ...result, ...picture };
  };

  const run = (job, send) => {
    limits = job.limits;
    own.reseed(job.seed);
    let over = false;
    let instance = null;
    finish = () => {
      if (over) return;
      over = true;
      timings.draw = now();
      // p5.brush composes in its postdraw hook, so pixels are read in a later task.
      later(async () => {
        if (instance && stage === "setup") await flush(instance);
        const result = outcome();
        timings.total = now() - timings.start;
        send(result);
      }, 0);
    };
    own.onShape = () => {
      if (++own.shapes > limits.shapes) {
        refuse("render_failed", `The sketch fills more than ${limits.shapes} shapes.`);
      }
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
    if (fault) return finish();
    if (typeof window.setup !== "function" && typeof window.draw !== "function") {
      const message = "The sketch defines neither setup() nor draw().";
      fault = own.errors.length
        ? { code: "render_failed", ...own.errors[0] }
        : { code: "missing_entry_points", message };
      return finish();
    }
    stage = "setup";
    // A promise that the sketch never settles would wait for the deadline. Ticks, not seconds:
    // they come late when the machine is busy, so a loaded machine never ends a sketch.
    let ticks = 0;
    const patience = () => {
      if (over) return;
      if (++ticks > LIMITS.idleTicks) {
        fault ||= { code: "render_failed", message: `${stage}() waits for something that never comes.` };
        finish();
      } else {
        later(patience, LIMITS.idleTickMs);
      }
    };
    later(patience, LIMITS.idleTickMs);
    try {
      instance = new P5();
    } catch (error) {
      note(error);
      finish();
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
