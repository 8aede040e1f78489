// The warm page: one fresh realm for every sketch, in a sandboxed frame of this same process, so
// that p5's compiled code stays warm. The next realm is prepared while nobody waits.
"use strict";

// What a realm starts with: it takes the libraries' text from its parent's first message. A frame
// of opaque origin has no share in the HTTP cache and would fetch and parse a megabyte every time;
// the text of an inline script hits V8's own cache of this process.
const SEED = `<!doctype html><meta charset=utf-8><title>realm</title><script>
addEventListener("message", function start(event) {
  if (event.source !== parent) return;
  removeEventListener("message", start);
  const script = document.createElement("script");
  script.textContent = event.data;
  document.head.appendChild(script).remove();
});</script>`;

// A frame whose realm has run to its end: a broken one never says so.
const open = async () => {
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts"; // no allow-same-origin: the realm has an origin of its own
  const loaded = new Promise((resolve) => {
    frame.addEventListener("load", resolve, { once: true });
  });
  const said = new Promise((resolve) => {
    addEventListener("message", function listen(event) {
      if (event.source !== frame.contentWindow) return;
      removeEventListener("message", listen);
      resolve();
    });
  });
  if (!VISIBLE) frame.style.display = "none"; // nothing of it is ever composited
  frame.srcdoc = SEED;
  document.body.appendChild(frame);
  await loaded;
  frame.contentWindow.postMessage(LIBRARIES, "*");
  await said;
  return frame;
};

let ready = null;
const prepare = () => {
  ready ||= open();
  return ready;
};

// The realm is within the sketch's reach, this page is not: what comes from there is taken only if
// it is what a realm sends, and a realm that neither works nor answers is not waited for.
const IDLE = { ticks: 240, tickMs: 50, lateMs: 75 };
const MOST = { text: 10_000, rest: 24 * 2 ** 20 };
const isCount = (value, most) => Number.isInteger(value) && value >= 0 && value <= most;
const isText = (value) => typeof value === "string" && value.length <= MOST.text;
const isPlace = ({ line, column }) => isCount(line ?? 0, 2 ** 31) && isCount(column ?? 0, 2 ** 31);
const isError = (error) => isText(error.message) && isText(error.stage) && isPlace(error);
const isFault = (fault) => isText(fault.code) && isText(fault.message) && isPlace(fault);
const isPicture = ({ width, height, pixels }, { maxSide, scale }) =>
  isCount(width, maxSide * scale) &&
  isCount(height, maxSide * scale) &&
  typeof pixels === "string" &&
  pixels.length === 4 * Math.ceil((4 * width * height) / 3);
const isSound = (result, limits) => {
  try {
    const { shapes, errors, timings, fault, lost, pixels, ...rest } = result;
    return (
      isCount(shapes, 10 * limits.shapes) &&
      errors.length <= 100 &&
      errors.every(isError) &&
      Object.values(timings).every(Number.isFinite) &&
      (fault ? isFault(fault) : lost || isPicture(result, limits)) &&
      JSON.stringify(rest).length <= MOST.rest
    );
  } catch {
    return false;
  }
};

// Ends when this page's thread was free so often that a painting would be done. A tick that comes
// late does not count, so neither work nor a loaded machine ends a sketch.
const patience = (stop) => {
  let idle = 0;
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    if (now - last < IDLE.lateMs && ++idle > IDLE.ticks) stop();
    last = now;
  }, IDLE.tickMs);
  return () => clearInterval(timer);
};

// Whether this page, which no sketch reaches, is given graphics now: a browser whose graphics process
// has just died refuses them to everybody for a while, and that is not the sketch's fault.
const hasGraphics = () => {
  const gl = document.createElement("canvas").getContext("webgl2");
  const there = Boolean(gl) && !gl.isContextLost();
  gl?.getExtension("WEBGL_lose_context")?.loseContext();
  return there;
};

// How long after a painting the next realm is prepared, unless a job comes before: the answer is
// on its way by then, and this thread has to send it.
const NEXT_MS = 20;

// One job in, one result out. A frame that loads a second time was navigated by its sketch.
const paint = async (job) => {
  const frame = await prepare();
  ready = null;
  const channel = new MessageChannel();
  let rest = null;
  const result = await new Promise((resolve) => {
    rest = patience(() => resolve({ stuck: true }));
    channel.port1.onmessage = ({ data }) => resolve(isSound(data, job.limits) ? data : { spoilt: true });
    frame.addEventListener("load", () => resolve({ navigated: true }), { once: true });
    frame.contentWindow.postMessage(job, "*", [channel.port2]);
  });
  rest();
  channel.port1.close();
  frame.remove();
  setTimeout(prepare, NEXT_MS);
  return result.fault && !result.canvas ? { ...result, graphics: hasGraphics() } : result;
};
