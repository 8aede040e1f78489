"""A hostile sketch, and the frame into which most of them are put."""

from __future__ import annotations

from dataclasses import dataclass

#: Side of the honest painting in pixels.
SIZE = 128

#: What an attack writes into its error when it got what it wanted.
BREACH = "BREACH"

#: Where an attack waits, in the browser, for what it has started.
SETTLE = "/* settle */"

#: Turns of the event loop with some work in each: timers of a page do not take real time.
PAUSE = """for (let turn = 0; turn < 40; turn++) {
    for (let i = 0; i < 3e5; i++);
    await new Promise((go) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = go;
      port2.postMessage(0);
    });
  }"""


@dataclass(frozen=True)
class Attack:
    """One hostile sketch and what must become of it.

    Attributes:
        kind: its line of attack.
        name: unique among all.
        tries: what it is after.
        source: the sketch; ``$URL``, ``$HOST`` and ``$NAME`` stand for an address that listens,
            its host and port, and a name that has to be resolved.
        gate: code with which the gate refuses it; empty when the gate rightly admits it.
        admitted: why it does.
        ends: what may come of it with the gate switched off: ``painted`` or a violation's code.
        twin: whether its painting must be the honest one's twin, byte for byte.
        steady: whether two runs must come to the same painting.
        cpu_s: its CPU budget in seconds.
        browser: whether it is run in a browser: the service refuses other texts before.
    """

    kind: str
    name: str
    tries: str
    source: str
    gate: str
    admitted: str = ""
    ends: frozenset[str] = frozenset({"painted"})
    twin: bool = False
    steady: bool = False
    cpu_s: float = 15.0
    browser: bool = True

    def for_gate(self) -> str:
        """The sketch as the gate sees it: an address alone must not be what gives it away."""
        plain = self.source.replace("$URL", "x").replace("$HOST", "x").replace("$NAME", "x")
        return plain.replace(SETTLE, "")

    def for_browser(self, host: str, name: str) -> str:
        """The sketch with real addresses in it, waiting for what it has started."""
        armed = self.source.replace("$URL", f"http://{host}/{self.name.replace(' ', '-')}")
        return armed.replace("$HOST", host).replace("$NAME", name).replace(SETTLE, PAUSE)


def framed(attack: str = "", *, head: str = "", draw: str = "", last: str = "") -> str:
    """The honest sketch with an attack in its set-up, before it, or around its drawing."""
    return f"""{head}
async function setup() {{
  createCanvas({SIZE}, {SIZE}, WEBGL);
  {attack}
  {SETTLE if attack else ""}
}}
function draw() {{
  {draw}
  background(248, 244, 236);
  translate(-width / 2, -height / 2);
  brush.noStroke();
  brush.fillBleed(0.2);
  brush.fillTexture(0.4, 0.4);
  brush.fill("#c8322e", 140);
  brush.circle(64, 60, 34);
  brush.fill("#f2c53d", 160);
  brush.circle(64, 60, 10);
  {last}
}}
"""


HONEST = framed()

#: Asks a frame of its own, which has the functions of a page that nobody has prepared.
BARE = r"""const bare = (code) => new Promise((go) => {
    const frame = document.createElement("iframe");
    addEventListener("message", (e) => { if (e.source === frame.contentWindow) go(e.data); });
    frame.srcdoc = `<script>(async () => { let found = -1; try { found = await (${code}); }
      catch {} parent.postMessage(found, "*"); })()<\/script>`;
    document.body.append(frame);
  });"""


def tried(*statements: str) -> str:
    """Each statement for itself: what is denied to one must not spare the next."""
    return "\n  ".join(f"try {{ {one} }} catch {{}}" for one in statements)


def element(tag: str, **attributes: str) -> str:
    """A statement that puts an element with such attributes into the page."""
    set_ = " ".join(f'made.setAttribute("{key}", `{value}`);' for key, value in attributes.items())
    return f'{{ const made = document.createElement("{tag}"); {set_} document.body.append(made); }}'
