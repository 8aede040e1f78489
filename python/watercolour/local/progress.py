"""A run's progress for a person: one dense panel at a terminal, plain lines through a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from watercolour.api.status import Progress
from watercolour.gallery.words import number, percent

BARS = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 24
#: Steps whose median duration gives the ETA; the first step, a warm-up, is never among them.
ETA_STEPS = 20
#: Seconds between plain lines.
PLAIN_SECONDS = 15.0


@dataclass
class History:
    """Rewards and times of the steps seen, for the sparkline and the ETA.

    Times are when this process first saw a step, in seconds of a monotonic clock.
    """

    rewards: dict[int, float | None] = field(default_factory=dict[int, float | None])
    seen_at: dict[int, float] = field(default_factory=dict[int, float])

    def add(self, progress: Progress, now: float) -> bool:
        """Take in a reply; True when it tells of a new step."""
        new = progress.step > 0 and progress.step not in self.seen_at
        if new:
            self.seen_at[progress.step] = now
            self.rewards[progress.step] = progress.reward.mean
        return new

    def eta_seconds(self, progress: Progress) -> float | None:
        """Seconds left, from the median of the last steps; None before two steps were seen."""
        if progress.eta_seconds is not None:
            return progress.eta_seconds
        steps = sorted(self.seen_at)[-ETA_STEPS - 1 :]
        spans = [
            (self.seen_at[after] - self.seen_at[before]) / (after - before)
            for before, after in pairwise(steps)
        ]
        return median(spans) * (progress.steps - progress.step) if spans else None


def sparkline(values: list[float | None], width: int = SPARK_WIDTH) -> str:
    """The last values as bars from their least to their greatest; an unscored one is a space."""
    shown = values[-width:]
    known = [value for value in shown if value is not None]
    if not known:
        return ""
    low, span = min(known), max(known) - min(known)
    return "".join(
        " " if value is None else BARS[round((value - low) / (span or 1.0) * (len(BARS) - 1))]
        for value in shown
    )


def duration(seconds: float | None) -> str:
    """``1:02:03``, ``4:05``, or a dash when unknown."""
    if seconds is None:
        return "–"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def queued(progress: Progress) -> str:
    """Sketches that wait or are being painted, or a dash when unknown."""
    return "–" if progress.queue is None else str(progress.queue.queued + progress.queue.inflight)


def speed(progress: Progress) -> str:
    """How fast it goes and where a step's seconds go; empty before the first step has ended.

    What does not exist, such as a GPU's memory without one, is left out.
    """
    found = progress.model_extra or {}
    seconds = found.get("lastStepSeconds")
    if seconds is None:
        return ""
    rooms = {"generate": "secondsGenerate", "wait": "secondsWait", "update": "secondsUpdate"}
    parts = [
        f"{room} {found[key]:.1f}" for room, key in rooms.items() if found.get(key) is not None
    ]
    text = f"{seconds:.1f} s/step" + (f" ({', '.join(parts)})" if parts else "")
    if (tokens := found.get("tokensPerSecond")) is not None:
        text += f"  {tokens:,.0f} tokens/s"
    if (held := found.get("gpuMemoryBytes")) is not None:
        text += f"  GPU {held / 2**30:.1f} GiB"
    return text


def plain(name: str, progress: Progress, history: History) -> str:
    """The progress as one line without control characters."""
    share = progress.step / progress.steps if progress.steps else 0.0
    return (
        f"{name}  step {progress.step}/{progress.steps} ({share:.0%})  "
        f"left {duration(history.eta_seconds(progress))}  reward {number(progress.reward.mean)} "
        f"{sparkline(list(history.rewards.values()))}  gate {percent(progress.gate_pass_rate)}  "
        f"unscored {percent(progress.unscored_rate)}  queue {queued(progress)}  "
        f"{speed(progress)}"
    ).rstrip()


def preflight(progress: Progress) -> str:
    """What the trainer's probes showed of the starting policy; empty until it says."""
    found = (progress.model_extra or {}).get("preflight")
    if not found:
        return ""
    return (
        f"the starting policy passes the gate in {percent(found['gate_pass_rate'])} of "
        f"{found['probes']} probes and wins {percent(found['wins'])} of its comparisons"
    )


