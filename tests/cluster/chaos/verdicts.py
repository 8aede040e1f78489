"""What must hold after a storm, judged from what a witness saw and what the cluster holds. Pure.

Each function returns its findings as sentences; an empty list is a clean verdict.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tests.cluster.chaos.witness import Seen

Json = dict[str, Any]
RUN_UID = "watercolour.dev/run-uid"
COMPONENT = "watercolour.dev/component"
ATTEMPT = "watercolour.dev/attempt"
ENDED = {"Succeeded", "Failed"}
PAID = {"scorer", "judge"}  # what holds GPUs besides the trainer
OVERSTAY = 10.0  # seconds that they may outlive the end of their run
TELLING = 5.0  # seconds that an operator may take to name a Job in a status


@dataclass(frozen=True)
class Outage:
    """A while in which nobody could act: no operator, or no breath left to the machine."""

    begin: float
    end: float


def leaked(runs: Sequence[Json], objects: Iterable[Json]) -> list[str]:
    """Objects of runs that exist no more, and what an ended or suspended run should not have."""
    alive = {run["metadata"]["uid"]: run for run in runs}
    found: list[str] = []
    for thing in objects:
        labels = thing["metadata"].get("labels", {})
        uid, what = labels.get(RUN_UID, ""), f"{thing['kind']} {thing['metadata']['name']}"
        if not uid:
            continue
        if uid not in alive:
            found.append(f"{what} is left of a run that is gone")
        elif phase(alive[uid]) in {*ENDED, "Suspended"} and _working(thing):
            found.append(f"{what} works for a run that is {phase(alive[uid])}")
    return found


def duplicates(pods: Sequence[Seen]) -> list[str]:
    """Runs of which two trainer pods lived at the same time, one being told to end included."""
    living: dict[str, dict[str, str]] = defaultdict(dict)
    found: list[str] = []
    for seen in pods:
        if seen.labels.get(COMPONENT) != "trainer":
            continue
        trainers = living[seen.labels[RUN_UID]]
        if seen.gone or seen.thing["status"].get("phase") in ENDED:
            trainers.pop(seen.uid, None)
        elif seen.uid not in trainers:
            trainers[seen.uid] = seen.name
            if len(trainers) > 1:
                found.append(f"trainers at the same time: {', '.join(sorted(trainers.values()))}")
    return found


def unheld(leases: Sequence[Seen], seconds: float) -> list[Outage]:
    """When nobody might write: from so many seconds after a renewal on, until the next."""
    return [
        Outage(before.at + seconds, after.at)
        for before, after in pairwise(leases)
        if after.at - before.at > seconds
    ]


def untold(
    taken: Container[str], history: Sequence[Seen], outages: Sequence[Outage]
) -> frozenset[str]:
    """Jobs that the storm took away before an operator had the time to name them in a status.

    An operator that dies between making a Job and telling of it leaves the Job to tell of itself;
    of one that is gone by the time of the next operator nobody can know.

    Args:
        taken: uids of the objects that the storm deleted.
        history: what the witness saw.
        outages: when nobody could act.
    """
    named = {
        attempt.get("job")
        for seen in history
        if seen.kind == "WatercolourRun"
        for attempt in seen.thing.get("status", {}).get("attempts", [])
    }
    lives: dict[str, tuple[float, float]] = {}
    for seen in history:
        if seen.kind == "Job" and seen.uid in taken and seen.uid not in named:
            lives[seen.uid] = (lives.get(seen.uid, (seen.at, 0.0))[0], seen.at)
    away = _merged(outages)
    return frozenset(
        uid
        for uid, (begin, end) in lives.items()
        if end - begin - _within(away, begin, end) < TELLING
    )


def contradictions(
    runs: Sequence[Json],
    objects: Sequence[Json],
    history: Sequence[Seen],
    unknown: Container[str] = (),
) -> list[str]:
    """Runs whose status says what did not happen, or not what did.

    Jobs that nobody could know of (see `untold`) are left out of the account.
    """
    known = [each for each in history if each.kind != "Job" or each.uid not in unknown]
    return [
        f"run {run['metadata']['name']}: {fault}"
        for run in runs
        for fault in _faults(run, objects, known)
    ]


def _faults(run: Json, objects: Sequence[Json], history: Sequence[Seen]) -> list[str]:
    uid, status = run["metadata"]["uid"], run.get("status", {})
    trainers = [each for each in history if _of(each, uid, "Pod", "trainer")]
    jobs = {each.uid: int(each.labels[ATTEMPT]) for each in history if _of(each, uid, "Job")}
    finished = {each.name for each in trainers if each.thing["status"].get("phase") == "Succeeded"}
    conditions = {each["type"]: each["status"] == "True" for each in status.get("conditions", [])}
    attempts = status.get("attempts", [])
    numbers = [attempt["number"] for attempt in attempts]
    # An attempt whose deadline passed before its Job could be made has none.
    claimed = {attempt["job"]: attempt["number"] for attempt in attempts if attempt.get("job")}
    now = phase(run)
    mine = [each for each in objects if each["metadata"].get("labels", {}).get(RUN_UID) == uid]
    rules = {
        f"{now} is no end": now in {*ENDED, "Suspended"},
        "Succeeded, but no trainer did": now != "Succeeded" or bool(finished),
        f"Failed, but {', '.join(finished)} succeeded": now != "Failed" or not finished,
        "Suspended, and nobody asked for it": now != "Suspended" or run["spec"].get("suspend"),
        "condition Complete": conditions.get("Complete", False) == (now == "Succeeded"),
        "condition Failed": conditions.get("Failed", False) == (now == "Failed"),
        "Failed without a last failure": now != "Failed" or bool(status.get("lastFailure")),
        f"attempts {numbers}": numbers == list(range(1, len(numbers) + 1)),
        f"attempts of Jobs {claimed}, Jobs {jobs}": claimed == jobs,
        "two Jobs of one attempt": len(set(jobs.values())) == len(jobs),
        "a generation that it has not seen": status.get("observedGeneration")
        == run["metadata"]["generation"],
        "renderers that do not exist": status.get("renderers", {}).get("replicas", 0)
        == sum(1 for each in mine if _is(each, "Pod", "renderers")),
    }
    return [words for words, holds in rules.items() if not holds]


def overstays(
    runs: Sequence[Seen], pods: Sequence[Seen], outages: Sequence[Outage]
) -> dict[str, float]:
    """By pod: seconds that a scorer or judge outlived the end of its run, outages taken out.

    A run ends when its trainer's last pod does (if it then succeeds or fails), when its status says
    that it has ended, when it is deleted, and when it is asked to suspend.
    """
    ends, away = _ends(runs, pods), _merged(outages)
    stayed: dict[str, float] = {}
    for seen in pods:
        end = ends.get(seen.labels.get(RUN_UID, ""))
        if seen.labels.get(COMPONENT) not in PAID or not seen.gone or end is None:
            continue
        late = seen.at - end - _within(away, end, seen.at)
        if late > 0:
            stayed[seen.name] = late
    return stayed


def _within(away: Iterable[Outage], begin: float, end: float) -> float:
    """Seconds of a span in which nobody could act."""
    return sum(max(0.0, min(each.end, end) - max(each.begin, begin)) for each in away)


def _merged(outages: Iterable[Outage]) -> list[Outage]:
    """The same whiles without overlaps: no second is taken out twice."""
    merged: list[Outage] = []
    for each in sorted(outages, key=lambda one: one.begin):
        if merged and each.begin <= merged[-1].end:
            merged[-1] = Outage(merged[-1].begin, max(merged[-1].end, each.end))
        else:
            merged.append(each)
    return merged


def _ends(runs: Sequence[Seen], pods: Sequence[Seen]) -> dict[str, float]:
    """By uid of the run: when it ended for the last time."""
    ends: dict[str, float] = {}
    wanted: dict[str, bool] = {}
    for seen in runs:
        rests = (
            seen.gone
            or "deletionTimestamp" in seen.thing["metadata"]
            or seen.thing["spec"].get("suspend", False)
            or phase(seen.thing) in ENDED
        )
        if rests and wanted.get(seen.uid, True):
            ends[seen.uid] = seen.at
        wanted[seen.uid] = not rests
    last = {seen.uid: phase(seen.thing) for seen in runs}
    trainers = [seen for seen in pods if seen.labels.get(COMPONENT) == "trainer"]
    # One that finished just as its run was suspended ended an attempt, and not the run.
    newest = {seen.labels[RUN_UID]: seen.uid for seen in trainers}
    for seen in trainers:
        uid = seen.labels[RUN_UID]
        succeeded = last.get(uid) == seen.thing["status"].get("phase") == "Succeeded"
        if succeeded and newest[uid] == seen.uid:
            ends[uid] = min(ends[uid], seen.at)
    return ends


def phase(run: Json) -> str:
    """A run's phase; a new one is Pending."""
    return run.get("status", {}).get("phase") or "Pending"


def _of(seen: Seen, uid: str, kind: str, component: str = "") -> bool:
    return (
        seen.kind == kind
        and seen.labels.get(RUN_UID) == uid
        and component in {"", seen.labels.get(COMPONENT)}
    )


def _is(thing: Json, kind: str, component: str) -> bool:
    labels = thing["metadata"].get("labels", {})
    return thing["kind"] == kind and labels.get(COMPONENT) == component


def _working(thing: Json) -> bool:
    """Whether an object costs something: living pods, and what makes them."""
    match thing["kind"]:
        case "Pod":
            return thing["status"].get("phase") not in ENDED
        case "Deployment":
            return thing["spec"].get("replicas", 1) > 0
        case "Job":
            ended = thing.get("status", {}).get("conditions", [])
            done = any(c["type"] in {"Complete", "Failed"} and c["status"] == "True" for c in ended)
            return not done and not thing["spec"].get("suspend", False)
        case _:
            return False
