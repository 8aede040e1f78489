"""Ways to use up time, memory and the reader's patience."""

from __future__ import annotations

from typing import Any

from tests.security.attack import BARE, SETTLE, Attack, framed

TIMEOUT = frozenset({"sketch_timeout"})
MEMORY = frozenset({"sketch_oom"})
#: V8 and Chromium refuse some sizes outright: then the sketch goes on with an error.
MEMORY_OR_ERROR = MEMORY | {"painted", "render_failed"}
ADMITTED_LOOP = "whether a program ends cannot be read off its text: the CPU budget decides"
ADMITTED_SIZE = "how much a program takes cannot be read off its text: the memory limit decides"


def _time(name: str, tries: str, source: str, gate: str = "", **more: Any) -> Attack:
    options: dict[str, Any] = {"ends": TIMEOUT, "cpu_s": 1.0, **more}
    admitted = "" if gate else ADMITTED_LOOP
    return Attack("time", name, tries, source, gate, admitted, **options)


TIME = (
    _time("loop while it loads", "never to end", framed(head="while (true);")),
    _time("loop in setup", "never to end", framed("for (;;) ;")),
    _time("loop in draw", "never to end", framed(draw="do {} while (true);")),
    _time("loop after the painting", "to end only after all is painted", framed(last="for (;;) ;")),
    _time(
        "loop of promises",
        "to starve every task",
        framed(head="const again = () => Promise.resolve().then(again); again();"),
    ),
    _time(
        "loop of timers",
        "to go on for ever, a little at a time",
        framed(
            "const spin = () => { for (let i = 0; i < 1e7; i++); setTimeout(spin, 0); };"
            " spin(); await new Promise(() => {});"
        ),
        gate="dynamic_code",
    ),
    _time(
        "catastrophic pattern",
        "a pattern that backtracks for ever",
        framed('/^(a+)+$/.test("a".repeat(40) + "b");'),
    ),
    _time(
        "comparison that never ends",
        "a sort that never ends",
        framed("[3, 1, 2].sort(() => { for (;;) ; });"),
    ),
    _time(
        "getter that never ends",
        "to hold up whoever reads its error",
        framed(draw="throw { get stack() { for (;;) ; }, toString() { for (;;) ; } };"),
        ends=TIMEOUT | {"painted"},  # nothing of the sketch runs while its error is read
    ),
    _time(
        "loop when the page goes",
        "to hold up the next painting",
        framed('addEventListener("pagehide", () => { for (;;) ; });'),
        gate="harness_tampering",
    ),
    _time(
        "loop after the answer",
        "to go on when the picture has been sent",
        framed("setTimeout(() => { for (;;) ; }, 60); const done = 1;").replace(SETTLE, ""),
        gate="harness_tampering",
        ends=TIMEOUT | {"painted"},
    ),
    _time(
        "shapes without end",
        "to paint for ever",
        framed(draw="brush.fill('red', 99); for (;;) brush.circle(0, 0, 9);"),
        ends=TIMEOUT | {"render_failed"},
    ),
    _time(
        "shape of a million vertices",
        "one shape that takes for ever",
        framed(
            draw="brush.fill('red', 99); brush.beginShape(0.5);"
            " for (let i = 0; i < 3e6; i++) brush.vertex(sin(i) * 60, cos(i) * 60);"
            " brush.endShape(true);"
        ),
        ends=TIMEOUT | {"sketch_oom", "render_failed"},
    ),
    _time(
        "shader that never ends",
        "to hold up the process that all pages share",
        framed(
            draw="const s = createShader(`#version 300 es\\nin vec3 aPosition; void main() {"
            " gl_Position = vec4(aPosition, 1.0); }`, `#version 300 es\\nprecision highp float; out"
            " vec4 c; void main() { float a = 0.1; for (int i = 0; i < 2000000000; i++) a = sin(a +"
            " float(i)); c = vec4(a); }`); shader(s); plane(999); drawingContext.finish();"
            " loadPixels();"
        ),
        gate="bare_primitives",
        ends=TIMEOUT | {"render_failed", "painted"},
    ),
    _time(
        "promise that never settles",
        "to wait, idle, for the deadline: nobody's fault",
        framed("await new Promise(() => {});").replace(SETTLE, ""),
        ends=frozenset({"render_failed"}),
        cpu_s=30.0,
    ),
    _time(
        "drawing that never settles",
        "the same in draw",
        framed().replace(
            "function draw() {", "async function draw() { await new Promise(() => {});"
        ),
        ends=frozenset({"render_failed"}),
        cpu_s=30.0,
    ),
    _time(
        "answer that never comes",
        "to keep the harness from answering",
        framed(
            """Promise.prototype.then = function () { return new Promise(() => {}); };
  Promise.prototype.constructor = class { constructor() {} };
  MessagePort.prototype.postMessage = () => {}; throw 1;"""
        ),
        gate="dynamic_code",
        ends=frozenset({"render_failed", "harness_tampering", "painted"}),
        cpu_s=30.0,
    ),
    _time(
        "answer that cannot be sent",
        "to put into the answer what cannot be copied",
        framed(
            """const odd = () => {}; RegExp.prototype.exec = () => ({ 1: "1", 2: "1" });
  Math.max = () => odd; String.prototype.replace = () => "x"; throw new Error("x");"""
        ),
        gate="harness_tampering",
        ends=frozenset({"render_failed", "harness_tampering"}),
        cpu_s=30.0,
    ),
)


