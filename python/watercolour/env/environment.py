"""The OpenEnv environment: one episode a reset, one evaluated reply a step."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import EnvironmentMetadata

import watercolour
from watercolour import logs
from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.api.rollout import Rollout
from watercolour.env import wire
from watercolour.env.corridor import Corridor
from watercolour.env.critique import critique
from watercolour.env.demand import Announcements
from watercolour.env.draws import Draw, Place
from watercolour.env.metrics import Metrics
from watercolour.env.models import PaintAction, PaintObservation, PaintState
from watercolour.render.dispatcher import Closing
from watercolour.sketch import prompt

log = logs.get(__name__)

#: The most that one reset may ask for; each reference is two calls of the judge.
MOST_REFERENCES, MOST_REVISIONS = 64, 16


@dataclass(frozen=True)
class _Episode:
    episode_id: str
    client: str
    subject: str
    seed: int
    draw: Draw
    place: Place
    return_image: bool
    revisions: int
    messages: tuple[str, str]


class PaintEnvironment(Environment[PaintAction, PaintObservation, PaintState]):
    """One session. The policy is asked for a sketch and sees, if it may revise, its painting."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(
        self, corridor: Callable[[], Corridor], announcements: Announcements, metrics: Metrics
    ) -> None:
        """Start without an episode.

        Args:
            corridor: what the running server has opened; not called before a reset.
            announcements: rollouts to come, of all sessions.
            metrics: counts, of all sessions.
        """
        super().__init__()
        self._corridor = corridor
        self._announcements = announcements
        self._metrics = metrics
        self._open = True
        metrics.sessions.inc()
        self._episode: _Episode | None = None
        self._submitted = 0

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        subject: str | None = None,
        references: int | None = None,
        return_image: bool = False,
        revisions: int = 0,
        client: str | None = None,
        step: int | None = None,
        group: int = 0,
        index: int = 0,
        **_: Any,
    ) -> PaintObservation:
        """Begin an episode.

        Args:
            seed: draws the references; members of a group share it. The run's seed if None.
            episode_id: echoed by every observation; a fresh one if None.
            subject: what to paint; one of the run's, by the seed, if None.
            references: how many to compare with; the run's number if None.
            return_image: send the painting back with each observation.
            revisions: how often the policy may try again; 0 is one shot.
            client: sessions of one client share one turn in the render queue.
            step: the optimizer step, by which a recipe's schedule and curriculum go; those of the
                first step hold if None.
            group, index: which prompt group of the step, and which place in it.
            _: OpenEnv hands on whatever a client's reset names; what is unknown is ignored, so
                that a data set's other columns do no harm.

        Raises:
            InputError: a value is out of its range.
        """
        corridor = self._corridor()
        spec = corridor.spec
        seed = spec.seed if seed is None else whole("seed", seed, 0, 2**63 - 1)
        if references is not None:
            references = whole("references", references, 1, MOST_REFERENCES)
        subject = subject or spec.prompts.subjects[seed % len(spec.prompts.subjects)]
        place = Place(
            -1 if step is None else whole("step", step, -1, 2**31 - 1),
            whole("group", group, 0, 2**31 - 1),
            whole("index", index, 0, 2**31 - 1),
        )
        system, user = task(subject, prompt.preset(spec.prompts.system, spec.model.id))
        name = episode_id or str(uuid.uuid4())
        self._submitted = 0
        self._episode = _Episode(
            episode_id=name,
            client=client or name,
            subject=subject,
            seed=seed,
            draw=corridor.draw(seed, references, place.step),
            place=place,
            return_image=bool(return_image),
            revisions=whole("revisions", revisions, 0, MOST_REVISIONS),
            messages=(system, user),
        )
        return self._observation(self._episode)

    async def reset_async(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        subject: str | None = None,
        references: int | None = None,
        return_image: bool = False,
        revisions: int = 0,
        client: str | None = None,
        step: int | None = None,
        group: int = 0,
        index: int = 0,
        **_: Any,
    ) -> PaintObservation:
        """As :meth:`reset`, which waits for nothing."""
        given = (seed, episode_id, subject, references, return_image, revisions, client)
        return self.reset(*given, step, group, index)

    def step(
        self, action: PaintAction, timeout_s: float | None = None, **_: Any
    ) -> PaintObservation:
        """Not offered: a step waits for other servers, so it has only its async form.

        Raises:
            InputError: always.
        """
        raise InputError(
            Reason.INVALID_REQUEST,
            "this environment has no synchronous step.",
            remedy="Use step_async, or the WebSocket.",
        )

    async def step_async(
        self, action: PaintAction, timeout_s: float | None = None, **_: Any
    ) -> PaintObservation:
        """Evaluate one reply.

        Raises:
            InputError: there was no reset, or no revision is left.
            Closing: this environment ends.
        """
        episode = self._episode
        if episode is None:
            raise InputError(
                Reason.INVALID_REQUEST, "step before reset.", remedy="Send a reset first."
            )
        if self._submitted > episode.revisions:
            raise InputError(
                Reason.INVALID_REQUEST,
                f"all {self._submitted} replies of this episode were evaluated.",
                remedy="Reset, and ask for more revisions there.",
            )
        self._announcements.arrived(episode.client)
        rollout = await self._evaluated(episode, action.response)
        self._metrics.observe(rollout)
        self._submitted += 1
        return self._observation(episode, rollout)

    async def _evaluated(self, episode: _Episode, reply: str) -> Rollout:
        """The boundary where a fault of ours is recorded and leaves the rollout unscored."""
        at = episode.place
        with logs.rollout(episode.client, at.step, at.group, at.index):
            return await self._evaluated_there(episode, reply)

    async def _evaluated_there(self, episode: _Episode, reply: str) -> Rollout:
        try:
            return await self._corridor().evaluate(
                reply,
                subject=episode.subject,
                seed=episode.seed,
                draw=episode.draw,
                client=episode.client,
                place=episode.place,
            )
        except Closing:
            # Its client asks the environment that comes next.
            raise
        except Exception as error:
            log.exception("the corridor failed")
            return Rollout(
                subject=episode.subject,
                seed=episode.seed,
                completion=reply,
                unscored_reason=Reason.INTERNAL_ERROR,
                unscored_detail=f"{type(error).__name__}: {error}",
            )

    @property
    def state(self) -> PaintState:
        """Where the episode stands."""
        episode = self._episode
        if episode is None:
            return PaintState()
        return PaintState(
            episode_id=episode.episode_id,
            step_count=self._submitted,
            subject=episode.subject,
            seed=episode.seed,
            submitted=self._submitted,
            revisions_left=self._revisions_left(episode),
        )

    def close(self) -> None:
        """End the session; OpenEnv calls it when the socket is gone. Twice is harmless."""
        if self._open:
            self._open = False
            self._metrics.sessions.dec()

    def get_metadata(self) -> EnvironmentMetadata:
        """What OpenEnv shows of this environment."""
        return EnvironmentMetadata(
            name="watercolour",
            description="Paint watercolours by writing p5.brush sketches; rewarded by a gate, a "
            "quality scorer and a pairwise judge.",
            version=watercolour.__version__,
        )

    def _revisions_left(self, episode: _Episode) -> int:
        # The first reply is no revision.
        return min(episode.revisions, episode.revisions + 1 - self._submitted)

    def _observation(self, episode: _Episode, rollout: Rollout | None = None) -> PaintObservation:
        system, user = episode.messages
        finished = self._submitted > episode.revisions
        carried: dict[str, Any] = {}
        told = ""
        if rollout is not None:
            carried = wire.fields(rollout, with_painting=episode.return_image)
            told = critique(rollout)
        else:
            carried = {
                "seed": episode.seed,
                "references": [reference.name for reference in episode.draw.references],
                "draw_strength": episode.draw.strength,
            }
        return PaintObservation(
            done=finished,
            episode_id=episode.episode_id,
            subject=episode.subject,
            system_prompt=system,
            prompt=user,
            finished=finished,
            revisions_left=self._revisions_left(episode),
            critique=told,
            **carried,
        )


def task(subject: str, preset: str) -> tuple[str, str]:
    """The system's and the user's message of a task; the first may be empty."""
    by_role = {one["role"]: one["content"] for one in prompt.messages(subject, preset)}
    return by_role.get("system", ""), by_role["user"]


def whole(name: str, value: object, least: int, most: int) -> int:
    """The value, if it is a whole number within its range.

    Raises:
        InputError: it is not.
    """
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise InputError(
        Reason.INVALID_REQUEST,
        f"{name}={value!r} is not a whole number from {least} to {most}.",
        remedy=f"Reset with another {name}.",
        field=name,
        value=value,
    )
