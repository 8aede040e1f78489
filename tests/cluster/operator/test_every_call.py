"""A call of the API server fails, whichever it is: the run comes to the same end (scenario A2).

A life without faults says how many calls one takes. Then one run for every call and every fault
lives in a namespace of its own, all of them under one operator, and each must end as that one did.
`make test-chaos` takes every call; otherwise a sample is taken.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.ground.api import Api
from tests.cluster.ground.controlplane import ControlPlane
from tests.cluster.ground.faultproxy import FaultProxy
from tests.cluster.ground.faults import Answer, Call, Drop, Fault, all_but_watches
from tests.cluster.ground.podlife import finishes
from tests.cluster.ground.podplayer import PodPlayer
from tests.cluster.operator import harness
from tests.cluster.operator.conftest import Start
from tests.cluster.operator.harness import Answers, phase

from watercolour_operator import names

Json = dict[str, Any]

FAULTS: dict[str, Fault] = {
    "429": Answer(429, retry_after=1),
    "500": Answer(500),
    "500 after": Answer(500, after=True),
    "no answer": Drop(after=True),
}
#: Of every so many calls one is taken, unless all are asked for.
SAMPLE = 9
ALL = os.environ.get("WATERCOLOUR_CHAOS") == "all"
#: Lives at the same time.
AT_ONCE = 24
#: Seconds that the trainer takes: long enough for every part to be there before it ends.
TRAINS = 2.0


@dataclass(frozen=True)
class Case:
    """A fault at one call of one run's life."""

    number: int
    fault: str
    namespace: str

    @property
    def run(self) -> str:
        return f"call-{self.number}"


@pytest.fixture
def operator(
    start: Start, control_plane: ControlPlane, proxy: FaultProxy, namespace: str, tmp_path: Path
) -> None:
    """One operator for the whole cluster, behind the proxy."""
    token = control_plane.token_of(namespace, "operator", cluster_admin=True)
    start(
        proxy.kubeconfig(token, tmp_path / "through"),
        namespaces="",
        lease_seconds="30",
        api_per_second="500",
    )


def test_a_run_ends_alike_whichever_call_fails(
    api: Api,
    namespace: str,
    all_pods: PodPlayer,
    answers: Answers,
    operator: None,
    proxy: FaultProxy,
) -> None:
    undisturbed = Case(0, "none", namespace)
    _begin(undisturbed, api, all_pods, answers)
    expected = _end(undisturbed, api)
    calls = sum(1 for call in proxy.calls if _of(namespace)(call))
    assert calls > 40, "a life takes more calls than this"
    cases = list(_cases(namespace, calls))
    others: list[str] = []
    for batch in _batches(cases, AT_ONCE):
        for case in batch:
            _namespace(api, case.namespace)
            proxy.inject(FAULTS[case.fault], _of(case.namespace), at=case.number)
            _begin(case, api, all_pods, answers)
        for case in batch:
            found = _end(case, api)
            if found != expected:
                differing = {key: found[key] for key in found if found[key] != expected[key]}
                others.append(f"{case.fault} at call {case.number}: {differing}")
        for case in batch:
            api.delete(names.KIND, case.run, case.namespace)
            api.delete("Namespace", case.namespace)
        proxy.clear()
    api.delete(names.KIND, undisturbed.run, namespace)
    assert others == [], expected


def _cases(namespace: str, calls: int) -> Iterator[Case]:
    """Every fault at every call, or a sample in which each fault has its turn."""
    for number in range(1, calls + 1):
        for turn, fault in enumerate(FAULTS):
            if ALL or (number % SAMPLE == 0 and (number // SAMPLE) % len(FAULTS) == turn):
                yield Case(number, fault, f"{namespace}-{number}-{turn}")


def _batches(cases: Sequence[Case], size: int) -> Iterator[Sequence[Case]]:
    every = iter(cases)
    while batch := list(itertools.islice(every, size)):
        yield batch


def _of(namespace: str) -> Any:
    """Calls in a namespace other than watches and the operator's Lease."""

    def matches(call: Call) -> bool:
        own = call.namespace == namespace and call.resource != "leases"
        return own and all_but_watches(call)

    return matches


def _namespace(api: Api, name: str) -> None:
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    api.until_one("ServiceAccount", "default", name)


def _begin(case: Case, api: Api, pods: PodPlayer, answers: Answers) -> None:
    answers.say(case.run, "trainer", "/progress", {"step": 1, "steps": 3})
    trainer = {names.COMPONENT: "trainer"}
    pods.script(case.namespace, finishes(0, after=TRAINS), labels=trainer)
    harness.volume(api, case.namespace, case.run)
    # Without a GPU: there are more runs than the ground has of those.
    api.create(harness.run(case.run, trainer={"steps": 3}), case.namespace)


def _end(case: Case, api: Api) -> Json:
    """What the run came to, without what may differ: times, figures, names, uids."""
    run = api.until_one(
        names.KIND,
        case.run,
        case.namespace,
        lambda found: phase(found) == "Succeeded",
        timeout=180,
        what=f"{case.fault} at call {case.number}: the run is Succeeded",
    )
    status = run["status"]
    return {
        "jobs": [job["metadata"]["name"] for job in api.list("Job", case.namespace)]
        == [f"{case.run}-trainer-1"],
        "deployments": api.list("Deployment", case.namespace),
        "attempts": [
            {key: attempt.get(key) for key in ("number", "reason", "counted", "resumed")}
            for attempt in status["attempts"]
        ],
        "conditions": {
            found["type"]: (found["status"], found["reason"]) for found in status["conditions"]
        },
        "failure": status.get("lastFailure"),
    }


@pytest.mark.parametrize("number", range(1, 31) if ALL else (1, 8, 15))
def test_an_operator_starts_whichever_call_fails(
    number: int, start: Start, proxy: FaultProxy, through_proxy: Path, story: harness.Story
) -> None:
    faults = itertools.cycle(FAULTS.values())
    fault = next(itertools.islice(faults, number, None))
    proxy.inject(fault, all_but_watches, at=number)
    start(through_proxy)
    story.create()
    story.finish(story.train())
    assert story.jobs() == ["peonies-trainer-1"]
