"""Ways to leave something for the next painting, or to find what another has left."""

from __future__ import annotations

from typing import Any

from tests.security.attack import Attack, framed, tried

TAMPERING, EXTERNAL = "harness_tampering", "external_access"


def _attack(kind: str, name: str, tries: str, code: str, gate: str, **more: Any) -> Attack:
    return Attack(kind, name, tries, framed(code), gate, **more)


def _store(
    name: str, tries: str, look: str, leave: str, gate: str = EXTERNAL, **more: Any
) -> Attack:
    """Looks for what an earlier painting left, then leaves something for the next."""
    found = f'if ({look}) {{ window.found = true; throw new Error("BREACH"); }}'
    code = f'try {{ {found} }} catch (e) {{ if (e?.message === "BREACH") throw e; }} {tried(leave)}'
    options: dict[str, Any] = {"twin": True, "steady": True, **more}
    return _attack("storage", name, tries, code, gate, **options)


STORAGE = (
    _store(
        "localStorage", "a note", 'localStorage.getItem("a")', 'localStorage.setItem("a", "b");'
    ),
    _store(
        "sessionStorage",
        "a note",
        'sessionStorage.getItem("a")',
        'sessionStorage.setItem("a", "b");',
    ),
    _store("cookie", "a note", "document.cookie", 'document.cookie = "a=b";'),
    _store(
        "indexedDB",
        "a data base",
        "(await indexedDB.databases()).length",
        'indexedDB.open("a", 1); await new Promise((go) => setTimeout(go, 50));',
        # Chromium rejects a promise of its own with nothing, which no sketch can catch.
        ends=frozenset({"painted", "render_failed"}),
    ),
    _store(
        "caches",
        "a cache of answers",
        '(await caches.keys()).length || (await caches.match("/a"))',
        'await (await caches.open("a")).put("/a", new Response("b"));',
    ),
    _store(
        "private files",
        "a file system of its own",
        '(await navigator.storage.getDirectory()).getFileHandle("a")',
        'await (await navigator.storage.getDirectory()).getFileHandle("a", { create: true });',
    ),
    _store("window.name", "a frame's name", "window.name", 'window.name = "kept";', TAMPERING),
    _store(
        "history.state", "a visited place", "history.state", 'history.replaceState("kept", "");'
    ),
    _store(
        "globals",
        "a variable that stays",
        "window.kept || Object.prototype.kept || Math.kept",
        "window.kept = 1; Object.prototype.kept = 1; Math.kept = 1; p5.prototype.kept = 1;",
        TAMPERING,
        twin=False,  # p5 takes it for a hook of its shaders: a sketch may spoil its own painting
    ),
    _store(
        "globals of the parent",
        "a variable of the page that stays",
        "parent.kept || top.kept",
        "parent.kept = 1; top.kept = 1; parent.name = 'kept'; top.document.title = 'kept';",
        TAMPERING,
    ),
    _store(
        "broadcast",
        "a channel between paintings",
        "await new Promise((go) => { const c = new BroadcastChannel('a'); c.onmessage = () =>"
        " go(1);"
        " c.postMessage('here?'); setTimeout(() => go(0), 30); })",
        "const c = new BroadcastChannel('a'); c.onmessage = () => c.postMessage('here');"
        " (window.kept ||= []).push(c);",
    ),
    _store(
        "lock",
        "a lock that is held",
        "(await navigator.locks.query()).held.length",
        "navigator.locks.request('a', () => new Promise(() => {}));",
    ),
    _store(
        "shared worker",
        "a worker that outlives its page",
        "await new Promise((go) => { const w = new SharedWorker('data:text/javascript,let"
        " n=0;onconnect="
        "e=>e.ports[0].postMessage(n++)', 'a'); w.port.onmessage = (e) => go(e.data); w.onerror"
        " = () => go(0); })",
        "0;",
    ),
    _store(
        "library's text",
        "a library that the next painting gets",
        "p5.prototype.circle === 1 || p5.prototype.fill.kept",
        "p5.prototype.fill.kept = 1; brush.circle.kept = 1;"
        " const s = document.createElement('script'); s.src = parent.location?.href +"
        " '/libraries.js';",
        TAMPERING,
    ),
    _store(
        "script of the host",
        "the host's own script, run by the sketch",
        "typeof LIBRARIES !== 'undefined' && LIBRARIES.kept",
        "const s = document.createElement('script'); s.src = new URL('/libraries.js',"
        " document.baseURI);"
        " document.head.append(s); await new Promise((go) => { s.onload = s.onerror = go; });",
    ),
    _attack(
        "storage",
        "pixels of an earlier painting",
        "what the graphics memory still holds",
        "const gl = drawingContext; const t = gl.createTexture(); gl.bindTexture(gl.TEXTURE_2D, t);"
        " gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, 512, 512, 0, gl.RGBA, gl.UNSIGNED_BYTE, null);"
        " const f = gl.createFramebuffer(); gl.bindFramebuffer(gl.FRAMEBUFFER, f);"
        " gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, t, 0);"
        " const got = new Uint8Array(512 * 512 * 4);"
        " gl.readPixels(0, 0, 512, 512, gl.RGBA, gl.UNSIGNED_BYTE, got);"
        " gl.bindFramebuffer(gl.FRAMEBUFFER, null); gl.bindTexture(gl.TEXTURE_2D, null);"
        ' if (got.some((v) => v)) throw new Error("BREACH");',
        TAMPERING,
    ),
)
