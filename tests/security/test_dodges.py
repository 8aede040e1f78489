"""No sketch gains by failing: what it does to the renderer on purpose is its own fault.

A painting that the infrastructure has lost is unscored, and a policy that could bring that about
would get rid of its bad paintings.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest
from tests.security.attack import HONEST, framed
from tests.security.conftest import Answer, Stage

from watercolour.render import procfs

LOOP = framed(draw="for (;;) ;")
RECURSION = framed(draw="const deep = () => 1 + deep(); deep();")

#: Bytes of a stack that an honest sketch fits into, while V8 lets a recursion have twice that.
SHORT_STACK = 500 * 2**10

#: Work for minutes, ordered in a moment, that outlives the page in the process that all share.
BACKLOG = """
const FRAGMENT = `#version 300 es
precision highp float; uniform int n; out vec4 c;
void main() { float a = gl_FragCoord.x; for (int j = 0; j < n; j++)
  for (int i = 0; i < n; i++) a = sin(a + float(i)) * 1.37 + cos(a); c = vec4(a); }`;
const VERTEX = `#version 300 es
void main() { gl_Position = vec4(gl_VertexID == 1 ? 3.0 : -1.0,
  gl_VertexID == 2 ? 3.0 : -1.0, 0.0, 1.0); }`;
function setup() {
  createCanvas(1024, 1024, WEBGL);
  const gl = drawingContext;
  const program = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  gl.useProgram(program);
  gl.disable(gl.DEPTH_TEST);
  gl.uniform1i(gl.getUniformLocation(program, "n"), 60);
  for (let i = 0; i < 500; i++) gl.drawArrays(gl.TRIANGLES, 0, 3);
  ENDING
}
function draw() {}
"""

ENDINGS = {
    "waits for it": (
        "gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));",
        2.0,
    ),
    "fails at once": ("createCanvas(1, 1, WEBGL);", 20.0),
}


@pytest.mark.parametrize("name", ENDINGS)
async def test_work_left_to_the_graphics_process_is_charged_to_nobody_else(
    stage: Stage, name: str
) -> None:
    ending, budget = ENDINGS[name]
    answer = await stage.paint(BACKLOG.replace("ENDING", ending), cpu_s=budget)
    assert answer.end in ("sketch_timeout", "canvas_out_of_bounds"), answer.body
    after = await stage.paint(HONEST, cpu_s=10.0)
    assert after.end == "painted", after.body
    assert after.painting == stage.clean


async def _page(stage: Stage, painting: asyncio.Future[Answer]) -> int:
    """The process of the page that paints: the renderer process that burns."""
    spent: dict[int, float] = {}
    while not painting.done():
        for pid in stage.browsers():
            if procfs.kind(pid) == "renderer":
                used = procfs.cpu_seconds(pid) or 0.0
                if used - spent.setdefault(pid, used) > 0.5:
                    return pid
        await asyncio.sleep(0.05)
    pytest.fail(f"nothing burns: {painting.result().body}")


def _shorten(pid: int, size: int) -> None:
    """Bound the stack of a process, as its own user: even root may be refused it."""
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    user, group = (int(status[key].split()[0]) for key in ("Uid", "Gid"))
    command = ["prlimit", f"--pid={pid}", f"--stack={size}:"]
    if os.geteuid() == 0:
        subprocess.run(command, check=True, user=user, group=group, extra_groups=[])
    else:
        subprocess.run(command, check=True)


async def test_a_page_that_crashes_is_its_sketchs_fault(stage: Stage) -> None:
    assert (await stage.paint(HONEST)).end == "painted"
    # A page is the first process of a namespace of its own and takes no signal from outside but
    # SIGKILL. So its own recursion ends it, at a stack that is shorter than V8 believes.
    for pid in stage.browsers():
        if procfs.kind(pid) == "renderer":
            _shorten(pid, SHORT_STACK)
    answer = await stage.paint(RECURSION)
    assert answer.end == "render_failed", answer.body
    assert "crashed" in answer.said
    after = await stage.paint(HONEST)
    assert (after.end, after.painting) == ("painted", stage.clean)


async def test_a_page_that_is_killed_is_painted_again(stage: Stage) -> None:
    painting = asyncio.ensure_future(stage.paint(LOOP, cpu_s=4.0))
    os.kill(await _page(stage, painting), signal.SIGKILL)
    assert (await painting).end == "sketch_timeout"


async def test_what_a_sketch_has_started_ends_with_it(stage: Stage) -> None:
    lasting = framed(
        "const { port1, port2 } = new MessageChannel(); port1.onmessage = () =>"
        " port2.postMessage(0);"
        " port2.postMessage(0); setInterval(() => {}, 0); const again = () =>"
        " requestAnimationFrame("
        "again); again(); window.kept = port1;"
    )
    assert (await stage.paint(lasting)).end in ("painted", "render_failed")
    assert (await stage.paint(HONEST)).painting == stage.clean
    pages = [pid for pid in stage.browsers() if procfs.kind(pid) == "renderer"]
    before = {pid: procfs.cpu_seconds(pid) or 0.0 for pid in pages}
    await asyncio.sleep(1.0)
    assert all((procfs.cpu_seconds(pid) or 0.0) - before[pid] < 0.3 for pid in pages)


async def test_what_sketches_keep_does_not_pile_up(stage: Stage) -> None:
    hoard = framed(
        "window.kept = new Uint8Array(4e7).fill(1); parent.postMessage(window.kept, '*');"
    )
    for _ in range(8):
        assert (await stage.paint(hoard)).end in ("painted", "sketch_oom")
    assert (await stage.paint(HONEST)).painting == stage.clean
    pages = [pid for pid in stage.browsers() if procfs.kind(pid) == "renderer"]
    assert max(procfs.resident_bytes(pid) or 0 for pid in pages) < 600 * 2**20
