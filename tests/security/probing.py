"""Ways to learn what differs from run to run, and texts that two readers read differently."""

from __future__ import annotations

from typing import Any

from tests.security.attack import BARE, SETTLE, Attack, framed

TAMPERING, CODE, EXTERNAL, SYNTAX = (
    "harness_tampering",
    "dynamic_code",
    "external_access",
    "syntax_error",
)
_FIXED = "the page gives every run the same value"


def _probe(name: str, tries: str, value: str, gate: str = "", **more: Any) -> Attack:
    """Paints what it found out: a circle whose radius is the value, modulo 20."""
    options: dict[str, Any] = {"steady": True, **more}
    source = framed(
        f"let v = 0; try {{ v = {value}; }} catch {{ v = 7; }} found = Number(v);",
        head="let found = 0;",
        last='brush.fill("#3f7d3a", 150);'
        " brush.circle(30 + (Math.floor(found / 20) % 60), 100, 3 + (found % 20));",
    ).replace(SETTLE, "")
    admitted = "" if gate else _FIXED
    return Attack("clock and chance", name, tries, source, gate, admitted, **options)


CLOCKS = (
    _probe("Date", "the time", "Date.now() + new Date().getTime() + new Date().getSeconds()"),
    _probe("millis", "the time since the start", "millis() + second() * 1000 + deltaTime * 1000"),
    _probe("frame rate", "how fast the machine is", "frameRate() * 1000"),
    _probe(
        "texts of dates",
        "the time in words",
        "new Date().toString().length + +new Date().toISOString().slice(20, 23)",
    ),
    _probe(
        "behind Date", "the real Date under ours", "Object.getPrototypeOf(Date).now()", TAMPERING
    ),
    _probe(
        "constructor of dates",
        "the real Date by its objects",
        "new (Object.getPrototypeOf(Object.getPrototypeOf(new Date())).constructor)().getTime()",
        CODE,
    ),
    _probe(
        "Date as a function",
        "the time in words",
        "Date.prototype.constructor().length + +new Date(Date.prototype.constructor()) / 1000",
        CODE,
    ),
    _probe("performance", "microseconds", "performance.now() * 1000", EXTERNAL),
    _probe("start of the page", "when the page began", "performance.timeOrigin * 10", EXTERNAL),
    _probe(
        "entries",
        "when something was loaded",
        "performance.mark('a').startTime * 1e4 + performance.getEntries().length * 13 +"
        " performance.toJSON().timing.navigationStart",
        EXTERNAL,
    ),
    _probe("event", "when an event was made", "new Event('a').timeStamp * 1e4", EXTERNAL),
    _probe("time line", "the clock of animations", "document.timeline.currentTime * 1e4", EXTERNAL),
    _probe(
        "animation frame",
        "when a frame begins",
        "await new Promise((go) => { requestAnimationFrame((t) => go(t * 1000)); setTimeout(()"
        " => go(3), 400); })",
        TAMPERING,
    ),
    _probe(
        "Intl",
        "the time in words",
        "new Intl.DateTimeFormat('en', { fractionalSecondDigits: 3, second: 'numeric'"
        " }).format().replace('.', '')",
        CODE,
    ),
    _probe(
        "Temporal", "the time in nanoseconds", "Temporal.Now.instant().epochMilliseconds", EXTERNAL
    ),
    _probe(
        "audio clock",
        "the clock of the sound",
        "new AudioContext().currentTime * 1e6 + new OfflineAudioContext(1, 1, 44100).currentTime",
        EXTERNAL,
    ),
    _probe(
        "last change of the document",
        "the time in words",
        "Date.parse(document.lastModified) / 1000",
        EXTERNAL,
    ),
    _probe(
        "idle time",
        "how much time is left",
        "await new Promise((go) => { requestIdleCallback((d) => go(d.timeRemaining() * 1e6));"
        " setTimeout(() => go(1), 300); })",
        TAMPERING,
    ),
    _probe("memory in use", "how much is allocated", "performance.memory.usedJSHeapSize", EXTERNAL),
    _probe(
        "file's date", "the time when a file was made", "new File([], 'a').lastModified", EXTERNAL
    ),
    _probe(
        "clock of a bare frame",
        "the functions that nobody has changed",
        f"await (() => {{ {BARE} return bare(`Date.now() + performance.now() * 1e4`); }})()",
        EXTERNAL,
    ),
    _probe(
        "clock of frames in markup",
        "the same by markup",
        "(() => { document.body.insertAdjacentHTML('beforeend', '<iframe></iframe>'); return"
        " document.body.lastChild.contentWindow.performance.now() * 1e4; })()",
        EXTERNAL,
    ),
    _probe("random", "chance", "Math.random() * 1e6 + random() * 1e6 + noise(3) * 1e6"),
    _probe(
        "random without a seed",
        "to be unseeded",
        "(randomSeed(undefined), noiseSeed(undefined), random() * 1e6)",
    ),
    _probe(
        "getRandomValues",
        "chance of the machine",
        "crypto.getRandomValues(new Uint32Array(1))[0]",
        EXTERNAL,
    ),
    _probe(
        "randomUUID",
        "chance of the machine",
        "parseInt(crypto.randomUUID().slice(0, 8), 16)",
        EXTERNAL,
    ),
    _probe(
        "keys",
        "chance of the machine",
        "await crypto.subtle.generateKey({ name: 'AES-GCM', length: 128 }, true,"
        " ['encrypt']).then((k) => crypto.subtle.exportKey('raw', k)).then((r) => new"
        " Uint32Array(r)[0])",
        EXTERNAL,
    ),
    _probe(
        "address of a blob",
        "chance of the machine",
        "parseInt(URL.createObjectURL(new Blob([])).slice(-8), 16)",
        EXTERNAL,
    ),
    _probe(
        "chance of a bare frame",
        "the functions that nobody has changed",
        f"await (() => {{ {BARE} return bare(`Math.random() * 1e6"
        f" + crypto.getRandomValues(new Uint32Array(1))[0]`); }})()",
        EXTERNAL,
    ),
    _probe(
        "identity of Math.random",
        "whether it is ours",
        "String(Math.random).length * 7 + Math.random.name.length",
    ),
    _probe(
        "order of a race",
        "which of two timers comes first",
        "await Promise.race([new Promise((go) => setTimeout(go, 1, 1)), Promise.resolve(9)])",
        CODE,
    ),
    _probe(
        "the host's port",
        "what differs from start to start",
        "document.baseURI.length + +(/:(\\d+)/.exec(document.baseURI)?.[1] ?? 1)",
        EXTERNAL,
    ),
    _probe(
        "the deadline",
        "what the harness was told",
        "(() => { for (const k of Object.getOwnPropertyNames(window)) if"
        " (/deadline|budget|limits/i.test(k)) throw new Error('BREACH'); return 3; })()",
        TAMPERING,
    ),
)


