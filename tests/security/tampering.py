"""Ways to change what measures the sketch, what is measured, and what comes after it."""

from __future__ import annotations

from typing import Any

from tests.security.attack import BARE, Attack, framed

TAMPERING, CODE, EXTERNAL = "harness_tampering", "dynamic_code", "external_access"
#: Where a sketch breaks what it stands on, any fault of its own will do; none of the machine's.
FAULT = frozenset(
    {
        "painted",
        "render_failed",
        "sketch_timeout",
        "sketch_oom",
        "missing_entry_points",
        "not_webgl",
        "canvas_out_of_bounds",
    }
)


def _attack(kind: str, name: str, tries: str, source: str, gate: str, **more: Any) -> Attack:
    return Attack(kind, name, tries, source, gate, **more)


def _tamper(name: str, tries: str, code: str, gate: str = TAMPERING, **more: Any) -> Attack:
    options: dict[str, Any] = {"ends": FAULT, **more}
    source = framed(head=code)
    return Attack("tampering", name, tries, source, gate, **options)


#: What a forged result would hold; none of it may come back.
FORGED = '{ pixels: "AAAA", width: 9999, height: 9999, shapes: 777, errors: [], timings: {} }'

TAMPER = (
    _tamper(
        "setters of Object.prototype",
        "to be called whenever the harness writes a property",
        'for (const key of ["fault", "lost", "shapes", "errors", "pixels", "width", "gl", "code",'
        ' "message", "line", "stage"]) Object.defineProperty(Object.prototype, key, { get() {'
        " return 777; }, set(v) {}, configurable: true });",
    ),
    _tamper(
        "functions of Array.prototype",
        "to empty the list of errors",
        "Array.prototype.push = function () { this.length = 0; return 0; };"
        " Array.prototype[Symbol.iterator] = function* () {}; Array.prototype.slice = () => [];",
        twin=False,
    ),
    _tamper(
        "Array.prototype.push alone",
        "to keep errors out of the answer",
        "const push = Array.prototype.push; Array.prototype.push = function (...all) {"
        " if (all[0]?.stage) { this.length = 0; return 0; } return push.apply(this, all); };"
        ' addEventListener("load", () => {}); Promise.reject(new Error("hidden"));',
    ),
    _tamper(
        "Promise.then",
        "to hold up or to see every answer",
        "const then = Promise.prototype.then; Promise.prototype.then = function (yes, no) {"
        f" return then.call(this, (value) => yes?.({FORGED}), no); }};",
    ),
    _tamper(
        "Function.prototype.call and apply",
        "to see what the harness calls",
        "Function.prototype.call = function () { return 0; };"
        " Function.prototype.apply = () => 0; Function.prototype.bind = () => () => 0;",
    ),
    _tamper(
        "Reflect",
        "the same, one floor below",
        "for (const k of Reflect.ownKeys(Reflect)) Reflect[k] = () => 0;",
        CODE,
    ),
    _tamper(
        "JSON",
        "an answer of its own",
        f"JSON.stringify = () => '{{}}'; JSON.parse = () => ({FORGED}); Object.prototype.toJSON"
        f" = () => ({FORGED});",
    ),
    _tamper(
        "Symbol.iterator",
        "lists that never end",
        "const end = Array.prototype[Symbol.iterator]; Array.prototype[Symbol.iterator] ="
        " function* () { yield* end.call(this); yield* end.call(this); };",
    ),
    _tamper(
        "getters on the window",
        "to be called whenever the harness reads a global",
        'for (const key of ["Error", "String", "Math", "Number", "RegExp", "Uint8Array", "Object"])'
        " { const real = window[key]; Object.defineProperty(window, key, { get() { return"
        " new Proxy(real, { apply: () => 1, construct: () => ({}) }); } }); }",
        CODE,
    ),
    _tamper(
        "a typed array of its own",
        "to be given the pixels, or to give them",
        "const Real = Uint8Array; window.Uint8Array = class extends Real { constructor(...a) {"
        " super(...a); this.fill(7); Object.freeze?.(a); } };",
    ),
    _tamper(
        "size of the drawing buffer",
        "a picture of another size",
        'for (const key of ["drawingBufferWidth", "drawingBufferHeight"]) Object.defineProperty('
        "WebGL2RenderingContext.prototype, key, { get: () => 9999 });",
    ),
    _tamper(
        "constants of the context",
        "pixels that are never read",
        'for (const key of ["RGBA", "FRAMEBUFFER", "UNSIGNED_BYTE"])'
        " Object.defineProperty(WebGL2RenderingContext.prototype, key, { get: () => 1 });",
    ),
    _tamper(
        "bounds of the canvas",
        "a canvas beyond all bounds",
        "Math.floor = () => 512; window.Number = () => 512;",
        ends=FAULT | {"canvas_out_of_bounds"},
    ),
    _attack(
        "tampering",
        "canvas beyond its bounds by the renderer",
        "a canvas that never goes through createCanvas",
        framed(last="drawingContext.canvas.width = drawingContext.canvas.height = 8000;"),
        TAMPERING,
        ends=FAULT | {"canvas_out_of_bounds", "sketch_oom"},
    ),
    _tamper(
        "text functions",
        "an error's text that is no text",
        "String.prototype.replace = String.prototype.slice = () => ({}); RegExp.prototype.exec ="
        " () => ({});"
        " Error.prepareStackTrace = () => ({}); Math.max = () => ({});"
        ' window.String = () => ({}); Promise.reject(new Error("x"));',
    ),
    _tamper(
        "stack traces",
        "the harness's own functions out of a trace",
        "Error.stackTraceLimit = 99; Error.prepareStackTrace = (e, frames) => { for (const f of"
        " frames) {"
        " const got = f.getFunction?.() || f.getThis?.(); if (got && got !== window &&"
        " /port|limits|fault/"
        '.test(String(got))) throw new Error("BREACH"); } return ""; };'
        " try { createCanvas(1, 1, WEBGL); } catch {}",
        ends=FAULT | {"canvas_out_of_bounds"},
    ),
    _tamper(
        "p5 itself",
        "a library that answers for the harness",
        "for (const key of Object.getOwnPropertyNames(p5.prototype)) try {"
        " if (/^_|redraw|createCanvas|pixelDensity/.test(key)) p5.prototype[key] = () => 0; }"
        " catch {}",
    ),
    _tamper(
        "hooks of the library",
        "to run before and after everything",
        "for (const list of Object.values(p5.lifecycleHooks)) list.length = 0;",
    ),
    _tamper(
        "counter of shapes",
        "more shapes than are counted",
        "window.__watercolour = { shapes: 9, onShape() {}, errors: [] };"
        " window.__watercolourShape = () => {};",
        twin=True,
    ),
    _tamper(
        "message to itself",
        "a job of its own",
        'addEventListener("message", (e) => { if (e.source === parent && e.ports[0]) throw new'
        ' Error("BREACH"); });'
        f' const c = new MessageChannel(); postMessage({FORGED}, "*", [c.port2]);',
        twin=True,
    ),
    _tamper(
        "message to the host",
        "a result of its own",
        f'for (let i = 0; i < 99; i++) {{ parent.postMessage({FORGED}, "*");'
        f' top.postMessage("ready", "*"); }}',
        twin=True,
    ),
    _tamper(
        "message to the next realm",
        "a job for the page that is being prepared",
        "for (let i = 0; i < 9; i++) try { const c = new MessageChannel();"
        ' parent[i].postMessage({ sketch: "for(;;);", seed: 1, limits: {} }, "*", [c.port2]);'
        ' parent[i].postMessage("throw 1", "*"); } catch {}',
        twin=True,
    ),
    _tamper(
        "loss of the context",
        "a failure that looks like the machine's",
        "setTimeout(() => {}, 0); const lose = (gl) =>"
        " gl?.getExtension('WEBGL_lose_context')?.loseContext();"
        " const get = HTMLCanvasElement.prototype.getContext;"
        " HTMLCanvasElement.prototype.getContext ="
        " function (...a) { const gl = get.apply(this, a); setTimeout(() => lose(gl), 0); return"
        " gl; };",
        ends=FAULT,
    ),
    _attack(
        "tampering",
        "loss of the context by contexts of other frames",
        "the same where nobody counts them",
        framed(
            BARE + "for (let i = 0; i < 24; i++) await bare("
            '"(window.kept = document.createElement(`canvas`).getContext(`webgl2`)) && 1");'
        ),
        EXTERNAL,
        ends=FAULT,
    ),
    _attack(
        "tampering",
        "end of its own process",
        "a failure that looks like the machine's",
        framed(
            'location.href = "chrome://crash"; top.location = "chrome://kill";'
            ' open("chrome://hang");'
            ' document.body.innerHTML = "<iframe src=chrome://gpucrash></iframe>";'
        ),
        TAMPERING,
        ends=FAULT,
    ),
    _attack(
        "tampering",
        "event of a lost context",
        "to say that the context is lost when it is not",
        framed(last='drawingContext.canvas.dispatchEvent(new Event("webglcontextlost"));'),
        TAMPERING,
        ends=FAULT,
    ),
)

