// The warm page: one fresh realm for every sketch, in a sandboxed frame of this same process, so
// that p5's parsed code stays warm. The next realm is prepared while nobody waits.
"use strict";

const open = () =>
  new Promise((resolve, reject) => {
    const frame = document.createElement("iframe");
    frame.sandbox = "allow-scripts"; // no allow-same-origin: the realm has an origin of its own
    frame.addEventListener("load", () => resolve(frame), { once: true });
    frame.addEventListener("error", reject, { once: true });
    frame.src = "/realm";
    document.body.appendChild(frame);
  });

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
