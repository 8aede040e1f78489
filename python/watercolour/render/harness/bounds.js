// Bounds that hold before the browser suffers: sizes of canvases and buffers, and how much a
// painting may ask for. Each refusal names the value and the bound. Runs after the libraries.
(() => {
  "use strict";
  const own = window.__watercolour;
  const { apply, getOwnPropertyDescriptor } = Reflect;
  const { exec } = RegExp.prototype;
  const { refuse } = own;
  const P5 = window.p5;
  const proto = P5.prototype;
  let limits = null; // page.py's LIMITS
  own.limit = (given) => {
    limits = given;
    // What p5 takes its density from.
    if (limits.scale > 1) Object.defineProperty(window, "devicePixelRatio", { value: limits.scale });
  };

  own.shapes = 0;
  own.progress = 0; // grows with everything that a sketch does
  own.canvas = null; // {gl, lost}: held here, never looked up in the document
  own.canvases = 0; // p5 makes one itself before setup
  let bufferPixels = 0;
  let contexts = 0;
  let timers = 0;
  let stamps = 0;
  const tooMuch = (message) => refuse("render_failed", message);
  const outOfBounds = (message) => refuse("canvas_out_of_bounds", message);

  // Canvases and buffers -------------------------------------------------------------------

  const floor = Math.floor;
  const number = (value) => (typeof value === "object" && value !== null ? NaN : Number(value));
  const checkSides = (what, w, h) => {
    const fits = (side) => floor(side) >= limits.minSide && floor(side) <= limits.maxSide;
    if (!fits(w) || !fits(h)) {
      const range = `${limits.minSide} to ${limits.maxSide} pixels`;
      const { scale, printSide } = limits;
      const print = ` at a drawing scale of ${scale} (a print has at most ${printSide})`;
      const at = scale > 1 ? print : "";
      outOfBounds(`${what}(${w}, ${h}): each side must be ${range}${at}.`);
    }
  };
  // Several buffers of any size are fine until together they fill the graphics memory.
  // A print has more pixels for each of the canvas: what a sketch counts in is the canvas' own.
  const checkBuffer = (what, w, h, density = limits.scale, samples = 1) => {
    const most = 2 * limits.maxSide;
    if (!(w > 0 && h > 0 && w <= most && h <= most)) {
      outOfBounds(`${what}(${w}, ${h}): each side must be above 0 and at most ${most} pixels.`);
    }
    bufferPixels += w * h * density * density * samples;
    if (bufferPixels > limits.bufferPixels) {
      outOfBounds(
        `${what}(${w}, ${h}): all buffers together hold ${floor(bufferPixels)} pixels; ` +
          `at most ${limits.bufferPixels}.`,
      );
    }
  };
  const widthOf = getOwnPropertyDescriptor(WebGL2RenderingContext.prototype, "drawingBufferWidth").get;
  const isWebGL2 = (gl) => {
    try {
      return apply(widthOf, gl, []) >= 0; // what is no such context throws
    } catch {
      return false;
    }
  };
  const hold = (instance) => {
    const renderer = instance._renderer;
    const gl = renderer && renderer.isP3D ? renderer.drawingContext : null;
    own.canvas = isWebGL2(gl) ? { gl, lost: false } : null;
    if (!own.canvas) return;
    renderer.canvas.addEventListener("webglcontextlost", () => {
      own.canvas = { gl, lost: true };
      own.finish();
    });
  };
  // p5 makes a context first and gives its canvas the size then, side by side: of three sets of
  // buffers two are thrown away. So the canvas gets its size before its context.
  let sized = null;
  const { createCanvas, resizeCanvas, createGraphics, createFramebuffer, createImage } = proto;
  proto.createCanvas = function (w, h, ...rest) {
    const [width, height] = [number(w), number(h)];
    checkSides("createCanvas", width, height);
    if (++own.canvases > limits.canvases + 1) {
      outOfBounds(`createCanvas is called ${own.canvases - 1} times; at most ${limits.canvases}.`);
    }
    sized = { coming: { width: width * limits.scale, height: height * limits.scale }, canvas: null };
    try {
      const made = apply(createCanvas, this, [width, height, ...rest]);
      hold(this);
      return made;
    } finally {
      sized = null;
    }
  };
  proto.resizeCanvas = function (w, h, ...rest) {
    const [width, height] = [number(w), number(h)];
    checkSides("resizeCanvas", width, height);
    return apply(resizeCanvas, this, [width, height, ...rest]);
  };
  proto.createGraphics = function (w, h, ...rest) {
    const [width, height] = [number(w), number(h)];
    checkBuffer("createGraphics", width, height);
    return apply(createGraphics, this, [width, height, ...rest]);
  };
  proto.createImage = function (w, h, ...rest) {
    const [width, height] = [number(w), number(h)];
    checkBuffer("createImage", width, height, 1);
    return apply(createImage, this, [width, height, ...rest]);
  };
  proto.createFramebuffer = function (options = {}) {
    const given = { ...options, density: limits.scale };
    if (given.width !== undefined) given.width = number(given.width);
    if (given.height !== undefined) given.height = number(given.height);
    const { width = this.width, height = this.height } = given;
    const samples = limits.scale > 1 && given.antialias !== false ? 4 : 1;
    checkBuffer("createFramebuffer", width, height, limits.scale, samples);
    return apply(createFramebuffer, this, [given]);
  };
  const bound = (of, name, density) => {
    const original = of.prototype[name];
    if (!original) return;
    of.prototype[name] = function (w, h, ...rest) {
      const [width, height] = [number(w), number(h)];
      // p5 keeps the side that is not given, or scales it when it is 0.
      if (width || height) checkBuffer(name, width || height, height || width, density);
      return apply(original, this, [w === undefined ? w : width, h === undefined ? h : height, ...rest]);
    };
  };
  bound(P5.Graphics, "resizeCanvas");
  bound(P5.Framebuffer, "resize");
  bound(P5.Image, "resize", 1);
  // The density is the drawing scale whatever a sketch asks for: it would multiply the cost, not
  // the picture. Only a graphics of its own may have fewer pixels, as the tips of p5.brush have.
  for (const of of [P5, P5.Graphics, P5.Framebuffer]) {
    const original = of.prototype.pixelDensity;
    of.prototype.pixelDensity = function (value) {
      if (value === undefined) return apply(original, this, []);
      const density = number(value);
      const coarser = of === P5.Graphics && density >= 1 && density < limits.scale;
      return coarser ? apply(original, this, [density]) : this;
    };
  }
  // A sketch's own canvases. Chromium loses the oldest of many WebGL contexts: the painting's.
  for (const of of [HTMLCanvasElement, OffscreenCanvas]) {
    const setters = {};
    for (const side of ["width", "height"]) {
      const { get, set } = getOwnPropertyDescriptor(of.prototype, side);
      setters[side] = set;
      Object.defineProperty(of.prototype, side, {
        configurable: true,
        enumerable: true,
        get,
        set(value) {
          const pixels = number(value);
          const most = limits ? 2 * limits.maxSide * limits.scale : pixels;
          if (pixels > most) outOfBounds(`a canvas' ${side} of ${pixels} is above ${most} pixels.`);
          if (sized && this === sized.canvas && pixels === apply(get, this, [])) return;
          apply(set, this, [pixels]);
        },
      });
    }
    const { getContext } = of.prototype;
    const known = new WeakSet();
    const { add, has } = WeakSet.prototype;
    of.prototype.getContext = function (kind, ...rest) {
      const name = `${kind}`;
      if (name !== "2d" && name !== "bitmaprenderer" && !apply(has, known, [this])) {
        apply(add, known, [this]);
        const most = limits ? limits.contexts : 1;
        if (++contexts > most) {
          outOfBounds(`${contexts} canvases have a WebGL context; at most ${most}.`);
        }
        if (sized && !sized.canvas) {
          sized.canvas = this;
          for (const side in setters) apply(setters[side], this, [sized.coming[side]]);
        }
      }
      return apply(getContext, this, [name, ...rest]);
    };
  }

  // Lost on purpose it would look like a GPU process that died.
  for (const of of [WebGLRenderingContext, WebGL2RenderingContext]) {
    const { getExtension } = of.prototype;
    of.prototype.getExtension = function (name) {
      const wanted = `${name}`;
      return apply(exec, /lose_context/i, [wanted]) ? null : apply(getExtension, this, [wanted]);
    };
  }

  // One frame ------------------------------------------------------------------------------

  const { redraw } = proto;
  own.redraw = (instance) => apply(redraw, instance, []);
  proto.loop = proto.redraw = () => {};
  proto.save = proto.saveCanvas = proto.saveGif = proto.saveFrames = () => {};

  const depths = new WeakMap();
  const { get: look, set: put } = WeakMap.prototype;
  const deeper = (instance, by) => {
    const depth = (apply(look, depths, [instance]) || 0) + by;
    apply(put, depths, [instance, depth > 0 ? depth : 0]);
    return depth;
  };
  for (const of of [P5, P5.Graphics]) {
    const { push, pop } = of.prototype;
    of.prototype.push = function () {
      const depth = deeper(this, 1);
      if (depth > limits.pushes) tooMuch(`push() is nested ${depth} deep; at most ${limits.pushes}.`);
      return apply(push, this, []);
    };
    of.prototype.pop = function () {
      deeper(this, -1);
      return apply(pop, this, []);
    };
  }

  // What p5.brush is asked for: called through the seams that hooks.py cuts -----------------

  const go = () => {
    // A sketch that caught its refusal is not to go on painting.
    if (own.fault) refuse(own.fault.code, own.fault.message);
    own.progress++;
  };
  const { hooks } = own;
  hooks.timer = () => {
    own.progress++;
    if (limits && ++timers > limits.timers) {
      own.endTimers();
      tooMuch(`The sketch's timers fired ${timers} times; at most ${limits.timers}.`);
    }
  };
  hooks.shape = () => {
    go();
    if (++own.shapes > limits.shapes) {
      tooMuch(`The sketch fills ${own.shapes} shapes; at most ${limits.shapes}.`);
    }
  };
  hooks.vertices = (count) => {
    if (count > limits.vertices) {
      tooMuch(`A shape has ${count} vertices; at most ${limits.vertices}.`);
    }
  };
  hooks.segments = (count) => {
    if (count > 3 * limits.vertices) {
      tooMuch(`A stroke has ${count} segments; at most ${3 * limits.vertices}.`);
    }
  };
  hooks.steps = (count) => {
    if (count > limits.steps) {
      tooMuch(`A path is ${floor(count)} steps long; at most ${limits.steps}.`);
    }
    return count;
  };
  hooks.hatch = (distance, span) => {
    if (span > 0 && !(span / distance <= limits.hatchLines && distance > 0) && distance === distance) {
      const lines = distance > 0 ? floor(span / distance) : "endlessly many";
      tooMuch(`hatch(${distance}) asks for ${lines} lines; at most ${limits.hatchLines}.`);
    }
  };
  hooks.lines = (count) => {
    if (count > limits.hatchLines) {
      tooMuch(`A hatch has ${count} lines; at most ${limits.hatchLines}.`);
    }
  };
  const stamp = (count, what) => {
    if (count > limits.strokeStamps) {
      tooMuch(`${what} takes ${count} stamps of the brush; at most ${limits.strokeStamps}.`);
    }
    if (count > 0) stamps += count;
    if (stamps > limits.stamps) {
      tooMuch(`All strokes take ${stamps} stamps of the brush; at most ${limits.stamps}.`);
    }
  };
  hooks.stroke = (count) => {
    go();
    stamp(count, "A stroke");
    return null;
  };
  hooks.spray = (count) => {
    stamp(count, "A step of the spray");
    return count;
  };
  hooks.stroked = () => {};
  hooks.fill = hooks.wash = () => hooks.shape();
  hooks.within = (_, draw) => draw();
})();
