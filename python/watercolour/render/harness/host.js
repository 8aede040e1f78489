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

// One job in, one result out. A frame that loads a second time was navigated by its sketch.
const paint = async (job) => {
  const frame = await prepare();
  ready = null;
  const channel = new MessageChannel();
  const result = await new Promise((resolve) => {
    channel.port1.onmessage = (event) => resolve(event.data);
    frame.addEventListener("load", () => resolve({ navigated: true }), { once: true });
    frame.contentWindow.postMessage(job, "*", [channel.port2]);
  });
  channel.port1.close();
  frame.remove();
  setTimeout(prepare, 0);
  return result;
};
