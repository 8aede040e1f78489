"""Whatever a sketch loops with, one frame is painted; its timers take no time."""

from __future__ import annotations

import pytest
from tests.browser.sketches import HONEST, sketch

from watercolour.api.reasons import ViolationCode
from watercolour.render.dispatcher import Dispatcher
from watercolour.render.result import SketchFault

MORE = "brush.circle(20, 20, 15)"

LOOPS = {
    "frameRate, loop and redraw": {
        "setup": "loop(); frameRate(60); redraw(5);",
        "tail": "loop(); redraw(3);",
    },
    "an animation frame": {
        "tail": f"""requestAnimationFrame(function next() {{
      {MORE}; requestAnimationFrame(next); }});"""
    },
    "an interval": {"tail": f"setInterval(() => {{ {MORE}; }}, 1);"},
    "a chain of time-outs": {
        "tail": f"setTimeout(function next() {{ {MORE}; setTimeout(next, 1); }}, 1);"
    },
    "a redraw from a timer": {"tail": "setInterval(() => redraw(), 1); setTimeout(redraw, 1);"},
    "a cleared timer": {"tail": f"clearTimeout(setTimeout(() => {{ {MORE}; }}, 0));"},
}


@pytest.mark.parametrize("name", LOOPS)
async def test_one_frame_is_painted(client: Dispatcher, name: str) -> None:
    painted = await client.render(sketch(**LOOPS[name]), seed=3, fresh=True)
    assert painted.js_errors == ()
    assert painted.shapes == 3
    assert painted.painting == (await client.render(HONEST, seed=3)).painting


WAITING = {
    "a time-out": "await new Promise((done) => setTimeout(done, 3_600_000));",
    "an animation frame": "await new Promise(requestAnimationFrame);",
    "an idle moment": "await new Promise((done) => requestIdleCallback(() => done()));",
    "an interval": """await new Promise((done) => {
      let n = 0;
      const id = setInterval(() => { if (++n === 9) { clearInterval(id); done(); } }, 99);
    });""",
}


@pytest.mark.parametrize("name", WAITING)
async def test_a_wait_for_a_timer_ends_at_once(client: Dispatcher, name: str) -> None:
    waiting = sketch(WAITING[name]).replace("function draw() {", "async function draw() {")
    painted = await client.render(waiting, seed=3, fresh=True)
    assert painted.js_errors == ()
    assert painted.painting == (await client.render(HONEST, seed=3)).painting


async def test_timers_fire_in_the_order_of_their_time(client: Dispatcher) -> None:
    ordered = sketch(
        tail="""const order = [];
      setTimeout(() => order.push("c"), 30); setTimeout(() => order.push("a"), 10);
      setTimeout((x) => order.push(x), 20, "b");
      await new Promise((done) => setTimeout(done, 40));
      if (order.join("") !== "abc") throw new Error(order.join(""));"""
    ).replace("function draw() {", "async function draw() {")
    assert (await client.render(ordered, seed=3)).js_errors == ()


async def test_a_sketch_that_goes_on_after_each_wait_is_not_cut_off(client: Dispatcher) -> None:
    slow = sketch(
        tail="""for (let i = 0; i < 100; i++) {
        await new Promise((done) => setTimeout(done, 60)); brush.circle(64, 64, 3); }"""
    ).replace("function draw() {", "async function draw() {")
    assert (await client.render(slow, seed=3, deadline_s=300)).shapes == 103


NEVER = {
    "a promise in draw": "await new Promise(() => {});",
    "a wait for the network": "await new Promise((done) => { new Image().onload = done; });",
}


@pytest.mark.parametrize("name", NEVER)
async def test_a_wait_that_never_ends_is_the_sketchs_fault(client: Dispatcher, name: str) -> None:
    source = sketch(tail=NEVER[name]).replace("function draw() {", "async function draw() {")
    with pytest.raises(SketchFault) as caught:
        await client.render(source, seed=3, deadline_s=300)
    assert caught.value.violation.code is ViolationCode.RENDER_FAILED
    assert "draw() waits" in caught.value.violation.message


async def test_timers_without_end_are_refused(client: Dispatcher) -> None:
    endless = sketch(tail="setInterval(() => {}, 0); await new Promise(() => {});").replace(
        "function draw() {", "async function draw() {"
    )
    with pytest.raises(SketchFault) as caught:
        await client.render(endless, seed=3, deadline_s=300)
    assert caught.value.violation.code is ViolationCode.RENDER_FAILED
    assert "2001 times; at most 2000" in caught.value.violation.message