def _memory(name: str, tries: str, code: str, gate: str = "", **more: Any) -> Attack:
    options: dict[str, Any] = {"ends": MEMORY, "cpu_s": 60.0, **more}
    admitted = "" if gate else ADMITTED_SIZE
    source = framed(code).replace(SETTLE, "")
    return Attack("memory", name, tries, source, gate, admitted, **options)


MEMORY_BOMBS = (
    _memory(
        "heap",
        "a heap that grows",
        "const all = []; for (;;) all.push(new Array(1e5).fill({ a: all.length }));",
    ),
    _memory(
        "typed arrays",
        "memory beside the heap",
        "const all = []; for (;;) all.push(new Float64Array(8e6).fill(1));",
    ),
    _memory(
        "one typed array",
        "memory beside the heap, at once",
        "const big = new Uint8Array(2 ** 31).fill(1); big[1] = 2; for (;;) ;",
        ends=MEMORY,
    ),
    _memory(
        "strings",
        "texts, each of another half a gigabyte",
        "const all = []; for (let i = 0; ; i++) {"
        " const t = 'x'.repeat(2e8) + i; all.push(t.charCodeAt(2e8), t); }",
        ends=MEMORY | {"sketch_timeout"},
        cpu_s=10.0,
    ),
    _memory(
        "copies",
        "structured copies",
        "const all = []; const one = new Uint8Array(1e8).fill(1); for (;;)"
        " all.push(structuredClone(one));",
    ),
    _memory(
        "canvases",
        "2D canvases outside the page's picture",
        "const all = []; for (;;) { const c = new OffscreenCanvas(4096, 4096);"
        ' const x = c.getContext("2d", { willReadFrequently: true }); x.fillRect(0, 0, 4096, 4096);'
        " x.getImageData(0, 0, 1, 1); all.push(c, x); }",
        gate="external_access",
    ),
    _memory(
        "textures",
        "memory of the process that all pages share",
        "const gl = drawingContext; const all = []; const fill = new Uint8Array(4096 * 4096 *"
        " 4).fill(7);"
        " for (;;) { const t = gl.createTexture(); all.push(t); gl.bindTexture(gl.TEXTURE_2D, t);"
        " gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, 4096, 4096, 0, gl.RGBA, gl.UNSIGNED_BYTE, fill);"
        " gl.finish(); if (gl.isContextLost()) break; }",
        gate="harness_tampering",
    ),
    _memory(
        "buffers",
        "the same with vertex buffers",
        "const gl = drawingContext; const all = []; const fill = new Uint8Array(5e7).fill(7);"
        " for (;;) { const b = gl.createBuffer(); all.push(b); gl.bindBuffer(gl.ARRAY_BUFFER, b);"
        " gl.bufferData(gl.ARRAY_BUFFER, fill, gl.STATIC_DRAW); gl.finish();"
        " if (gl.isContextLost()) break; }",
        gate="harness_tampering",
    ),
    _memory(
        "render buffers",
        "the same with multisampled render buffers",
        "const gl = drawingContext; const all = []; for (;;) { const b = gl.createRenderbuffer();"
        " all.push(b); gl.bindRenderbuffer(gl.RENDERBUFFER, b); gl.renderbufferStorageMultisample("
        "gl.RENDERBUFFER, 4, gl.RGBA8, 4096, 4096); const f = gl.createFramebuffer();"
        " gl.bindFramebuffer(gl.FRAMEBUFFER, f); gl.framebufferRenderbuffer(gl.FRAMEBUFFER,"
        " gl.COLOR_ATTACHMENT0, gl.RENDERBUFFER, b); gl.clear(gl.COLOR_BUFFER_BIT); gl.finish();"
        " if (gl.isContextLost()) break; }",
        gate="harness_tampering",
    ),
    _memory(
        "contexts",
        "WebGL contexts, until the oldest is taken away: the page's own",
        "const all = []; for (let i = 0; i < 40; i++)"
        ' all.push(document.createElement("canvas").getContext("webgl2"));',
        gate="external_access",
        ends=frozenset({"render_failed", "painted", "canvas_out_of_bounds"}),
    ),
    _memory(
        "blobs",
        "memory and files of the browser's own process",
        "const all = []; const one = new Uint8Array(3e7).fill(7); for (let i = 0; i < 100; i++) {"
        " one[0] = i; const b = new Blob([one]); all.push(URL.createObjectURL(b), b);"
        " await b.slice(0, 1).arrayBuffer(); }",
        gate="external_access",
        ends=MEMORY | {"render_failed", "painted"},
    ),
    _memory(
        "messages to the host",
        "memory of the page that outlives the sketch",
        "const one = new Uint8Array(5e7).fill(7); for (;;) parent.postMessage(one, '*');",
        gate="harness_tampering",
    ),
    _memory(
        "shared memory",
        "memory shared with nobody",
        "const all = []; for (;;) { const s = new WebAssembly.Memory({ initial: 16384, maximum:"
        " 16384 });"
        " new Uint8Array(s.buffer).fill(1); all.push(s); }",
        gate="dynamic_code",
    ),
    _memory(
        "canvas out of bounds",
        "a canvas of 400 million pixels",
        "createCanvas(20000, 20000, WEBGL);",
        ends=frozenset({"canvas_out_of_bounds"}),
    ),
    _memory(
        "canvas of no size",
        "a canvas without a pixel",
        "createCanvas(0, 0, WEBGL);",
        ends=frozenset({"canvas_out_of_bounds"}),
    ),
    _memory(
        "pixel density",
        "a canvas with 400 pixels in each",
        "pixelDensity(20); createCanvas(1024, 1024, WEBGL);",
        ends=frozenset({"painted"}),
    ),
    _memory(
        "console",
        "memory of the process that drives the browser",
        'const text = "x".repeat(1e6); for (let i = 0; i < 400; i++) console.log(text + i, {'
        " text });",
        ends=frozenset({"painted"}),
        twin=True,
    ),
    _memory(
        "errors without end",
        "a list of errors that grows",
        'for (let i = 0; i < 2000; i++) Promise.reject(new Error("x".repeat(1e5) + i));',
        ends=frozenset({"painted", "render_failed"}),
    ),
    _memory(
        "error of a hundred megabytes",
        "an answer that does not fit",
        'createCanvas("9".repeat(1e8), 100, WEBGL);',
        ends=frozenset({"canvas_out_of_bounds", "render_failed"}),
    ),
    _memory(
        "address of the document",
        "the browser's list of visited places",
        'for (let i = 0; i < 3000; i++) { history.pushState("x".repeat(1e5), "", "#" + i); }',
        gate="external_access",
        ends=frozenset({"painted", "render_failed", "sketch_timeout", "sketch_oom"}),
    ),
    _memory(
        "frames without end",
        "a thousand pages in one",
        BARE + "for (let i = 0; i < 3000; i++) bare(`0`);",
        gate="external_access",
        ends=frozenset({"painted", "render_failed", "sketch_timeout", "sketch_oom"}),
        cpu_s=3.0,
    ),
    _memory(
        "elements nested without end",
        "the stack of the browser's own code",
        "let at = document.body; for (let i = 0; i < 2e5; i++) { const d ="
        ' document.createElement("div");'
        " at.append(d); at = d; } document.body.style.display = 'block';"
        " document.body.cloneNode(true);"
        " document.body.offsetHeight; document.body.normalize(); void document.body.outerHTML;",
        gate="external_access",
        ends=frozenset({"painted", "render_failed", "sketch_timeout", "sketch_oom"}),
        cpu_s=4.0,
    ),
)


BURNING = (*TIME, *MEMORY_BOMBS)
