"""report.html: one file that shows a run to whoever opens it, with no network."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from watercolour import disk
from watercolour.api.rollout import Rollout
from watercolour.gallery import figures, gains
from watercolour.gallery.chart import Area, Line, Span, draw
from watercolour.gallery.figures import Step
from watercolour.gallery.gains import Scored
from watercolour.gallery.pictures import shrunk, small_copy, strip_cells
from watercolour.gallery.record import Entry, RunRecord
from watercolour.gallery.words import capitalised, duration, interval, number, percent, signed
from watercolour.reward import alarms, bands, gain
from watercolour.reward.bands import Band
from watercolour.reward.gain import Decomposition

#: Thumbnails of the strip and of best and worst are shown larger.
LARGE = 240
BEST = 6
#: How far what is told of the judge may go before there is an alarm.
LIMITS = {"ties": alarms.TIES, "place_bias": alarms.BIAS, "dropped": alarms.DROPPED}


@dataclass(frozen=True)
class Tile:
    """A painting as the page shows it."""

    number: int
    thumb: str | None
    painting: str | None
    caption: str
    alt: str
    blank: str = ""
    refused: bool = False


@dataclass(frozen=True)
class StepRow:
    """The paintings of a step, best first, unscored last."""

    figures: Step
    subjects: str
    tiles: list[Tile]


def write(record: RunRecord) -> Path:
    """Write ``report.html`` into the run's folder; return its path."""
    path = record.folder / "report.html"
    disk.write_text(path, html(record))
    return path


