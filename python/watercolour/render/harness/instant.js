// Every clock of the page stands still at one instant, or is gone. Runs after prelude.js, in the
// realm and in every further frame that a sketch makes.
(() => {
  "use strict";
  const own = window.__watercolour;
  const { apply, construct, getOwnPropertyDescriptor, ownKeys } = Reflect;
  const { defineProperty } = Object;
  const EPOCH = 1577836800000; // 2020-01-01, UTC
  own.now = performance.now.bind(performance);

  const method = (holder, name, value) =>
    defineProperty(holder, name, { value, writable: true, enumerable: true, configurable: true });
  // A part that this browser does not have needs no stopping.
  const still = (of, name, value) => {
    if (!window[of] || !(name in window[of].prototype)) return;
    defineProperty(window[of].prototype, name, { get: () => value, configurable: true, enumerable: true });
  };
  const remove = (holder, ...names) => {
    for (const name of names) if (holder) delete holder[name];
  };

  // The same prototype as before: a subclass would keep the real one within reach.
  const RealDate = Date;
  const FixedDate = function Date(...args) {
    if (!new.target) return `${new RealDate(EPOCH)}`;
    return construct(RealDate, args.length ? args : [EPOCH], new.target);
  };
  FixedDate.now = () => EPOCH;
  FixedDate.parse = RealDate.parse;
  FixedDate.UTC = RealDate.UTC;
  FixedDate.prototype = RealDate.prototype;
  method(RealDate.prototype, "constructor", FixedDate);
  method(window, "Date", FixedDate);

  const dates = Intl.DateTimeFormat.prototype;
  const { get: formatOf } = getOwnPropertyDescriptor(dates, "format");
  const { formatToParts } = dates;
  defineProperty(dates, "format", {
    get() {
      const format = apply(formatOf, this, []);
      return (date) => format(date === undefined ? EPOCH : date);
    },
    configurable: true,
  });
  method(dates, "formatToParts", function (date) {
    return apply(formatToParts, this, [date === undefined ? EPOCH : date]);
  });
  remove(window.Temporal, "Now");

  for (const name of ownKeys(Performance.prototype)) {
    if (name !== "constructor") delete Performance.prototype[name];
  }
  method(Performance.prototype, "now", () => 0);
  defineProperty(Performance.prototype, "timeOrigin", { get: () => EPOCH, configurable: true });
  remove(console, "memory");

  still("Event", "timeStamp", 0);
  still("File", "lastModified", EPOCH);
  still("File", "lastModifiedDate", new FixedDate());
  still("Document", "lastModified", "01/01/2020 00:00:00");
  still("IntersectionObserverEntry", "time", 0);
  for (const of of ["SVGSVGElement", "SVGAnimationElement"]) {
    for (const name of ["getCurrentTime", "getStartTime"]) {
      if (name in window[of].prototype) method(window[of].prototype, name, () => 0);
    }
  }

  // Animations, sound and films have clocks of their own; so have the graphics.
  remove(Document.prototype, "timeline", "getAnimations", "startViewTransition");
  remove(Element.prototype, "animate", "getAnimations");
  remove(ShadowRoot.prototype, "getAnimations");
  remove(HTMLCanvasElement.prototype, "captureStream");
  for (const of of [WebGLRenderingContext, WebGL2RenderingContext]) {
    const { getExtension } = of.prototype;
    const { exec } = RegExp.prototype;
    method(of.prototype, "getExtension", function (name) {
      const wanted = `${name}`;
      return apply(exec, /timer_query/i, [wanted]) ? null : apply(getExtension, this, [wanted]);
    });
  }
  // Made from nothing they show the time, or a number by chance; these two wait in real time.
  remove(window, "PerformanceObserver", "PerformanceMark", "PerformanceMeasure", "DocumentTimeline");
  remove(window, "Animation", "AudioContext", "webkitAudioContext", "MediaStream", "webkitMediaStream");
  remove(window, "MediaRecorder", "MediaSource", "navigation");
  remove(AbortSignal, "timeout");
  remove(Atomics, "wait", "waitAsync");
  // An address of a blob is a number by chance. No page here may load anything from one.
  method(URL, "createObjectURL", () => "blob:null/00000000-0000-4000-8000-000000000000");
})();
