// Timers without time: callbacks run one after the other in the order in which they would fall
// due, and nobody waits. A looping timer so paints the same on a busy machine as on a quiet one,
// and what it would paint after the frame is never painted.
(() => {
  "use strict";
  const own = window.__watercolour;
  const realTimeout = window.setTimeout.bind(window);
  const { port1, port2 } = new MessageChannel();
  const post = port2.postMessage.bind(port2);
  const { isFinite } = Number;
  const { apply } = Reflect;

  // A list of own links: the methods of arrays and maps are within a sketch's reach.
  const first = { at: -1, id: 0, next: null };
  let ids = 0;
  let now = 0;
  let posted = false;
  let open = true; // for the sketch's callbacks

  const insert = (entry) => {
    let before = first;
    while (before.next && before.next.at <= entry.at) before = before.next;
    entry.next = before.next;
    before.next = entry;
    if (!posted) post(0);
    posted = true;
  };
  const pump = () => {
    posted = false;
    const entry = first.next;
    if (!entry) return;
    first.next = entry.next;
    now = entry.at;
    if (entry.next && !posted) {
      posted = true;
      post(0);
    }
    entry.run();
  };
  port1.onmessage = pump;

  const delayOf = (value, least) => {
    const delay = typeof value === "number" && isFinite(value) ? value : 0;
    return delay > least ? delay : least;
  };
  const add = (callback, delay, values, repeat) => {
    const id = ++ids;
    const entry = { at: now + delay, id, next: null, run: null };
    entry.run = () => {
      if (!open) return;
      own.hooks.timer();
      if (repeat) {
        entry.at = now + delay;
        insert(entry);
      }
      apply(callback, window, values);
    };
    if (typeof callback === "function") insert(entry);
    return id;
  };
  const cancel = (id) => {
    for (let before = first; before.next; before = before.next) {
      if (before.next.id === id) {
        before.next = before.next.next;
        return;
      }
    }
  };
  window.setTimeout = (callback, delay, ...values) => add(callback, delayOf(delay, 0), values, false);
  window.setInterval = (callback, delay, ...values) => add(callback, delayOf(delay, 1), values, true);
  window.requestAnimationFrame = (callback) => add(callback, 16, [0], false);
  window.requestIdleCallback = (callback) =>
    add(callback, 0, [{ didTimeout: false, timeRemaining: () => 0 }], false);
  window.clearTimeout = window.clearInterval = cancel;
  window.cancelAnimationFrame = window.cancelIdleCallback = cancel;
  delete window.scheduler; // its tasks would run between the ones above as the machine's load has it

  // In turn behind everything that is due by now; an error in it is the harness's own.
  own.later = (run) => insert({ at: now, id: 0, next: null, run });
  own.afterReal = realTimeout;
  own.endTimers = () => {
    open = false;
  };
})();