def html(record: RunRecord) -> str:
    """The whole page."""
    environment = Environment(
        loader=PackageLoader("watercolour.gallery", "page"),
        autoescape=select_autoescape(("html", "j2")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=number,
        percent=percent,
        signed=signed,
        duration=duration,
        interval=interval,
        capitalised=capitalised,
    )
    page = Path(__file__).with_name("page")
    return environment.get_template("report.html.j2").render(
        **context(record),
        # Ours, not a reader's input: neither holds anything of the run.
        css=Markup((page / "report.css").read_text(encoding="utf-8")),
        js=Markup((page / "report.js").read_text(encoding="utf-8")),
    )


def context(record: RunRecord) -> dict[str, Any]:
    """Everything that the template needs."""
    steps = record.by_step()
    rollouts = {step: [entry.rollout for entry in entries] for step, entries in steps.items()}
    every = [entry.rollout for entry in record.entries]
    curve = figures.curve(rollouts)
    first, last = gain.fifths(list(rollouts))
    numbers = {id(entry): place for place, entry in enumerate(record.entries)}
    before = [r for step in first for r in rollouts[step]]
    after = [r for step in last for r in rollouts[step]]
    wanted = record.spec.get("spec", {}).get("trainer", {}).get("steps")
    return {
        "name": record.name,
        "subjects": sorted({rollout.subject for rollout in every}),
        "summary": record.summary,
        "steps_done": len(steps),
        "steps_wanted": wanted if isinstance(wanted, int) else len(steps),
        "rollouts_count": len(every),
        "paintings_count": sum(entry.painting is not None for entry in record.entries),
        "damaged": record.damaged,
        "first": Ends.of(curve, first),
        "last": Ends.of(curve, last),
        "comparable": len(steps) > 1,
        "colours": figures.colours(before, after),
        "by_gate": _decompose(before, after, figures.admitted),
        "by_reward": _decompose(before, after, figures.above_bad),
        "bad_reward": gain.BAD_REWARD,
        "sure": figures.sure(before, after, adjust=True),
        "sure_raw": figures.sure(before, after, adjust=False),
        "unscored_ends": (unscored_ends := [_scored(before), _scored(after)]),
        "hint": gains.hint(*unscored_ends),
        "level": bands.LEVEL,
        "alarms": alarms.history(record.metrics),
        "last_step": max(rollouts),
        "judging": (judging := figures.judging(every)),
        "limits": LIMITS,
        "beyond": {
            name: value is not None and abs(value) > limit
            for name, limit in LIMITS.items()
            for value in (getattr(judging, name),)
        },
        "selfcheck": record.selfcheck,
        "charts": _charts(curve, first, last),
        "strip": _strip(record, numbers),
        "best": [_tile(record, e, numbers, LARGE) for e in ranked(record.entries)[:BEST]],
        "worst": [
            _tile(record, e, numbers, LARGE) for e in ranked(record.entries, worst=True)[:BEST]
        ],
        "violations": figures.violation_counts(every),
        "unscored": figures.unscored_counts(every),
        "timings": figures.timings(every),
        "rows": [
            _row(record, step_figures, steps[step_figures.step], numbers)
            for step_figures in reversed(curve)
        ],
        "spec_text": record.spec_text,
        "versions": _versions(every, record.summary),
        "data": Markup(_data(record.entries)),
    }


def _scored(rollouts: Iterable[Rollout]) -> Scored:
    """Of how many of the rollouts a mean is."""
    groups: dict[tuple[int, int], list[float | None]] = {}
    for rollout in rollouts:
        groups.setdefault((rollout.step, rollout.group), []).append(rollout.reward)
    return Scored.of(groups.values())


@dataclass(frozen=True)
class Ends:
    """The figures of the first or the last fifth: means over its steps, as in summary.json."""

    steps: str
    reward: float | None
    adjusted: float | None
    admitted: float | None
    gate: float | None
    pigment: float | None

    @classmethod
    def of(cls, curve: Sequence[Step], steps: Sequence[int]) -> Ends:
        """Over those steps of the curve; a step without a value is left out."""
        within = [point for point in curve if point.step in steps]
        return cls(
            steps=f"step {steps[0]}" if len(steps) == 1 else f"steps {steps[0]}–{steps[-1]}",
            reward=figures.mean(point.reward for point in within),
            adjusted=figures.mean(point.adjusted for point in within),
            admitted=figures.mean(point.admitted for point in within),
            gate=figures.mean(point.gate_pass_rate for point in within),
            pigment=figures.mean(point.pigment for point in within),
        )


def _decompose(
    before: Iterable[Rollout], after: Iterable[Rollout], good: Any
) -> Decomposition | None:
    return gain.decompose(figures.split(before, good), figures.split(after, good))


def _charts(curve: Sequence[Step], first: Sequence[int], last: Sequence[int]) -> dict[str, Markup]:
    steps = [point.step for point in curve]
    told = [
        f"step {p.step} · reward {number(p.reward)} · adjusted {number(p.adjusted)} · "
        f"gate {percent(p.gate_pass_rate)} · subject's colours {percent(p.pigment)} · "
        f"unscored {percent(p.unscored_rate)}"
        for p in curve
    ]
    reward = draw(
        steps,
        [
            Line("raw", [p.reward for p in curve]),
            Line("adjusted", [p.adjusted for p in curve]),
            Line("mean", [p.around for p in curve]),
        ],
        told=told,
        title="Mean reward by step, raw and adjusted for the draw of references",
        areas=[_area("mean", [p.band for p in curve])],
        spans=_spans(curve, first, last),
    )
    rates = draw(
        steps,
        [
            Line("gate", [p.gate_pass_rate for p in curve]),
            Line("pigment", [p.pigment for p in curve]),
            Line("unscored", [p.unscored_rate for p in curve]),
        ],
        told=told,
        title="Gate pass rate, share of the subject's colours and unscored rate by step",
        height=130.0,
        limits=(0.0, 1.0),
        label=lambda value: f"{value:.0%}",
    )
    return {"reward": Markup(reward), "rates": Markup(rates)}


def _area(name: str, intervals: Sequence[Band | None]) -> Area:
    return Area(
        name,
        [None if one is None else one.low for one in intervals],
        [None if one is None else one.high for one in intervals],
    )


def _spans(curve: Sequence[Step], first: Sequence[int], last: Sequence[int]) -> list[Span]:
    """First and last fifth, where they are two different stretches with a mean."""
    spans: list[Span] = []
    for steps in (first, last) if first[-1] < last[0] else ():
        level = figures.mean(p.adjusted for p in curve if p.step in steps)
        if level is not None:
            spans.append(Span(steps[0], steps[-1], level, f"{level:.3f}"))
    return spans


def ranked(entries: Iterable[Entry], *, worst: bool = False) -> list[Entry]:
    """Admitted and scored paintings, the best (or worst) first; equal sketches only once."""
    sign = 1 if worst else -1
    scored = [e for e in entries if e.rollout.gate_passed and e.rollout.reward is not None]
    scored = [entry for entry in scored if entry.painting]
    scored.sort(key=lambda entry: sign * (entry.rollout.reward or 0.0))
    kept: dict[str, Entry] = {}
    for entry in scored:
        kept.setdefault(entry.rollout.sketch or entry.painting or "", entry)
    return list(kept.values())


def _strip(record: RunRecord, numbers: dict[int, int]) -> list[tuple[str, list[Tile]]]:
    return [
        (
            subject,
            [
                _tile(record, cell.entry, numbers, LARGE, f"step {cell.step} · ")
                if cell.entry
                else Tile(-1, None, None, f"step {cell.step}", "none admitted")
                for cell in cells
            ],
        )
        for subject, cells in sorted(strip_cells(record).items())
    ]


def _row(
    record: RunRecord, step: Step, entries: Sequence[Entry], numbers: dict[int, int]
) -> StepRow:
    def order(entry: Entry) -> tuple[bool, float]:
        reward = entry.rollout.reward
        return (reward is None, -(reward or 0.0))

    subjects = list(dict.fromkeys(entry.rollout.subject for entry in entries))
    tiles = [_tile(record, entry, numbers) for entry in sorted(entries, key=order)]
    return StepRow(step, ", ".join(subjects), tiles)


def _tile(
    record: RunRecord, entry: Entry, numbers: dict[int, int], side: int = 0, prefix: str = ""
) -> Tile:
    """A tile; with ``side`` the painting is shrunk to it, without it is the small copy."""
    rollout = entry.rollout
    thumb = shrunk(record, entry, side) if side else small_copy(record, entry)
    return Tile(
        number=numbers[id(entry)],
        thumb=thumb,
        painting=entry.painting,
        caption=f"{prefix}{number(rollout.reward)}",
        refused=rollout.gate_passed is False,
        alt=f"{rollout.subject}, step {rollout.step}, {_state(rollout)}",
        blank=_blank(entry),
    )


def _blank(entry: Entry) -> str:
    """What stands where a painting is not."""
    if entry.painting is not None:
        return "missing file"
    return "unscored" if entry.rollout.reward is None else "refused"


def _state(rollout: Rollout) -> str:
    if rollout.reward is None:
        return f"unscored ({rollout.unscored_reason or 'unknown'})"
    if not rollout.gate_passed:
        return "refused: " + ", ".join(violation.code.value for violation in rollout.violations)
    return f"reward {rollout.reward:.3f}"


def _versions(rollouts: Sequence[Rollout], summary: Any) -> list[tuple[str, str]]:
    found: dict[str, dict[str, None]] = {}
    for versions in (summary.get("versions") or {}, *(r.versions for r in rollouts)):
        for part, version in versions.items():
            found.setdefault(part, {})[str(version)] = None
    return [(part, ", ".join(versions)) for part, versions in sorted(found.items())]


def _data(entries: Sequence[Entry]) -> str:
    """What the side panel shows of every rollout, as JSON that is safe inside a script element.

    Equal sketches, which are frequent, are stored once.
    """
    sketches: dict[str, int] = {}
    rows = [_panel_data(entry, sketches) for entry in entries]
    text = json.dumps(
        {"sketches": list(sketches), "rollouts": rows}, ensure_ascii=False, separators=(",", ":")
    )
    # No sketch can end the element or open a comment in it.
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _panel_data(entry: Entry, sketches: dict[str, int]) -> dict[str, Any]:
    rollout = entry.rollout
    code = rollout.completion if rollout.sketch is None else rollout.sketch
    return {
        "step": rollout.step,
        "group": rollout.group,
        "index": rollout.index,
        "subject": rollout.subject,
        "sketch": sketches.setdefault(code, len(sketches)),
        "extracted": rollout.sketch is not None,
        "painting": entry.painting,
        "state": _state(rollout),
        "passed": rollout.gate_passed,
        "reward": _rounded(rollout.reward),
        "adjusted": _rounded(rollout.reward_adjusted),
        "advantage": _rounded(rollout.advantage),
        "draw": _rounded(rollout.draw_strength),
        "mu": _rounded(rollout.mu),
        "terms": {name: _rounded(value) for name, value in rollout.terms.items()},
        "votes": [[v.reference, v.first, v.second, v.value] for v in rollout.votes],
        "references": rollout.references,
        "violations": [[v.code.value, v.line, v.column, v.message] for v in rollout.violations],
        "errors": rollout.js_errors,
        "unscored": rollout.unscored_detail if rollout.reward is None else "",
        "paint": _rounded(rollout.paint_fraction),
        "pigment": _rounded(rollout.pigment_share),
        "shapes": rollout.shapes,
        "tokens": rollout.tokens,
        "truncated": rollout.truncated,
        "attempts": rollout.attempts,
        "timings": {room: round(seconds, 2) for room, seconds in rollout.timings.items()},
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
