// What went wrong in a sketch: errors and the fault that ends it. Reads thrown values without
// running any code of the sketch: no getter, no toString, no trap of a proxy.
(() => {
  "use strict";
  const own = window.__watercolour;
  const { apply, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;
  const { isError } = Error;
  const { hasOwn } = Object;
  const { slice, startsWith } = String.prototype;
  const { exec } = RegExp.prototype;
  const { preventDefault } = Event.prototype;

  const LIMITS = { errors: 20, message: 500 };
  const NOWHERE = { line: 0, column: 0 };
  const NATIVE = [
    Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError, AggregateError,
  ].map((made) => ({ prototype: made.prototype, name: made.name }));
  const APPEND = "Failed to execute 'appendChild' on 'Node': ";

  const getter = (prototype, name) => getOwnPropertyDescriptor(prototype, name)?.get;
  const stackGetter = getter(new Error(), "stack");
  const EVENT = {};
  for (const name of ["error", "message", "filename", "lineno", "colno"]) {
    EVENT[name] = getter(ErrorEvent.prototype, name);
  }
  const reasonOf = getter(PromiseRejectionEvent.prototype, "reason");
  const domName = getter(DOMException.prototype, "name");
  const domMessage = getter(DOMException.prototype, "message");

  // An own text of an error; undefined if there is none, or if reading it would run a getter.
  const text = (error, name) => {
    const found = getOwnPropertyDescriptor(error, name);
    if (!found) return undefined;
    if (hasOwn(found, "value")) return typeof found.value === "string" ? found.value : undefined;
    if (name === "stack" && found.get === stackGetter && stackGetter) return apply(stackGetter, error, []);
    return undefined;
  };
  const nameOf = (error) => {
    const prototype = getPrototypeOf(error);
    for (let i = 0; i < NATIVE.length; i++) {
      if (NATIVE[i].prototype === prototype) return NATIVE[i].name;
    }
    return "Error";
  };
  const describeObject = (value) => {
    if (value === null) return "null was thrown";
    if (typeof value === "function") return "a function was thrown";
    try {
      return `${apply(domName, value, [])}: ${apply(domMessage, value, [])}`;
    } catch {}
    if (!isError(value)) return "an object was thrown that is no Error";
    return `${text(value, "name") ?? nameOf(value)}: ${text(value, "message") ?? ""}`;
  };
  const describe = (value) => {
    let said;
    if (typeof value === "string") said = value;
    else if (typeof value === "symbol") said = "a symbol was thrown";
    else if (typeof value === "object" || typeof value === "function") said = describeObject(value);
    else said = `${value}`; // a number, truth value, bigint or undefined
    const syntax = `SyntaxError: ${APPEND}`;
    if (apply(startsWith, said, [syntax])) said = `SyntaxError: ${apply(slice, said, [syntax.length])}`;
    return apply(slice, said, [0, LIMITS.message]);
  };
  const column = (line, at) => (line === 1 ? (at > own.head ? at - own.head : 1) : at);
  const place = (error) => {
    const stack = isError(error) ? text(error, "stack") : "";
    const found = apply(exec, /sketch\.js:(\d+):(\d+)/, [stack ?? ""]);
    return found ? { line: +found[1], column: column(+found[1], +found[2]) } : NOWHERE;
  };

  own.stage = "load"; // load, setup, draw
  own.head = 0; // characters of the harness's own before the sketch's first line
  own.fault = null; // {code, message, line, column}: ends the sketch
  own.errors = [];
  own.unlisted = 0; // errors beyond those that are listed

  own.note = (error, where = NOWHERE) => {
    if (own.errors.length >= LIMITS.errors) {
      own.unlisted++;
      return;
    }
    const at = where.line ? where : place(error);
    own.errors[own.errors.length] = { message: describe(error), stage: own.stage, ...at };
  };
  own.blame = (code, message, where = NOWHERE) => {
    own.fault ||= { code, message, ...where };
  };
  class Refused extends Error {}
  own.refuse = (code, message) => {
    const error = new Refused(message);
    own.blame(code, message, place(error));
    throw error;
  };

  window.addEventListener("error", (event) => {
    if (!event.isTrusted) return;
    const read = (name) => apply(EVENT[name], event, []);
    apply(preventDefault, event, []); // the browser need not log it as well
    const error = read("error");
    const at = { line: read("lineno"), column: column(read("lineno"), read("colno")) };
    // A text that does not parse has no sourceURL yet and goes by the document's name.
    const inSketch = apply(exec, /(sketch\.js|srcdoc)$/, [read("filename")]) !== null;
    if (own.stage === "load" && inSketch && isError(error) && nameOf(error) === "SyntaxError") {
      own.blame("syntax_error", describe(error), at);
    }
    own.note(error ?? read("message"), inSketch ? at : NOWHERE);
  });
  // The browser reports rejections in their order in a task of its own: when it has come to ours,
  // it has told of all that the sketch left behind.
  const marker = Object.freeze({ __proto__: null });
  const { reject } = Promise;
  const RealPromise = Promise;
  let settled = () => {};
  own.settle = (then) => {
    settled = then;
    apply(reject, RealPromise, [marker]);
  };
  window.addEventListener("unhandledrejection", (event) => {
    if (!event.isTrusted) return;
    const reason = apply(reasonOf, event, []);
    apply(preventDefault, event, []);
    if (reason === marker) {
      const then = settled;
      settled = () => {};
      then();
      return;
    }
    own.note(reason);
    // p5 does not await its own start: a rejected setup shows up here and nowhere else.
    if (own.stage === "setup") own.later(() => own.finish());
  });
})();
