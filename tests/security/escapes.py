"""Ways out of the frame: dialogs, workers, pages, markup."""

from __future__ import annotations

from typing import Any

from tests.security.attack import BARE, Attack, framed, tried

TAMPERING, CODE, EXTERNAL = "harness_tampering", "dynamic_code", "external_access"
LEFT = frozenset({"render_failed"})


def _attack(kind: str, name: str, tries: str, code: str, gate: str, **more: Any) -> Attack:
    return Attack(kind, name, tries, framed(code), gate, **more)


DIALOGS = (
    _attack(
        "dialog",
        "alert, confirm, prompt, print",
        "to block whoever drives the browser",
        'alert("a"); confirm("a"); prompt("a"); print("a");',
        EXTERNAL,
        twin=True,
    ),
    _attack(
        "dialog",
        "dialogs of a bare frame",
        "the same by functions that nobody has taken away",
        BARE + "await bare(`alert(1), confirm(1), prompt(1), print()`);",
        EXTERNAL,
        twin=True,
    ),
    _attack(
        "dialog",
        "question before leaving",
        "a question that nobody answers",
        'addEventListener("beforeunload", (e) => { e.preventDefault(); e.returnValue = "stay";'
        ' return "stay"; });'
        ' onbeforeunload = () => "stay"; window.onunload = () => { bare; };',
        TAMPERING,
        twin=True,
    ),
    _attack(
        "dialog",
        "files, screen, pointer, rights",
        "questions of the browser",
        tried(
            'document.body.insertAdjacentHTML("beforeend", "<input type=file id=f>");'
            ' document.getElementById("f").click(); document.getElementById("f").showPicker();',
            "await document.documentElement.requestFullscreen();",
            "document.body.requestPointerLock();",
            "Notification.requestPermission();",
            "navigator.geolocation.getCurrentPosition(() => {});",
            "navigator.mediaDevices.getUserMedia({ video: true }).catch(() => {});",
            "navigator.clipboard.readText().catch(() => {});",
            "showOpenFilePicker().catch(() => {});",
            'document.write("<dialog open>a</dialog>");',
        ),
        EXTERNAL,
        ends=frozenset({"painted", "render_failed"}),
    ),
)

WORKERS = (
    _attack(
        "worker",
        "worker out of a text",
        "a thread of its own",
        "await new Promise((go) => { try { const w = new Worker(URL.createObjectURL(new"
        " Blob([`postMessage(1)`])));"
        " w.onmessage = () => { window.breached = 1; go(); }; w.onerror = go; } catch { go(); } });"
        ' if (window.breached) throw new Error("BREACH");',
        EXTERNAL,
        twin=True,
    ),
    _attack(
        "worker",
        "worker of a data address",
        "a thread of its own",
        BARE + "await bare(`new Promise((go) => { const w = new"
        " Worker('data:text/javascript,postMessage(1)');"
        " w.onmessage = () => go(7); w.onerror = () => go(0); })`).then((got) => {"
        ' if (got === 7) throw new Error("BREACH"); });',
        EXTERNAL,
        twin=True,
    ),
    _attack(
        "worker",
        "service worker of its own page",
        "answers to the host's next requests",
        'await navigator.serviceWorker.register("/host.js"); throw new Error("BREACH");',
        EXTERNAL,
        ends=frozenset({"render_failed"}),
    ),
)

PAGES = (
    _attack(
        "page",
        "location",
        "another page",
        'location.href = "$URL";',
        TAMPERING,
        ends=LEFT | {"painted"},
    ),
    _attack(
        "page",
        "reload",
        "the page again, with its job",
        "location.reload();",
        EXTERNAL,
        ends=LEFT | {"painted"},
    ),
    _attack(
        "page",
        "the host's page in its frame",
        "a host of its own",
        'location.href = new URL("/host", document.baseURI);',
        TAMPERING,
        ends=LEFT | {"painted"},
    ),
    _attack(
        "page",
        "page at the top",
        "another host",
        tried(
            'top.location = "$URL";',
            'parent.location.replace("$URL");',
            'top.location = "data:text/html,a";',
        ),
        TAMPERING,
        twin=True,
    ),
    _attack(
        "page",
        "refresh by markup",
        "another page",
        'document.head.insertAdjacentHTML("beforeend", "<meta http-equiv=refresh'
        " content='0;url=$URL'>\");",
        EXTERNAL,
        ends=LEFT | {"painted"},
    ),
    _attack(
        "page",
        "script address",
        "code out of an address",
        'const f = document.createElement("iframe"); f.src = "javascript:parent.breached=1";'
        " document.body.append(f); location.href = 'javascript:void(window.breached=1)';"
        " await new Promise((go) => setTimeout(go, 50));",
        EXTERNAL,
        twin=True,
    ),
    _attack(
        "page",
        "another document",
        "a document without the harness",
        'document.open(); document.write("<p>gone</p>"); document.close();',
        EXTERNAL,
        ends=LEFT | {"painted"},
    ),
    _attack(
        "page",
        "empty document",
        "a document without anything",
        "document.documentElement.remove(); document.replaceChildren();",
        EXTERNAL,
        ends=LEFT | {"painted"},
    ),
    _attack(
        "page",
        "frame without a sandbox",
        "rights that the frame itself lacks",
        'const f = document.createElement("iframe"); f.sandbox = "allow-scripts allow-same-origin'
        ' allow-popups allow-modals allow-top-navigation"; f.srcdoc = "<script>try {'
        " top.document; parent.breached"
        " = 1 } catch {} try { localStorage; parent.breached = 1 } catch {}"
        ' open(`$URL`)<\\/script>";'
        " document.body.append(f); await new Promise((go) => { f.onload = go; setTimeout(go,"
        " 500); });"
        ' if (window.breached) throw new Error("BREACH");',
        EXTERNAL,
        twin=True,
    ),
    _attack(
        "page",
        "frame of the parent's address",
        "the host's origin",
        'const f = document.createElement("iframe"); f.src = new URL("/host", document.baseURI);'
        " document.body.append(f); await new Promise((go) => { f.onload = go; setTimeout(go,"
        " 300); });"
        " try { f.contentWindow.document.body; window.breached = 1; } catch {}"
        ' if (window.breached && f.contentWindow.LIBRARIES) throw new Error("BREACH");',
        EXTERNAL,
        twin=True,
    ),
    _attack(
        "page",
        "reach into the host",
        "the host's functions",
        "for (const of of [() => parent, () => top, () => opener, () => frameElement,"
        " () => parent[0], () => parent[1], () => parent.parent[1]]) try { const w = of();"
        " if (w === window) continue; w.paint; w.prepare; w.document.body; w.LIBRARIES;"
        " window.breached = 1; } catch {}"
        ' if (window.breached) throw new Error("BREACH");',
        TAMPERING,
        twin=True,
    ),
    _attack(
        "page",
        "download",
        "a file that remains",
        tried(
            'const a = document.createElement("a"); a.href = URL.createObjectURL(new Blob(["x"]));'
            ' a.download = "remains.txt"; document.body.append(a); a.click();',
            'saveStrings(["x"], "remains.txt");',
            'saveCanvas("remains.png");',
            'p5.prototype.downloadFile("x", "remains.txt");',
        ),
        EXTERNAL,
        twin=True,
    ),
)