def _text(name: str, tries: str, source: str, gate: str, **more: Any) -> Attack:
    options: dict[str, Any] = {"ends": frozenset({"painted", "render_failed", SYNTAX}), **more}
    return Attack("unicode", name, tries, source, gate, **options)


UNICODE = (
    _text(
        "bidirectional override",
        "code that reads like a comment",
        framed("const level = 'user\\u202e \\u2066'; /* \u202e\u2066 */ eval('1');"),
        CODE,
    ),
    _text(
        "bidirectional override in a comment",
        "a comment that reads like code",
        framed("/* \u202e } eval(1) \u2066 */"),
        "",
        admitted="a comment, whatever it looks like, does nothing",
        twin=True,
    ),
    _text(
        "look-alike of a name",
        "a name that reads like another",
        framed("const \u0435val = (x) => x; \u0435val('1');"),
        "",
        admitted="a name of the sketch's own, whatever it looks like, is not the browser's",
        twin=True,
    ),
    _text(
        "escapes in a name",
        "a forbidden name in other letters",
        framed("\\u0066etch('$URL'); \\u{65}val('1');"),
        CODE,
    ),
    _text(
        "escapes in a member",
        "a forbidden member in other letters",
        framed("[].c\\u006fnstructor.constructor('x');"),
        CODE,
    ),
    _text(
        "escapes in a text",
        "a forbidden member in a text",
        framed("[]['\\x63onstr\\u{75}ctor']['constructor']('x');"),
        CODE,
    ),
    _text(
        "full-width letters", "a name that is normalised", framed("\uff46etch('$URL');"), EXTERNAL
    ),
    _text(
        "joiners in a name",
        "a name with an invisible letter",
        framed("fet\u200dch('$URL');"),
        EXTERNAL,
    ),
    _text("NUL", "a text that ends early", framed("const a = '\x00'; \x00 fetch('$URL');"), SYNTAX),
    _text(
        "NUL in a text",
        "a text that ends early",
        framed("const a = 'x\x00y'; if (a.length !== 3) throw new Error('BREACH');"),
        SYNTAX,
        twin=True,
    ),
    _text(
        "half a character",
        "a text that is no text",
        framed("const a = '\ud800';"),
        SYNTAX,
        browser=False,
    ),
    _text(
        "byte-order mark",
        "a mark within the text",
        "\ufeff" + framed("const\ufeffa = 1;"),
        "",
        admitted="white space to parser and browser alike",
        twin=True,
    ),
    _text(
        "line separator", "a comment that ends early", framed("// \u2028 fetch('$URL');"), SYNTAX
    ),
    _text(
        "paragraph separator",
        "a comment that ends early",
        framed("// \u2029 fetch('$URL');"),
        SYNTAX,
    ),
    _text("carriage return", "a comment that ends early", framed("// \r fetch('$URL');"), SYNTAX),
    _text(
        "next line",
        "a line end to some",
        framed("// \x85 fetch('$URL');"),
        "",
        admitted="no line end in JavaScript: the comment goes on",
        twin=True,
    ),
    _text(
        "other white space",
        "blanks that one reader does not know",
        framed("const\u00a0a\u3000=\u1680\u2003fetch;"),
        EXTERNAL,
    ),
    _text(
        "vowel separator",
        "white space of old",
        framed("const a\u180e= 1;"),
        "",
        ends=frozenset({SYNTAX, "painted"}),
        admitted="a letter to one reader and nothing to the other: no code comes of it",
    ),
    _text(
        "private letters in a name",
        "letters beyond the basic plane",
        framed("const \U00020bb7 = 1; void \U00020bb7;"),
        "",
        admitted="a name like any other",
        twin=True,
    ),
    _text(
        "name by an escape beyond the plane",
        "the same by an escape",
        framed("const \\u{20bb7} = 1;"),
        CODE,
    ),
)

PROBES = (*CLOCKS, *UNICODE)