def selfcheck(progress: Progress) -> str:
    """What came of the judge's self-check; empty until it is known."""
    found = (progress.model_extra or {}).get("selfcheck")
    if not found:
        return ""
    state = {True: "passed", False: "NOT passed", None: "unknown"}[found["passed"]]
    return f"the judge's self-check: {state}: {found['message']}"


def news(progress: Progress) -> dict[str, str]:
    """What is to be told once, by a key of its own: findings, and alarms while they stand."""
    found = {"preflight": preflight(progress), "selfcheck": selfcheck(progress)}
    found |= {one.name: f"ALARM {one.name}: {one.message}. {one.advice}" for one in progress.alarms}
    return {key: text for key, text in found.items() if text}


@dataclass
class Told:
    """What was told and still stands; an alarm that comes again is told again."""

    keys: set[str] = field(default_factory=set[str])

    def new(self, progress: Progress) -> list[str]:
        """The sentences that nobody has been told yet."""
        found = news(progress)
        fresh = [text for key, text in found.items() if key not in self.keys]
        self.keys = set(found)
        return fresh


class Display(Protocol):
    """Where a run shows how it goes."""

    def say(self, text: str) -> None:
        """Tell of an event, in one line."""
        ...

    def update(self, progress: Progress) -> None:
        """Show the newest progress."""
        ...


class PlainDisplay:
    """A line now and then: at the first step, at the last, and every PLAIN_SECONDS between."""

    def __init__(
        self, name: str, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name = name
        self._write = write
        self._clock = clock
        self._history = History()
        self._last = float("-inf")
        self._told = Told()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def say(self, text: str) -> None:
        """Tell of an event, in one line."""
        self._write(text)

    def update(self, progress: Progress) -> None:
        """Show the newest progress, if there is something new and enough time has passed."""
        for text in self._told.new(progress):
            self._write(text)
        now = self._clock()
        new = self._history.add(progress, now)
        if new and (now - self._last >= PLAIN_SECONDS or progress.step == progress.steps):
            self._last = now
            self._write(plain(self._name, progress, self._history))


class PanelDisplay:
    """Three lines that stay at the terminal's foot; events scroll by above them."""

    def __init__(self, name: str, console: Console) -> None:
        self._name = name
        self._console = console
        self._history = History()
        self._told = Told()
        self._live = Live(console=console, refresh_per_second=2, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        """Tell of an event, in one line."""
        self._console.print(Text(text, style="dim"))

    def update(self, progress: Progress) -> None:
        """Show the newest progress."""
        for text in self._told.new(progress):
            self.say(text)
        self._history.add(progress, time.monotonic())
        self._live.update(panel(self._name, progress, self._history))


def panel(name: str, progress: Progress, history: History) -> Group:
    """The progress as three lines: how far, how well and how fast."""
    far = Table.grid(padding=(0, 2))
    left = duration(history.eta_seconds(progress))
    # The trainer names its phase beside what ``status.progress`` holds.
    phase = str((progress.model_extra or {}).get("phase") or "starting")
    doing = f"step {progress.step}/{progress.steps}" if progress.step else phase
    far.add_row(
        Text(name, style="bold"),
        doing,
        ProgressBar(total=max(1, progress.steps), completed=progress.step, width=30),
        f"{progress.step / max(1, progress.steps):4.0%}",
        f"{left} left",
    )
    well = Table.grid(padding=(0, 2))
    gate, unscored = progress.gate_pass_rate, progress.unscored_rate
    well.add_row(
        Text.assemble("reward ", (number(progress.reward.mean), "bold")),
        Text(sparkline(list(history.rewards.values())), style="cyan"),
        f"best {number(progress.reward.best)}",
        Text(f"gate {percent(gate)}", style="" if gate is None or gate >= 0.5 else "yellow"),
        Text(f"unscored {percent(unscored)}", style="yellow" if unscored else ""),
        f"queue {queued(progress)}",
    )
    names = ", ".join(alarm.name for alarm in progress.alarms)
    lines = [far, well, *([Text(fast, style="dim")] if (fast := speed(progress)) else [])]
    return Group(*lines, *([Text(f"alarms: {names}", style="yellow")] if names else []))


def print_line(text: str) -> None:
    """Write a line to standard error at once."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def display(name: str, *, stream_is_terminal: bool) -> PanelDisplay | PlainDisplay:
    """The display that suits standard error."""
    if stream_is_terminal:
        return PanelDisplay(name, Console(stderr=True))
    return PlainDisplay(name, print_line)
