// Runs before p5 and p5.brush. Makes chance the same from run to run, takes away what could leave the
// realm or block it, and keeps pristine functions for the harness. Time is instant.js' matter.
(() => {
  "use strict";
  // p5.brush seeds its streams from Math.random while it loads, so the generator comes first.
  let state = 1;
  const random = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  Math.random = random;

  Crypto.prototype.getRandomValues = (array) => {
    for (let i = 0; i < array.length; i++) array[i] = Math.floor(random() * 4294967296);
    return array;
  };
  Crypto.prototype.randomUUID = () => "00000000-0000-4000-8000-000000000000";

  for (const name of ["alert", "confirm", "prompt", "print", "open", "stop", "close", "focus"]) {
    window[name] = () => null;
  }
  // Every line would travel to the worker, and a sketch may write a million of them.
  for (const name of Object.keys(console)) {
    if (typeof console[name] === "function") console[name] = () => {};
  }
  // V8 would call a sketch's own formatter whenever the harness reads where an error was thrown.
  const locked = (value) => ({ value, writable: false, configurable: false });
  Object.defineProperty(Error, "prepareStackTrace", locked(undefined));
  Object.defineProperty(Error, "stackTraceLimit", locked(50));
  // p5 listens to motion sensors, which a sandboxed frame may not have: it only costs a warning.
  const listen = window.addEventListener;
  window.addEventListener = function (type, ...rest) {
    if (type !== "devicemotion" && type !== "deviceorientation") listen.call(window, type, ...rest);
  };
  // The content security policy stops fetch, sockets and workers; these need no permission.
  for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "WebTransport"]) {
    delete window[name];
  }
  Navigator.prototype.sendBeacon = () => false;

  // The harness reads these before the sketch runs and then removes the name.
  window.__watercolour = {
    reseed: (seed) => {
      state = seed | 0;
    },
    hooks: {}, // what the libraries' seams call; filled by bounds.js before a sketch runs
  };
  window.__watercolourHooks = window.__watercolour.hooks;
})();