SMUGGLED = (
    _attack(
        "smuggling",
        "text of p5",
        "a word on the canvas",
        framed(last='textSize(30); text("rose", 20, 60);'),
        "text_label",
    ),
    _attack(
        "smuggling",
        "second canvas in front",
        "a picture of its own in place of the painting",
        framed(
            'const other = document.createElement("canvas"); other.width = other.height = 128;'
            ' other.getContext("2d").fillText("ROSE", 10, 50);'
            " document.body.replaceChildren(other);"
            ' document.querySelector = () => other; other.id = "defaultCanvas0";'
        ),
        EXTERNAL,
        twin=True,
    ),
    _attack(
        "smuggling",
        "words over the canvas",
        "text of the page",
        framed(
            'document.body.insertAdjacentHTML("beforeend", "<h1 style=position:fixed>ROSE</h1>");'
        ),
        EXTERNAL,
        twin=True,
    ),
    _attack(
        "smuggling",
        "canvas as a texture",
        "a word by way of a 2D canvas",
        framed(
            last='const c = new OffscreenCanvas(64, 64); c.getContext("2d").fillText("ROSE", 5,'
            " 40);"
            " texture(new p5.Graphics(64, 64)); plane(64);"
        ),
        EXTERNAL,
    ),
    _attack(
        "smuggling",
        "foreign object of SVG",
        "a word by way of SVG",
        framed(
            "const picture = new Image(); picture.src = 'data:image/svg+xml,<svg"
            ' xmlns="http://www.w3.org/2000/svg"><foreignObject width="99" height="99"><p'
            ' xmlns="http://www.w3.org/1999/xhtml">ROSE</p></foreignObject></svg>\';'
            " await picture.decode().catch(() => {});"
        ),
        EXTERNAL,
        twin=True,
    ),
    _attack(
        "smuggling",
        "graphics buffer",
        "a word by way of p5's own buffer",
        framed(last="const g = createGraphics(64, 64); g.text('ROSE', 5, 40); image(g, 0, 0);"),
        "bare_primitives",
    ),
    _attack(
        "smuggling",
        "outlines of letters",
        "shapes taken from a font",
        framed(last='textToPoints("ROSE", 0, 0, { sampleFactor: 1 });'),
        "text_label",
        ends=frozenset({"painted", "render_failed"}),
    ),
    _attack(
        "smuggling",
        "raw pixels",
        "pixels without paint",
        framed(last="loadPixels(); pixels.fill(0); updatePixels();"),
        "bare_primitives",
    ),
    _attack(
        "smuggling",
        "brush with a tip of text",
        "a brush whose tip is a word",
        framed(
            'brush.add("words", { type: "custom", weight: 9, vibration: 0, definition: 1,'
            " quality: 1,"
            ' opacity: 99, spacing: 1, blend: false, pressure: { type: "standard", curve: [1, 1],'
            ' min_max: [1, 1] }, tip: (at) => at.text("rose", 0, 0) });'
        ),
        "text_label",
        ends=frozenset({"painted", "render_failed"}),
    ),
    _attack(
        "smuggling",
        "shader of its own",
        "a picture computed for each pixel",
        framed(last='filter(createFilterShader("void main() {}"));'),
        "bare_primitives",
        ends=frozenset({"painted", "render_failed"}),
    ),
    _attack(
        "smuggling",
        "words in the errors",
        "half characters in a text that others must store",
        framed(draw='throw new Error("\\ud800 \\udfff \\u0000 \\u202e" + "x".repeat(1e6));'),
        "",
        admitted="an error's text is the sketch's own; the harness cuts it and makes it well"
        " formed",
        ends=frozenset({"painted", "render_failed"}),
    ),
    _attack(
        "smuggling",
        "loop of frames",
        "another picture than the first",
        framed(
            head="let seen = 0;", draw="seen++; loop(); if (seen > 1) throw new Error('BREACH');"
        ),
        "",
        admitted="calling loop() does no harm: a painting is its first frame",
        twin=True,
    ),
)

TAMPERINGS = (*TAMPER, *SMUGGLED)
