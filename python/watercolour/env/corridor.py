"""The corridor: one reply of the policy in, one finished rollout out.

    extract -> gate(static) -> render queue -> gate(painting) -> terms -> reward

Each room returns a fuller copy of the rollout. A sketch's fault ends the way with the recipe's
value of a failed gate. A fault of the infrastructure is tried again and then leaves the rollout
unscored, with its reason; it never becomes a number.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field, replace

from watercolour import logs
from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import LASTING, Reason
from watercolour.api.rollout import Rollout, Violation
from watercolour.api.spec import RunSpec
from watercolour.api.terms import MARK_PREFIX
from watercolour.env import draws, measure
from watercolour.env.draws import NOWHERE, Draw, Place
from watercolour.env.measure import NOT_ASKED, Finding, Scoring
from watercolour.env.presence import Presence, awake
from watercolour.env.record import (
    blank_canvas,
    measured,
    painting_key,
    refused,
    sketch_key,
    too_much_memory,
    with_terms,
)
from watercolour.render.dispatcher import Closing, Dispatcher
from watercolour.render.result import Painted, SketchFault
from watercolour.reward import recipes, reckon, shapes
from watercolour.reward.judge import Judge
from watercolour.reward.once import Once
from watercolour.reward.pigment import colours
from watercolour.reward.pool import Pool
from watercolour.reward.recipe import Recipe
from watercolour.score.client import ScoreClient
from watercolour.score.vlm_mark import VlmMark
from watercolour.sketch import gate

log = logs.get(__name__)

#: Paintings that are remembered, at 50 kB (192 pixels a side) to 1 MB (1024) each.
PAINTINGS = 256

#: Share of the client's patience after which the server answers by itself.
PATIENCE = 0.9

#: Seconds before the second attempt; doubled with each further one.
BACKOFF_SECONDS = 0.5

TOO_LATE = "there was no answer in the time that a client waits"


@dataclass(frozen=True)
class Rooms:
    """What the corridor leads through; it opens and closes none of it.

    Attributes:
        renderers: has sketches painted; idle when the recipe has none painted.
        scorer: None when no term of the recipe needs it.
        judge: None when no term of the recipe needs it.
        pool: the references; None when no term compares with any.
        hues: what counts as the colours of the subjects that the pool describes, by name.
        scorer_presence, judge_presence: where calls wait for a neighbour that sleeps; None calls
            at once.
    """

    renderers: Dispatcher
    scorer: ScoreClient | VlmMark | None
    judge: Judge | None
    pool: Pool | None
    scorer_presence: Presence | None = None
    judge_presence: Presence | None = None
    hues: Mapping[str, tuple[tuple[float, float], ...]] = field(
        default_factory=dict[str, tuple[tuple[float, float], ...]]
    )


@dataclass(frozen=True)
class _Render:
    """What became of one render: a painting or a violation, and the seconds that it took."""

    outcome: Painted | Violation
    heaviest_shape: float | None
    js_errors: tuple[str, ...]
    timings: dict[str, float]


class Corridor:
    """Evaluates replies for one run; belongs to one event loop."""

    def __init__(self, spec: RunSpec, rooms: Rooms) -> None:
        """Check nothing: the server has matched the rooms with the recipe's needs.

        Raises:
            InputError: the recipe is unknown (UnknownRecipe).
        """
        self.spec = spec
        self.recipe = recipes.get(spec.recipe)
        self.rooms = rooms
        self._renders: Once[_Render] = Once(PAINTINGS)
        self._scoring = None if rooms.scorer is None else Scoring(rooms.scorer, spec.scorer.prompt)

    def draw(self, seed: int, per_rollout: int | None = None, step: int = 0) -> Draw:
        """The references of a group; equal for equal seeds and steps.

        Args:
            seed: the group's draw seed.
            per_rollout: how many; the run's ``references.perRollout`` if None.
            step: the optimizer step, by which a curriculum goes.

        Raises:
            InputError: a tier of the pool has too few paintings (InvalidPool).
        """
        wanted = self.spec.references
        count = per_rollout or wanted.per_rollout
        return draws.draw(self.rooms.pool, self.recipe, wanted, seed, count, step)

    async def evaluate(
        self,
        completion: str,
        *,
        subject: str,
        seed: int,
        draw: Draw,
        client: str,
        place: Place = NOWHERE,
    ) -> Rollout:
        """All that becomes of one reply. Raises nothing for an outside fault but one.

        Args:
            completion: the policy's raw reply.
            subject: what it was asked to paint.
            seed: the group's draw seed, for the record.
            draw: the group's references.
            client: whose turn in the render queue this uses up.
            place: where in the run the reply stands.

        Raises:
            Closing: this environment ends before the reply could be painted; the next one can.
        """
        deadline = asyncio.get_running_loop().time() + (
            self.spec.env.message_timeout_seconds * PATIENCE
        )
        rollout = Rollout(
            subject=subject,
            hues=self.rooms.hues.get(subject, ()),
            seed=seed,
            step=place.step,
            group=place.group,
            index=place.index,
            completion=completion,
            references=tuple(reference.name for reference in draw.references),
            reference_strengths=tuple(reference.strength for reference in draw.references),
            draw_strength=draw.strength,
            mean_draw_strength=draw.mean_strength,
        )
        recipe = self.recipe.at(place.step).of(rollout)
        rollout = await self._inspected(rollout)
        if rollout.gate_passed is None and recipe.paints:
            rollout = await self._attempted(rollout, recipe, draw, client, deadline)
        elif rollout.gate_passed is None or not recipe.gated:
            # Nothing is painted: the static gate has had the last word.
            decided = rollout.model_copy(update={"gate_passed": rollout.gate_passed is None})
            rollout = await asyncio.to_thread(with_terms, decided, recipe)
        return reckon.pending(recipe, rollout)

    async def _inspected(self, rollout: Rollout) -> Rollout:
        """With the sketch and the static gate's violations; undecided if there are none."""
        began = time.perf_counter()
        # A thread: a long reply must not hold up the other sessions.
        verdict = await asyncio.to_thread(gate.inspect, rollout.completion, self.spec.recipe.gate)
        return rollout.model_copy(
            update={
                "sketch": verdict.sketch,
                "violations": tuple(verdict.violations),
                "gate_passed": False if verdict.violations else None,
                "terms": {"gate": 0.0} if verdict.violations else {},
                "timings": {"gate": time.perf_counter() - began},
            }
        )

    async def _attempted(
        self, rollout: Rollout, recipe: Recipe, draw: Draw, client: str, deadline: float
    ) -> Rollout:
        """Painted and measured, in as many attempts as it takes and the run allows.

        What an attempt has brought is remembered, so the next one only does what is missing.
        """
        attempt = 0
        while True:
            attempt += 1
            try:
                tried = await self._painted(rollout, client, deadline)
                if tried.gate_passed:
                    tried = await self._measured(tried, recipe, draw, deadline)
            except Closing:
                raise
            except InfrastructureError as error:
                tried = rollout.model_copy(
                    update={"unscored_reason": error.reason, "unscored_detail": error.message}
                )
            tried = tried.model_copy(update={"attempts": attempt})
            pause = BACKOFF_SECONDS * 2.0 ** (attempt - 1)
            left = deadline - asyncio.get_running_loop().time()
            ended = tried.unscored_reason is None or tried.unscored_reason in LASTING
            if ended or attempt >= self.spec.env.attempts or pause >= left:
                return tried
            log.warning(
                "attempt %d is unscored: %s: %s",
                attempt,
                tried.unscored_reason,
                tried.unscored_detail,
            )
            # What took time once is remembered and takes none the next time.
            rollout = rollout.model_copy(update={"timings": tried.timings})
            await asyncio.sleep(pause)

    async def _painted(self, rollout: Rollout, client: str, deadline: float) -> Rollout:
        """With the painting, or with the violation that only a render could find.

        Raises:
            InfrastructureError: no renderer, or a failing one.
        """
        assert rollout.sketch is not None, "the static gate admits no reply without a sketch"
        sketch = rollout.sketch
        made = False

        async def make() -> _Render:
            nonlocal made
            made = True
            return await self._render(sketch, client)

        try:
            async with asyncio.timeout_at(deadline):
                render = await self._renders.get(sketch_key(sketch), make)
        except TimeoutError as error:
            raise InfrastructureError(Reason.RENDERER_UNAVAILABLE, TOO_LATE) from error
        # What another rollout waited for took no time of this one's.
        timings = rollout.timings | (render.timings if made else {})
        rollout = rollout.model_copy(update={"js_errors": render.js_errors, "timings": timings})
        if isinstance(render.outcome, Violation):
            return refused(rollout, render.outcome)
        painted = render.outcome
        rollout = rollout.model_copy(
            update={
                "painting": painted.painting,
                "paint_fraction": painted.paint_fraction,
                "shapes": painted.shapes,
                "heaviest_shape": render.heaviest_shape,
                "versions": {**painted.versions, "rasterizer": painted.rasterizer},
            }
        )
        fault = too_much_memory(painted.peak_memory_bytes, self.recipe.memory_mib) or blank_canvas(
            painted.paint_fraction, self.spec.recipe.gate.min_paint_fraction
        )
        return (
            refused(rollout, fault) if fault else rollout.model_copy(update={"gate_passed": True})
        )

    async def _render(self, sketch: str, client: str) -> _Render:
        try:
            painted = await self.rooms.renderers.render(
                sketch,
                seed=self.spec.seed,
                size=self.spec.renderers.size,
                deadline_s=self.spec.renderers.deadline_seconds,
                cpu_budget_s=self.recipe.cpu_budget_seconds,
                replay=bool(self.recipe.asks("replay")),
                client=client,
            )
        except SketchFault as fault:
            return _Render(fault.violation, None, fault.js_errors, fault.timings)
        timings = {"queue": painted.timings["queue"]}
        # A renderer remembers paintings too; those are no renders.
        if not painted.cached:
            timings["render"] = painted.timings["render"]
            timings["render_cpu"] = painted.cpu_seconds
        heaviest = None if painted.replay is None else shapes.heaviest(painted.replay)
        # A replay is large, and what it was wanted for is known.
        kept = replace(painted, replay=None)
        return _Render(kept, heaviest, painted.js_errors, timings)

    async def _measured(
        self, rollout: Rollout, recipe: Recipe, draw: Draw, deadline: float
    ) -> Rollout:
        """With all terms; a room that failed leaves its term None and a reason."""
        assert rollout.sketch is not None
        assert rollout.painting is not None
        key, painting = sketch_key(rollout.sketch), rollout.painting
        # Verdicts outlive the run, and other runs paint with other seeds, sizes and browsers.
        lasting = painting_key(rollout, self.spec)
        found = await asyncio.gather(
            in_time(
                deadline,
                self._quality(key, painting, recipe, rollout.subject),
                Reason.SCORER_UNAVAILABLE,
            ),
            in_time(
                deadline, self._judged(lasting, painting, recipe, draw), Reason.JUDGE_UNAVAILABLE
            ),
            self._pigment(painting, rollout),
        )
        rollout = measured(rollout, quality=found[0], judge=found[1], pigment=found[2])
        references = tuple(reference.painting for reference in draw.references)
        # A thread: a large painting must not hold up the other sessions.
        return await asyncio.to_thread(with_terms, rollout, recipe, references)

    async def _quality(self, key: str, painting: bytes, recipe: Recipe, subject: str) -> Finding:
        scoring, presence = self._scoring, self.rooms.scorer_presence
        if scoring is None or not recipe.asks("scorer", "marks"):
            return NOT_ASKED
        marks = tuple(term.removeprefix(MARK_PREFIX) for term in recipe.asks("marks"))
        return await awake(
            presence,
            Reason.SCORER_UNAVAILABLE,
            lambda: scoring.quality(key, painting, marks=marks, subject=subject),
        )

    async def _pigment(self, painting: bytes, rollout: Rollout) -> Finding:
        own = colours(rollout)
        if own is None:
            return NOT_ASKED
        # A thread: a large painting must not hold up the other sessions.
        return await asyncio.to_thread(measure.pigment, painting, own)

    async def _judged(self, key: str, painting: bytes, recipe: Recipe, draw: Draw) -> Finding:
        judge, presence = self.rooms.judge, self.rooms.judge_presence
        if judge is None or not recipe.asks("judge"):
            return NOT_ASKED
        return await awake(
            presence,
            Reason.JUDGE_UNAVAILABLE,
            lambda: measure.judged(judge, key, painting, draw.references),
        )


async def in_time(deadline: float, finding: Awaitable[Finding], reason: Reason) -> Finding:
    """The finding, or one that says that it came too late for the client."""
    try:
        async with asyncio.timeout_at(deadline):
            return await finding
    except TimeoutError:
        return Finding(reason=reason, detail=TOO_LATE)
