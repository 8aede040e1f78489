"""From a step's prompts to its rollouts: generation, with every row evaluated while others grow.

The environment gets a completion in the step in which its row ends, so painting overlaps with
generation. A group without a single value is tried again with other rows; then it stays unscored.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from typing import Protocol

from watercolour import logs
from watercolour.api.reasons import LASTING, Reason
from watercolour.api.rollout import Rollout
from watercolour.train import fair
from watercolour.train.engines import Engine
from watercolour.train.ranks import Ranks
from watercolour.train.sampling import Row, Stop

log = logs.get(__name__)

#: Tries of a group whose every member came back unscored.
GROUP_ATTEMPTS = 2
#: Seconds between looks at the stop flag while paintings are awaited.
LOOK_SECONDS = 0.2
#: Longest wait for paintings by one of several processes that is to stop: a pod has 300 s to go.
STOP_SECONDS = 60.0
#: Seconds for which announced rollouts are expected.
ANNOUNCED_SECONDS = 600.0
#: Generations whose quickest first row tells when the next one's is due: lengths differ.
REMEMBERED = 4


class Environment(Protocol):
    """What the trainer needs of :class:`watercolour.env.client.EnvClient`."""

    def submit(
        self,
        completion: str,
        *,
        subject: str,
        seed: int,
        run: str,
        step: int,
        group: int,
        index: int,
        tokens: int,
        truncated: bool,
    ) -> Future[Rollout]:
        """Evaluate a completion; the rollout is unscored if the infrastructure fails."""
        ...

    def submit_announcement(
        self, rollouts: int, until: float, due_seconds: float = 0.0
    ) -> Future[bool]:
        """Tell that rollouts will come, the first in so many seconds."""
        ...


@dataclass(frozen=True)
class Group:
    """One prompt, to be completed ``size`` times against one draw of references."""

    number: int
    subject: str
    draw_seed: int
    prompt: tuple[int, ...]


@dataclass(frozen=True)
class Painted:
    """What became of a step's groups, all lists in the order of the rows."""

    step: int
    group_size: int
    rollouts: tuple[Rollout, ...]
    rows: tuple[Row, ...]
    prompts: tuple[tuple[int, ...], ...]
    seconds_generate: float
    seconds_wait: float
    """After the last row had ended, until the last rollout was there."""
    attempts: int
    tokens: int
    """Of all attempts, which is more than the rows have where a group was tried again."""

    @property
    def rewards(self) -> list[float | None]:
        """One reward a row; None is unscored."""
        return [rollout.reward for rollout in self.rollouts]

    def groups(self) -> list[list[float | None]]:
        """The rewards, group by group."""
        rewards, size = self.rewards, self.group_size
        return [rewards[start : start + size] for start in range(0, len(rewards), size)]

    @property
    def unscored(self) -> bool:
        """No rollout of the step has a value."""
        return all(reward is None for reward in self.rewards)

    @property
    def flat(self) -> bool:
        """There are values, but no group has two that differ: nothing to learn from."""
        spread = [
            len({reward for reward in group if reward is not None}) for group in self.groups()
        ]
        return not self.unscored and max(spread) < 2

    def part(self, ranks: Ranks) -> Painted:
        """The rows that are one process's to learn from; the whole where there is no other."""
        places = [n for n in range(len(self.rows)) if ranks.owns(n, len(self.rows))]
        return replace(
            self,
            rollouts=tuple(self.rollouts[place] for place in places),
            rows=tuple(self.rows[place] for place in places),
            prompts=tuple(self.prompts[place] for place in places),
        )


def again(group: Sequence[Rollout]) -> bool:
    """Whether a group is worth another try: it has no value, and for no lasting reason."""
    return all(one.reward is None and one.unscored_reason not in LASTING for one in group)


