"""The corridor: one reply of the policy in, one finished rollout out.

    extract -> gate(static) -> render queue -> gate(painting) -> terms -> reward

Each room returns a fuller copy of the rollout. A sketch's fault ends the way with the recipe's
value of a failed gate. A fault of the infrastructure is tried again and then leaves the rollout
unscored, with its reason; it never becomes a number.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable
from dataclasses import dataclass

from watercolour import logs
from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import LASTING, Reason, ViolationCode
from watercolour.api.rollout import Rollout, Violation
from watercolour.api.spec import RunSpec, TierShares
from watercolour.env import measure
from watercolour.env.measure import NOT_ASKED, Finding, Scoring
from watercolour.env.presence import Presence, awake
from watercolour.render.dispatcher import Closing, Dispatcher
from watercolour.render.result import Painted, SketchFault
from watercolour.reward import adjust, recipes, terms
from watercolour.reward import pool as pools
from watercolour.reward.judge import Judge
from watercolour.reward.once import Once
from watercolour.reward.pigment import with_hue
from watercolour.reward.pool import Pool, Reference
from watercolour.score.client import ScoreClient
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
class Draw:
    """The references that a group meets.

    Attributes:
        references: from the pool; none when the recipe gives the judge no weight.
        strength: share of wins that an average okay painting expects, 0 to 1; None without a draw.
        mean_strength: the same, expected over all draws of this size.
    """

    references: tuple[Reference, ...] = ()
    strength: float | None = None
    mean_strength: float | None = None


@dataclass(frozen=True)
class Rooms:
    """What the corridor leads through; it opens and closes none of it.

    Attributes:
        renderers: has sketches painted.
        scorer: None when the recipe gives quality no weight.
        judge: None when the recipe gives the judge no weight; so with the pool.
        pool: the references.
        scorer_presence, judge_presence: where calls wait for a neighbour that sleeps; None calls
            at once.
    """

    renderers: Dispatcher
    scorer: ScoreClient | None
    judge: Judge | None
    pool: Pool | None
    scorer_presence: Presence | None = None
    judge_presence: Presence | None = None


@dataclass(frozen=True)
class _Render:
    """What became of one render: a painting or a violation, and the seconds that it took."""

    outcome: Painted | Violation
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

    def draw(self, seed: int, per_rollout: int | None = None) -> Draw:
        """The references of a group; equal for equal seeds.

        Args:
            seed: the group's draw seed.
            per_rollout: how many; the run's ``references.perRollout`` if None.

        Raises:
            InputError: a tier of the pool has too few paintings (InvalidPool).
        """
        pool = self.rooms.pool
        if pool is None:
            return Draw()
        count = per_rollout or self.spec.references.per_rollout
        shares = self.spec.references.tier_shares
        drawn = pools.draw(pool, seed, count, shares)
        return Draw(drawn, pools.draw_strength(drawn), mean_draw_strength(pool, count, shares))

    async def evaluate(
        self, completion: str, *, subject: str, seed: int, draw: Draw, client: str
    ) -> Rollout:
        """All that becomes of one reply. Raises nothing for an outside fault but one.

        Args:
            completion: the policy's raw reply.
            subject: what it was asked to paint.
            seed: the group's draw seed, for the record.
            draw: the group's references.
            client: whose turn in the render queue this uses up.

        Raises:
            Closing: this environment ends before the reply could be painted; the next one can.
        """
        deadline = asyncio.get_running_loop().time() + (
            self.spec.env.message_timeout_seconds * PATIENCE
        )
        rollout = Rollout(
            subject=subject,
            seed=seed,
            completion=completion,
            references=tuple(reference.name for reference in draw.references),
            draw_strength=draw.strength,
        )
        rollout = await self._inspected(rollout)
        if rollout.gate_passed is None:
            rollout = await self._attempted(rollout, draw, client, deadline)
        return self._rewarded(rollout, draw)

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
        self, rollout: Rollout, draw: Draw, client: str, deadline: float
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
                    tried = await self._measured(tried, draw, deadline)
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
                "versions": {**painted.versions, "rasterizer": painted.rasterizer},
            }
        )
        blank = blank_canvas(painted.paint_fraction, self.spec.recipe.gate.min_paint_fraction)
        return (
            refused(rollout, blank) if blank else rollout.model_copy(update={"gate_passed": True})
        )

    async def _render(self, sketch: str, client: str) -> _Render:
        try:
            painted = await self.rooms.renderers.render(
                sketch,
                seed=self.spec.seed,
                size=self.spec.renderers.size,
                deadline_s=self.spec.renderers.deadline_seconds,
                cpu_budget_s=self.spec.recipe.gate.cpu_budget_seconds,
                client=client,
            )
        except SketchFault as fault:
            return _Render(fault.violation, fault.js_errors, fault.timings)
        timings = {"queue": painted.timings["queue"]}
        # A renderer remembers paintings too; those are no renders.
        if not painted.cached:
            timings["render"] = painted.timings["render"]
            timings["render_cpu"] = painted.cpu_seconds
        return _Render(painted, painted.js_errors, timings)

    async def _measured(self, rollout: Rollout, draw: Draw, deadline: float) -> Rollout:
        """With length, quality and judge; a room that failed leaves its term None and a reason."""
        assert rollout.sketch is not None
        assert rollout.painting is not None
        key, painting = sketch_key(rollout.sketch), rollout.painting
        # Verdicts outlive the run, and other runs paint with other seeds, sizes and browsers.
        lasting = painting_key(rollout, self.spec)
        found = await asyncio.gather(
            in_time(deadline, self._quality(key, painting), Reason.SCORER_UNAVAILABLE),
            in_time(deadline, self._judged(lasting, painting, draw), Reason.JUDGE_UNAVAILABLE),
            self._pigment(painting, rollout.subject),
        )
        return measured(rollout, quality=found[0], judge=found[1], pigment=found[2])

    async def _quality(self, key: str, painting: bytes) -> Finding:
        scoring, presence = self._scoring, self.rooms.scorer_presence
        if scoring is None:
            return NOT_ASKED
        return await awake(
            presence, Reason.SCORER_UNAVAILABLE, lambda: scoring.quality(key, painting)
        )

    async def _pigment(self, painting: bytes, subject: str) -> Finding:
        hued = with_hue(subject)
        if hued is None:
            return NOT_ASKED
        # A thread: a large painting must not hold up the other sessions.
        return await asyncio.to_thread(measure.pigment, painting, hued)

    async def _judged(self, key: str, painting: bytes, draw: Draw) -> Finding:
        judge, presence = self.rooms.judge, self.rooms.judge_presence
        if judge is None:
            return NOT_ASKED
        return await awake(
            presence,
            Reason.JUDGE_UNAVAILABLE,
            lambda: measure.judged(judge, key, painting, draw.references),
        )

    def _rewarded(self, rollout: Rollout, draw: Draw) -> Rollout:
        """With the reward, raw and adjusted, where there is one."""
        if rollout.gate_passed is None:
            return rollout
        recipe = self.recipe.of(rollout.subject)
        reward = recipe.combine(rollout.terms, rollout.gate_passed)
        adjusted = adjust.adjust(
            reward,
            gate_passed=rollout.gate_passed,
            judge_slope=recipe.slope("judge"),
            draw_strength=draw.strength,
            mean_draw_strength=draw.mean_strength,
        )
        return rollout.model_copy(update={"reward": reward, "reward_adjusted": adjusted})


def sketch_key(sketch: str) -> str:
    """What equal sketches share: within one run they also share the seed and the canvas."""
    return hashlib.sha256(sketch.encode("utf-8", "surrogatepass")).hexdigest()


def painting_key(rollout: Rollout, spec: RunSpec) -> str:
    """What equal paintings of any run share: the sketch and all that its picture depends on."""
    assert rollout.sketch is not None
    versions = ",".join(f"{name}={rollout.versions[name]}" for name in sorted(rollout.versions))
    made = f"{sketch_key(rollout.sketch)} {spec.seed} {spec.renderers.size} {versions}"
    return hashlib.sha256(made.encode()).hexdigest()


def blank_canvas(paint_fraction: float, least: float) -> Violation | None:
    """The violation of a sheet with less paint than the recipe asks for."""
    if paint_fraction >= least:
        return None
    return Violation(
        code=ViolationCode.BLANK_CANVAS,
        message=f"paint covers {paint_fraction:.2%} of the sheet, the least is {least:.2%}",
    )


def refused(rollout: Rollout, violation: Violation) -> Rollout:
    """The rollout with one more violation and a failed gate."""
    return rollout.model_copy(
        update={
            "violations": (*rollout.violations, violation),
            "gate_passed": False,
            "terms": {"gate": 0.0},
        }
    )


def measured(
    rollout: Rollout, *, quality: Finding, judge: Finding, pigment: Finding = NOT_ASKED
) -> Rollout:
    """The admitted rollout with all its terms; None for a term that nobody was asked for."""
    assert rollout.sketch is not None
    timings, versions = dict(rollout.timings), dict(rollout.versions)
    record: dict[str, object] = {}
    for finding in (quality, judge, pigment):
        timings |= finding.timings or {}
        versions |= finding.versions or {}
        record |= finding.record or {}
    failed = next((one for one in (quality, judge, pigment) if one.reason is not None), NOT_ASKED)
    return rollout.model_copy(
        update={
            **record,
            "terms": {
                "gate": 1.0,
                "length": terms.length(len(rollout.sketch)),
                "quality": quality.value,
                "judge": judge.value,
                "pigment": pigment.value,
            },
            "timings": timings,
            "versions": versions,
            "unscored_reason": failed.reason,
            "unscored_detail": failed.detail,
        }
    )


async def in_time(deadline: float, finding: Awaitable[Finding], reason: Reason) -> Finding:
    """The finding, or one that says that it came too late for the client."""
    try:
        async with asyncio.timeout_at(deadline):
            return await finding
    except TimeoutError:
        return Finding(reason=reason, detail=TOO_LATE)


def mean_draw_strength(pool: Pool, count: int, shares: TierShares) -> float:
    """The expectation of ``draw_strength`` over the draws of so many references, 0 to 1.

    A draw's strength is a mean over its references, and within a tier every reference is drawn
    equally often, so the expectation is the tiers' own means, weighted by their places.
    """
    places = pools.allocate(count, shares)
    return (
        sum(
            number * pools.draw_strength(pool.tier(tier))
            for tier, number in places.items()
            if number
        )
        / count
    )
