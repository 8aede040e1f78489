"""Paint with a renderer that lives as long as one needs it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from watercolour.local.processes import Supervisor
from watercolour.local.run import START_SECONDS, programs, renderer_service
from watercolour.render.dispatcher import Dispatcher
from watercolour.render.result import Painted
from watercolour.render.schemas import MAX_SECONDS


@dataclass(frozen=True)
class Wish:
    """How to paint.

    Attributes:
        seed: seeds p5, p5.brush and ``Math.random``.
        size: side of the painting in pixels; None is the sketch's own canvas.
        scale: pixels for each of the sketch's canvas, along a side.
        deadline_s: wall-clock limit of the render.
        cpu_budget_s: CPU seconds that the sketch may use.
        replay: record what is painted, in order.
    """

    seed: int = 1
    size: int | None = None
    scale: int = 1
    deadline_s: float = 60.0
    cpu_budget_s: float = 20.0
    replay: bool = False


def print_wish(scale: int) -> Wish:
    """How to paint a print: time grows with the pixels, up to what a renderer gives at all."""
    budget = min(MAX_SECONDS, Wish.cpu_budget_s * scale**2)
    return Wish(scale=scale, deadline_s=MAX_SECONDS, cpu_budget_s=budget)


#: Paints one sketch, which is not checked; raises SketchFault or WatercolourError.
Paint = Callable[[str, Wish], Painted]


@contextmanager
def painter(
    renderer: str | None = None,
    python: Path | None = None,
    *,
    allow_unsandboxed: bool = False,
    max_scale: int = 1,
) -> Generator[Paint]:
    """What paints sketches for the length of the block.

    Args:
        renderer: URL of a running renderer; None starts one and stops it afterwards.
        python: interpreter of the renderer's environment, unless it is found by itself.
        allow_unsandboxed: go on without Chromium's own sandbox where the kernel lacks it.
        max_scale: largest drawing scale that will be wished for.

    Raises:
        WatercolourError: no renderer could be started.
    """
    with ExitStack() as around:
        url = renderer or around.enter_context(
            own_renderer(python, slots=1, allow_unsandboxed=allow_unsandboxed, max_scale=max_scale)
        )
        yield lambda sketch, wish: asyncio.run(_ask(url, sketch, wish))


@contextmanager
def own_renderer(
    python: Path | None = None,
    *,
    slots: int,
    allow_unsandboxed: bool = False,
    max_scale: int = 1,
) -> Generator[str]:
    """A renderer for the length of the block; its URL.

    Raises:
        WatercolourError: it could not be started.
    """
    program = programs(python).renderer
    service = renderer_service(
        program, slots, allow_unsandboxed=allow_unsandboxed, max_scale=max_scale
    )
    with (
        tempfile.TemporaryDirectory(prefix="watercolour-") as folder,
        Supervisor(Path(folder), kept=False) as supervisor,
    ):
        supervisor.start(service)
        supervisor.wait_ready(["renderer"], START_SECONDS)
        yield supervisor.processes["renderer"].url
        supervisor.stop(["renderer"])


async def _ask(url: str, sketch: str, wish: Wish) -> Painted:
    async with Dispatcher([url]) as dispatcher:
        return await dispatcher.render(
            sketch,
            seed=wish.seed,
            size=wish.size,
            scale=wish.scale,
            deadline_s=wish.deadline_s,
            cpu_budget_s=wish.cpu_budget_s,
            replay=wish.replay,
        )
