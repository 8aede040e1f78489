// Goes inside p5.brush, after fill.js: puts one mask of a watercolour fill onto the canvas. The
// original reads a mask through a second 2D canvas, clears and fills a framebuffer of p5's and has
// p5 draw a rectangle. Here the mask's alpha goes to the GPU as it is and one triangle is drawn:
// the same picture byte for byte.
//
// Names of p5.brush's minified scope: q the p5 instance, ft its canvas in pixels, xt draws inside a
// rectangle. WC_VERTEX and WC_FRAGMENT stand above, from patch.py.

// A pixel's edge is looked for up to three pixels away, and one pixel beyond the rectangle is
// shaded with it (a multisampled canvas is cut less sharply): all that must read as empty.
const WC_MARGIN = 4;
let wcBytes = new Uint8Array(0);

const wcPrograms = new WeakMap();
const wcProgram = (gl) => {
  let found = wcPrograms.get(gl);
  if (!found) {
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, WC_VERTEX], [gl.FRAGMENT_SHADER, WC_FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    const at = {};
    for (const name of ["source", "mask", "ks", "lum"]) {
      at[name] = gl.getUniformLocation(program, "u_" + name);
    }
    const [array, texture] = [gl.createVertexArray(), gl.createTexture()];
    found = { program, at, array, texture, width: 0, height: 0 };
    wcPrograms.set(gl, found);
  }
  return found;
};

// Sends the mask's alpha in the rectangle, with the margin around it as far as the canvas goes.
const wcSend = (gl, mask, rect, width, height) => {
  const { minX: left, minY: top, maxX: right, maxY: bottom } = rect;
  const wide = right - left;
  const { data } = mask.drawingContext.getImageData(left, top, wide, bottom - top);
  const x = Math.max(left - WC_MARGIN, 0);
  const y = Math.max(top - WC_MARGIN, 0);
  const columns = Math.min(right + WC_MARGIN, width) - x;
  const rows = Math.min(bottom + WC_MARGIN, height) - y;
  const size = columns * rows;
  if (wcBytes.length < size) wcBytes = new Uint8Array(size + (size >> 1));
  else wcBytes.fill(0, 0, size);
  const bytes = wcBytes;
  const skip = columns - wide;
  for (let to = (top - y) * columns + left - x, from = 3; from < data.length; to += skip) {
    for (const end = to + wide; to < end; to++, from += 4) bytes[to] = data[from];
  }
  const flip = gl.getParameter(gl.UNPACK_FLIP_Y_WEBGL);
  gl.pixelStorei(gl.UNPACK_FLIP_Y_WEBGL, false);
  gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
  gl.texSubImage2D(gl.TEXTURE_2D, 0, x, y, columns, rows, gl.RED, gl.UNSIGNED_BYTE, bytes);
  gl.pixelStorei(gl.UNPACK_ALIGNMENT, 4);
  gl.pixelStorei(gl.UNPACK_FLIP_Y_WEBGL, flip);
};

// What p5's own drawing would do besides is not done here: blend in another mode, or stretch what
// belongs to a canvas of another size. And p5 has to be left as after drawing with its own shader:
// what comes next may count on it (a stroke right after a wash makes p5 miss that another shader is
// in use, so that the wash is lost; so be it here too). That shader alone takes longer to compile
// than a fill to paint, so it is compiled once something is drawn with it; until then no program
// is in use after a fill, which tells whether another one has come in between.
let wcFilling = false;
const wcPlain = () => {
  const gl = q.drawingContext;
  const { width, height } = ft();
  return (
    wcFilling &&
    q.shaderProgram._renderer === q._renderer &&
    gl.drawingBufferWidth === width &&
    gl.drawingBufferHeight === height &&
    q._renderer.states.curBlendMode === "source-over"
  );
};

const wcUse = (gl, shader) => {
  gl.useProgram(shader._initialized ? shader._glProgram : null);
  if (shader._initialized || Object.hasOwn(shader, "init")) return;
  shader._compiled = true; // as p5 has it: in another context it is refused
  shader.init = () => {
    delete shader.init;
    shader.init();
    if (gl.getParameter(gl.CURRENT_PROGRAM) === null) gl.useProgram(shader._glProgram);
    return shader;
  };
};

const wcBlend = (source, mask, rect, color) => {
  const gl = q.drawingContext;
  const { width, height } = ft();
  const gpu = wcProgram(gl);
  const array = gl.getParameter(gl.VERTEX_ARRAY_BINDING);
  const depth = gl.isEnabled(gl.DEPTH_TEST);
  gl.disable(gl.DEPTH_TEST);
  gl.useProgram(gpu.program);
  gl.bindVertexArray(gpu.array);
  gl.activeTexture(gl.TEXTURE1);
  gl.bindTexture(gl.TEXTURE_2D, source.colorTexture);
  gl.activeTexture(gl.TEXTURE0);
  gl.bindTexture(gl.TEXTURE_2D, gpu.texture);
  if (gpu.width !== width || gpu.height !== height) {
    [gpu.width, gpu.height] = [width, height];
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.R8, width, height, 0, gl.RED, gl.UNSIGNED_BYTE, null);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    gl.uniform1i(gpu.at.mask, 0);
    gl.uniform1i(gpu.at.source, 1);
  }
  wcSend(gl, mask, rect, width, height);
  const { ks, lum } = wcPigment(color);
  gl.uniform1fv(gpu.at.ks, ks);
  gl.uniform1f(gpu.at.lum, lum);
  gl.enable(gl.BLEND);
  gl.blendEquation(gl.FUNC_ADD);
  gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  xt(gl, rect, () => gl.drawArrays(gl.TRIANGLES, 0, 3));

  gl.activeTexture(gl.TEXTURE1);
  gl.bindTexture(gl.TEXTURE_2D, null);
  gl.bindVertexArray(array);
  if (depth) gl.enable(gl.DEPTH_TEST);
  wcUse(gl, q.shaderProgram);
  q.resetShader();
  const renderer = q._renderer;
  renderer._curShader = q.shaderProgram;
  renderer._cachedBlendMode = "source-over";
  renderer._isBlending = true;
};
