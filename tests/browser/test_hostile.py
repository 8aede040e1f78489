"""What a hostile sketch may try. Whatever it does, the next painting is a clean one's twin."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from tests.browser.conftest import Server, alive, patient
from tests.browser.sketches import HONEST, sketch

from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.render import procfs
from watercolour.render.dispatcher import Dispatcher
from watercolour.render.result import Painted, SketchFault

SEED = 3


@pytest_asyncio.fixture
async def clean(server: Server) -> AsyncIterator[bytes]:
    """The honest painting; painted again after the test, it must be the same, byte for byte."""
    async with patient(server) as client:
        before = (await client.render(HONEST, seed=SEED)).painting
        yield before
        for _ in range(2):
            after = await client.render(HONEST, seed=SEED, fresh=True)
            assert after.painting == before
            assert after.js_errors == ()


async def outcome(client: Dispatcher, source: str, **options: Any) -> Painted | str:
    """The painting, or the violation's code."""
    try:
        return await client.render(source, seed=SEED, fresh=True, **options)
    except SketchFault as fault:
        return fault.violation.code.value


STOPPED = {
    "an endless loop in draw": (sketch("while (true);"), "sketch_timeout"),
    "an endless loop in setup": (sketch(setup="for (;;);"), "sketch_timeout"),
    "an endless loop at load": (sketch(head="while (true);"), "sketch_timeout"),
    "an endless loop of promises": (
        sketch(head="const again = () => Promise.resolve().then(again); again();"),
        "sketch_timeout",
    ),
    "a typed array of 3 GB": (
        sketch("const big = new Uint8Array(2 ** 31).fill(1); window.big = big;"),
        "sketch_oom",
    ),
    "a growing heap": (
        sketch("const all = []; for (;;) all.push(new Array(1e5).fill({ a: all.length }));"),
        "sketch_oom",
    ),
    "a canvas of 20000 pixels": (
        sketch().replace("createCanvas(128, 128", "createCanvas(20000, 20000"),
        "canvas_out_of_bounds",
    ),
    "leaving by location": (sketch('location.href = "http://192.0.2.1/";'), "render_failed"),
    "leaving by reload": (sketch("location.reload();"), "render_failed"),
}


@pytest.mark.parametrize("name", STOPPED)
async def test_it_is_stopped_as_the_sketchs_fault(
    clean: bytes, client: Dispatcher, name: str
) -> None:
    source, code = STOPPED[name]
    budget = 60 if code == "sketch_oom" else 1.5
    assert await outcome(client, source, cpu_budget_s=budget, deadline_s=120) == code


CONTAINED = {
    "deep recursion": sketch("const f = () => f(); try { f(); } catch {}"),
    "alert, confirm and prompt": sketch('alert("x"); confirm("x"); prompt("x"); print("x");'),
    "window.open": sketch('if (window.open("http://192.0.2.1/")) throw new Error("opened");'),
    "a closing script tag in a string": sketch(
        'const text = "</script><script>while(true);</script>"; void text;'
    ),
    "a comment that opens HTML": sketch("<!-- not markup\n --> nor this"),
    "an emptied document": sketch('document.body.innerHTML = ""; document.body.remove();'),
    "a second canvas": sketch(
        """const other = document.createElement("canvas"); other.width = other.height = 128;
        other.getContext("2d").fillText("FLOWER", 10, 50); document.body.prepend(other);"""
    ),
    "patched prototypes": sketch(
        """WebGL2RenderingContext.prototype.readPixels = () => {};
        Uint8Array.prototype.toBase64 = () => "AAAA";
        MessagePort.prototype.postMessage = () => {};
        window.setTimeout = () => {}; Reflect.apply = () => {};"""
    ),
    "messages to the host": sketch(
        """parent.postMessage({ pixels: "AAAA", width: 1, height: 1, errors: [] }, "*");
        for (const name of ["port", "__watercolour", "__watercolourHooks"])
          if (window[name]) throw new Error("reached " + name);"""
    ),
}


@pytest.mark.parametrize("name", CONTAINED)
async def test_it_changes_nothing(clean: bytes, client: Dispatcher, name: str) -> None:
    painted = await outcome(client, CONTAINED[name])
    assert isinstance(painted, Painted), painted
    assert painted.js_errors == ()
    assert painted.painting == clean


REFUSED = {
    "fetch": 'await fetch("http://127.0.0.1:1/");',
    "a web socket": 'new WebSocket("ws://127.0.0.1:1/").onerror = () => {};',
    "XMLHttpRequest": 'const r = new XMLHttpRequest(); r.open("GET", "/host", false); r.send();',
    "eval": 'eval("1");',
    "the Function constructor": 'new Function("return 1")();',
    "dynamic import": 'await import("data:text/javascript,export default 1");',
    "a worker": """await new Promise((yes, no) => {
      const worker = new Worker("data:text/javascript,postMessage(1)");
      worker.onmessage = yes; worker.onerror = () => no(new Error("refused")); });""",
    "the host page": "parent.document.title;",
    "storage": "localStorage.setItem('a', 'b');",
}
NOT_THROWN = {"a web socket"}


@pytest.mark.parametrize("name", REFUSED)
async def test_it_is_refused(clean: bytes, client: Dispatcher, name: str) -> None:
    source = sketch(f"{REFUSED[name]}").replace("function draw()", "async function draw()")
    painted = await outcome(client, source)
    assert isinstance(painted, Painted), painted
    if name not in NOT_THROWN:
        assert len(painted.js_errors) >= 1, name


async def test_a_beacon_is_not_sent(clean: bytes, client: Dispatcher) -> None:
    source = sketch('if (navigator.sendBeacon("/x")) throw new Error("sent");')
    painted = await outcome(client, source)
    assert isinstance(painted, Painted)
    assert painted.js_errors == ()


async def test_a_passed_deadline_is_the_infrastructures_fault(
    clean: bytes, client: Dispatcher
) -> None:
    with pytest.raises(InfrastructureError) as caught:
        await client.render(sketch("while (true);"), seed=SEED, deadline_s=1.5, cpu_budget_s=500)
    assert caught.value.reason is Reason.RENDER_DEADLINE
    assert "deadline of 1.5 s" in str(caught.value), "the one asked for, not what was left of it"


async def test_many_loops_in_a_row_leave_no_process_behind(
    clean: bytes, client: Dispatcher, server: Server
) -> None:
    before = len(procfs.descendants(server.process.pid))
    for number in range(8):
        source = sketch(f"while (true) {number};")
        assert await outcome(client, source, cpu_budget_s=0.8) == "sketch_timeout"
    assert await outcome(client, HONEST) is not None
    assert len(alive(procfs.descendants(server.process.pid))) <= before + 1
