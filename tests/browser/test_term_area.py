"""The term that looks at what was painted and not at the picture: no shape may take the sheet."""

from __future__ import annotations

import pytest
from tests.browser.sketches import sketch

from watercolour.api.rollout import Rollout
from watercolour.render.dispatcher import Dispatcher
from watercolour.reward import catalogue, pool, shapes
from watercolour.reward.facts import Facts

FLOWERS = {one.name: one.sketch for one in pool.load("builtin:flowers").references}


def circle(radius: int, opacity: int) -> str:
    return sketch(tail=f'brush.fill("#cc3344", {opacity}); brush.circle(64, 64, {radius});')


async def area(client: Dispatcher, source: str) -> float:
    """The term's value of the sketch, painted."""
    painted = await client.render(source, seed=1, replay=True, deadline_s=300)
    assert painted.replay is not None
    heaviest = shapes.heaviest(painted.replay)
    rollout = Rollout(gate_passed=True, painting=painted.painting, heaviest_shape=heaviest)
    value = catalogue.evaluate(catalogue.find("area"), Facts(rollout))
    assert value is not None
    return value


@pytest.mark.parametrize("name", ["love_iris_09", "love_poppy_02", "love_daisy_03"])
async def test_a_loved_flower_has_no_shape_that_takes_the_sheet(
    client: Dispatcher, name: str
) -> None:
    assert await area(client, FLOWERS[name]) == 1.0


async def test_one_giant_blob_earns_nothing_and_a_pale_wash_as_wide_is_none(
    client: Dispatcher,
) -> None:
    assert await area(client, circle(56, 255)) == 0.0
    assert await area(client, circle(56, 70)) == 1.0


async def test_many_small_shapes_may_cover_what_one_must_not(client: Dispatcher) -> None:
    dabs = "".join(
        f"brush.circle({24 + 20 * x}, {24 + 20 * y}, 12);" for x in range(5) for y in range(5)
    )
    assert await area(client, sketch(tail=f'brush.fill("#cc3344", 255); {dabs}')) == 1.0