@dataclass
class Painter:
    """Generates and evaluates groups; ``seed_of(step, attempt, row)`` seeds a row's sampling.

    Where several processes share the training each completes its own rows, and all come to hold
    every rollout: a sketch is painted once, and all judge the step alike.
    """

    engine: Engine
    decode: Callable[[Sequence[int]], str]
    env: Environment
    run: str
    seed_of: Callable[[int, int, int], int]
    stop: Stop
    attempts: int = GROUP_ATTEMPTS
    #: Adds to a step's group what only the whole of it tells, such as how unlike its members are.
    completed: Callable[[int, Sequence[Rollout]], list[Rollout]] = lambda _step, group: list(group)
    #: Told when all rows are complete and only paintings are awaited.
    generated: Callable[[], None] = lambda: None
    ranks: Ranks = field(default_factory=Ranks)
    #: Called by all processes together, when all have come to the same place; raises to stop.
    stop_together: Stop = lambda: None
    #: Whether this process was asked to stop. One of several cannot leave the others by itself, but
    #: waits no longer for paintings that will not be used.
    stopping: Callable[[], bool] = lambda: False
    #: Seconds from the beginning of each of the last generations to the end of its first row.
    first_rows: deque[float] = field(default_factory=lambda: deque[float](maxlen=REMEMBERED))

    def paint(self, step: int, groups: Sequence[Group], size: int) -> Painted:
        """Complete and evaluate every group; groups without any value once more."""
        rows: dict[int, Row] = {}
        rollouts: dict[int, Rollout] = {}
        generate = waited = 0.0
        tokens = 0
        wanted, attempt = list(range(len(groups))), 0
        while wanted and attempt < self.attempts:
            places = [place * size + index for place in wanted for index in range(size)]
            with self.ranks.agreed():
                found, seconds = self._attempt(step, attempt, groups, places, size, rows)
            theirs = self.ranks.gather(({place: rows[place] for place in found}, found, seconds))
            for their_rows, their_rollouts, _ in theirs:
                rows |= their_rows
                rollouts |= their_rollouts
                tokens += sum(len(row.tokens) for row in their_rows.values())
            self.stop_together()
            for place in wanted:
                members = range(place * size, (place + 1) * size)
                whole = self.completed(step, [rollouts[member] for member in members])
                rollouts |= dict(zip(members, whole, strict=True))
            generate += max(spent for _, _, (spent, _) in theirs)
            waited += max(spent for _, _, (_, spent) in theirs)
            attempt += 1
            wanted = [
                place
                for place in wanted
                if again([rollouts[place * size + i] for i in range(size)])
            ]
            if wanted:
                log.warning("step %d: %d groups came back unscored", step, len(wanted))
        for place in range(len(groups)):
            members = range(place * size, (place + 1) * size)
            judged = fair.of_one_judge([rollouts[member] for member in members])
            rollouts |= dict(zip(members, judged, strict=True))
        order = range(len(groups) * size)
        return Painted(
            step=step,
            group_size=size,
            rollouts=tuple(rollouts[place] for place in order),
            rows=tuple(rows[place] for place in order),
            prompts=tuple(groups[place // size].prompt for place in order),
            seconds_generate=generate,
            seconds_wait=waited,
            attempts=attempt,
            tokens=tokens,
        )

    def _attempt(
        self,
        step: int,
        attempt: int,
        groups: Sequence[Group],
        places: Sequence[int],
        size: int,
        rows: dict[int, Row],
    ) -> tuple[dict[int, Rollout], tuple[float, float]]:
        """This process's share of the places: its rollouts, and seconds generating and waiting."""
        mine = [place for place in places if self.ranks.owns(place, len(groups) * size)]
        # The first generation compiles, so it alone tells nothing.
        due = min(self.first_rows) if len(self.first_rows) > 1 else 0.0
        self.env.submit_announcement(len(mine), time.time() + due + ANNOUNCED_SECONDS, due)
        began = time.perf_counter()
        futures = self._generate(step, attempt, groups, mine, size, rows) if mine else {}
        ended = time.perf_counter()
        self.generated()
        self._await(list(futures.values()))
        found = {
            place: self._result(future, step, groups[place // size], place % size, rows[place])
            for place, future in futures.items()
        }
        return found, (ended - began, time.perf_counter() - ended)

    def _generate(
        self,
        step: int,
        attempt: int,
        groups: Sequence[Group],
        places: Sequence[int],
        size: int,
        rows: dict[int, Row],
    ) -> dict[int, Future[Rollout]]:
        """Complete the rows at ``places``; each is sent to the environment when it ends."""
        futures: dict[int, Future[Rollout]] = {}
        began = time.perf_counter()

        def on_row(number: int, row: Row) -> None:
            if not futures:
                self.first_rows.append(time.perf_counter() - began)
            place = places[number]
            group = groups[place // size]
            rows[place] = row
            futures[place] = self.env.submit(
                self.decode(row.tokens),
                subject=group.subject,
                seed=group.draw_seed,
                run=self.run,
                step=step,
                group=group.number,
                index=place % size,
                tokens=len(row.tokens),
                truncated=row.truncated,
            )

        prompts = [groups[place // size].prompt for place in places]
        seeds = [self.seed_of(step, attempt, place) for place in places]
        self.engine(prompts, seeds, on_row, self.stop)
        return futures

    def _await(self, futures: Sequence[Future[Rollout]]) -> None:
        """Wait for all, or for STOP_SECONDS after this process was asked to stop."""
        until: float | None = None
        while wait(futures, timeout=LOOK_SECONDS).not_done:
            self.stop()
            if self.stopping():
                until = until or time.monotonic() + STOP_SECONDS
                if time.monotonic() >= until:
                    return

    def _result(
        self, future: Future[Rollout], step: int, group: Group, index: int, row: Row
    ) -> Rollout:
        """The rollout of a future; a fault of ours, or the end of the wait, leaves it unscored."""
        reason, detail = Reason.INTERRUPTED, "the training was stopped before it was evaluated"
        if future.done():
            try:
                return future.result()
            except Exception as error:
                # The boundary that keeps one broken rollout from ending the training.
                with logs.rollout(self.run, step, group.number, index):
                    log.exception("a rollout could not be evaluated")
                reason, detail = Reason.INTERNAL_ERROR, f"{type(error).__name__}: {error}"
        return Rollout(
            run=self.run,
            step=step,
            group=group.number,
            index=index,
            subject=group.subject,
            seed=group.draw_seed,
            completion=self.decode(row.tokens),
            tokens=len(row.tokens),
            truncated=row.truncated,
            unscored_reason=reason,
            unscored_detail=detail,
        )
