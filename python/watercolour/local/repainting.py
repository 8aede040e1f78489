"""Paint stored sketches anew, for what nobody recorded when they were painted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from watercolour.api.errors import InfrastructureError
from watercolour.local.painting import Wish
from watercolour.render.dispatcher import Dispatcher
from watercolour.render.result import SketchFault
from watercolour.reward import shapes


async def heaviest(
    sketches: Iterable[str],
    url: str,
    wish: Wish,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> dict[str, float]:
    """The heaviest shape of each sketch: share of the sheet times opacity, 0 to 1.

    A sketch that cannot be painted any more, because another version of the renderer refuses it or
    because the renderer failed, is left out.

    Args:
        sketches: some of them may be equal.
        url: of a renderer.
        wish: how they were painted; a replay is asked for in any case.
        progress: called with sketches painted and in all.

    Raises:
        InfrastructureError: not one could be painted.
    """
    wanted = list(dict.fromkeys(sketches))
    found: dict[str, float] = {}
    faults: list[InfrastructureError] = []
    done = 0

    async def one(sketch: str) -> None:
        nonlocal done
        try:
            painted = await renderers.render(
                sketch,
                seed=wish.seed,
                size=wish.size,
                deadline_s=wish.deadline_s,
                cpu_budget_s=wish.cpu_budget_s,
                replay=True,
            )
            if painted.replay is not None:
                found[sketch] = shapes.heaviest(painted.replay)
        except SketchFault:
            pass
        except InfrastructureError as error:
            faults.append(error)
        done += 1
        progress(done, len(wanted))

    # Waiting its turn is no fault of a sketch.
    async with Dispatcher([url], wait_s=None) as renderers:
        await asyncio.gather(*(one(sketch) for sketch in wanted))
    if faults and not found:
        raise faults[0]
    return found