MARKUP = (
    _attack(
        "markup",
        "script tag in a text",
        "to end the script in which the sketch stands",
        'const t = "</script><script>throw new Error(1)</script>"; if (t.length < 9) throw 1;',
        "",
        admitted="the sketch is never part of a document: a tag in a text is a text",
        twin=True,
    ),
    _attack(
        "markup",
        "HTML comment",
        "a line that one reader skips",
        'let a = 1; <!-- let b = 2; throw new Error("BREACH");\n  void a;',
        "syntax_error",
        twin=True,
    ),
    _attack(
        "markup",
        "end of an HTML comment",
        "a line that one reader skips",
        'let a = 1;\n--> throw new Error("BREACH");\n  void a;',
        "syntax_error",
        twin=True,
    ),
    _attack(
        "markup",
        "end of the wrapping function",
        "code outside of the function in which it stands",
        "} })(); window.outside = 1; (() => { function draw() {} if (0) {",
        "syntax_error",
        ends=frozenset(
            {"painted", "render_failed", "not_webgl", "missing_entry_points", "syntax_error"}
        ),
    ),
    _attack(
        "markup",
        "name of another source",
        "to pass for the harness in an error",
        "throw new Error('x');\n//# sourceURL=$URL\n",
        "",
        admitted="a comment; the harness looks for its own name for the sketch and finds another",
        ends=frozenset({"painted", "render_failed"}),
    ),
    _attack(
        "markup",
        "map of the source",
        "a request by the debugger",
        "//# sourceMappingURL=$URL\n//@ sourceMappingURL=$URL\n",
        "",
        admitted="a comment; nothing follows it, for no debugger is open",
        twin=True,
    ),
    _attack(
        "markup",
        "policy of its own",
        "a policy that allows more",
        'document.head.insertAdjacentHTML("beforeend", "<meta http-equiv=Content-Security-Policy'
        ' content=\\"default-src'
        " * 'unsafe-eval' 'unsafe-inline' data: blob:\\\">\"); try { eval('window.breached ="
        " 1'); } catch {}"
        ' if (window.breached) throw new Error("BREACH");',
        CODE,
        twin=True,
    ),
    _attack(
        "markup",
        "eval by all its names",
        "code out of a text",
        tried(
            'eval("window.breached = 1");',
            '(0, eval)("window.breached = 1");',
            'new Function("window.breached = 1")();',
            '(async () => {}).constructor("window.breached = 1")();',
            'setTimeout("window.breached = 1", 0);',
            'await import("data:text/javascript,window.breached=1");',
            'await import(URL.createObjectURL(new Blob(["window.breached=1"], { type:'
            ' "text/javascript" })));',
            "await new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]));"
            " window.breached = 1;",
        )
        + "await new Promise((go) => setTimeout(go, 50));"
        ' if (window.breached) throw new Error("BREACH");',
        CODE,
        twin=True,
    ),
    _attack(
        "markup",
        "eval of a bare frame",
        "code out of a text, where no policy holds",
        BARE
        + tried(
            'if ((await bare("eval(`1`)")) === 1) window.breached = 1;',
            'if ((await bare("Function(`return 1`)()")) === 1) window.breached = 1;',
        )
        + 'if (window.breached) throw new Error("BREACH");',
        EXTERNAL,
        twin=True,
    ),
)

ESCAPES = (*DIALOGS, *WORKERS, *PAGES, *MARKUP)
