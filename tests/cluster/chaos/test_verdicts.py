"""The judges of a storm see each kind of wrong, and find nothing where nothing is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.chaos import verdicts
from tests.cluster.chaos.verdicts import Outage
from tests.cluster.chaos.witness import Seen

Json = dict[str, Any]


def run(phase: str = "Succeeded", **status: Any) -> Json:
    conditions = [{"type": {"Succeeded": "Complete"}.get(phase, phase), "status": "True"}]
    told = {
        "phase": phase,
        "conditions": conditions,
        "attempts": [{"number": 1, "job": "j1"}],
        "observedGeneration": 1,
        "lastFailure": {"reason": "TrainerFailed"},
    }
    suspend = {"suspend": True} if phase == "Suspended" else {}
    metadata = {"name": "peonies", "uid": "r", "generation": 1}
    return {"metadata": metadata, "spec": suspend, "status": told | status}


def thing(kind: str, name: str, component: str = "", owner: str = "r", **more: Any) -> Json:
    labels = {verdicts.RUN_UID: owner, verdicts.COMPONENT: component, verdicts.ATTEMPT: "1"}
    return {"kind": kind, "metadata": {"name": name, "uid": name, "labels": labels}, **more}


def pod(name: str, phase: str, component: str = "trainer", owner: str = "r") -> Json:
    return thing("Pod", name, component, owner, status={"phase": phase})


def seen(at: float, thing: Json, gone: bool = False) -> Seen:
    return Seen(at, thing.get("kind", "WatercolourRun"), gone, thing)


HISTORY = [
    seen(1, thing("Job", "j1")),
    seen(2, pod("t1", "Running")),
    seen(3, pod("t1", "Succeeded")),
]


def test_clean_run_is_clean() -> None:
    left = [pod("t1", "Succeeded"), thing("Deployment", "d", spec={"replicas": 0})]
    assert verdicts.leaked([run()], left) == []
    assert verdicts.contradictions([run()], left, HISTORY) == []
    assert verdicts.duplicates([each for each in HISTORY if each.kind == "Pod"]) == []


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (thing("ConfigMap", "c", owner="gone"), "ConfigMap c is left of a run that is gone"),
        (pod("s", "Running", "scorer"), "Pod s works for a run that is Succeeded"),
        (thing("Deployment", "d", spec={"replicas": 1}), "Deployment d works"),
        (thing("Job", "j", spec={}), "Job j works"),
    ],
)
def test_leak_is_named(left: Json, words: str) -> None:
    [found] = verdicts.leaked([run()], [left])
    assert found.startswith(words)


def test_second_trainer_is_seen_even_while_the_first_is_being_ended() -> None:
    ending = pod("t1", "Running")
    ending["metadata"]["deletionTimestamp"] = "now"
    history = [seen(1, pod("t1", "Running")), seen(2, ending), seen(3, pod("t2", "Pending"))]
    assert verdicts.duplicates(history) == ["trainers at the same time: t1, t2"]
    between = [
        seen(1, pod("t1", "Running")),
        seen(2, ending, gone=True),
        seen(3, pod("t2", "Pending")),
    ]
    assert verdicts.duplicates(between) == []
    others = [seen(1, pod("t1", "Running")), seen(2, pod("t2", "Running", owner="another"))]
    assert verdicts.duplicates(others) == []


BOTH = [{"type": kind, "status": "True"} for kind in ("Complete", "Failed")]


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (run("Running"), "Running is no end"),
        (run("Failed"), "Failed, but t1 succeeded"),
        (run("Failed", lastFailure=None), "Failed without a last failure"),
        (run(conditions=[]), "condition Complete"),
        (run(conditions=BOTH), "condition Failed"),
        (run(attempts=[]), "attempts of Jobs {}, Jobs {'j1': 1}"),
        (run(attempts=[{"number": 1, "job": "another"}]), "attempts of Jobs {'another': 1}"),
        (run(attempts=[{"number": 2, "job": "j1"}]), "attempts [2]"),
        (run(observedGeneration=0), "a generation that it has not seen"),
        (run(renderers={"replicas": 2}), "renderers that do not exist"),
    ],
)  # fmt: skip
def test_contradiction_is_named(told: Json, words: str) -> None:
    assert any(words in found for found in verdicts.contradictions([told], [], HISTORY))


def test_success_without_a_trainer_that_succeeded_is_a_contradiction() -> None:
    history = [seen(1, thing("Job", "j1")), seen(2, pod("t1", "Failed"))]
    assert verdicts.contradictions([run()], [], history) == [
        "run peonies: Succeeded, but no trainer did"
    ]


def test_suspension_that_nobody_asked_for_is_a_contradiction() -> None:
    told = run("Suspended")
    told["spec"] = {}
    [found] = verdicts.contradictions([told], [], HISTORY)
    assert "nobody asked" in found


def test_two_jobs_of_one_attempt_are_seen() -> None:
    history = [*HISTORY, seen(4, thing("Job", "j2"))]
    found = verdicts.contradictions([run()], [], history)
    assert any("two Jobs of one attempt" in each for each in found)


TAKEN = [
    seen(0, run("Starting", attempts=[{"number": 1}])),
    seen(1, thing("Job", "j1")),
    seen(12, thing("Job", "j1"), gone=True),
]


def test_job_that_was_taken_away_in_an_outage_is_held_against_nobody() -> None:
    outages = [Outage(2, 10), Outage(9, 11)]
    unknown = verdicts.untold({"j1"}, TAKEN, outages)
    assert unknown == {"j1"}
    told = run("Failed", attempts=[{"number": 1}])
    assert verdicts.contradictions([told], [], TAKEN, unknown) == []
    assert verdicts.contradictions([told], [], TAKEN) != []


@pytest.mark.parametrize(
    ("taken", "history", "outages"),
    [
        ({"j1"}, TAKEN, [Outage(2, 7)]),
        (set[str](), TAKEN, [Outage(2, 11)]),
        ({"j1"}, [*TAKEN, seen(1, run("Starting"))], [Outage(2, 11)]),
    ],
    ids=["there was time to tell", "the operator took it away", "a status named it"],
)
def test_job_that_could_be_known_is(
    taken: set[str], history: list[Seen], outages: list[Outage]
) -> None:
    assert verdicts.untold(taken, history, outages) == frozenset()


def test_scorer_that_outlives_its_run_is_timed_without_the_outages() -> None:
    scorer = pod("s", "Running", "scorer")
    pods = [seen(0, scorer), seen(10, pod("t1", "Succeeded")), seen(40, scorer, gone=True)]
    runs = [seen(0, run("Running")), seen(12, run())]
    assert verdicts.overstays(runs, pods, []) == {"s": 30.0}
    # The operator was away, and meanwhile and after it the machine was out of breath.
    outages = [Outage(39, 99), Outage(20, 28), Outage(5, 15), Outage(26, 30), Outage(21, 22)]
    assert verdicts.overstays(runs, pods, outages) == {"s": 30.0 - 5 - 10 - 1}


def test_attempt_that_finished_as_its_run_was_suspended_is_not_the_end_of_the_run() -> None:
    scorer = pod("s", "Running", "scorer")
    pods = [
        seen(5, pod("t1", "Succeeded")),
        seen(30, scorer),
        seen(40, pod("t2", "Succeeded")),
        seen(42, scorer, gone=True),
    ]
    runs = [seen(0, run("Running")), seen(41, run())]
    assert verdicts.overstays(runs, pods, []) == {"s": 2.0}


def test_nobody_writes_once_a_renewal_is_too_long_ago() -> None:
    lease = thing("Lease", "operator")
    renewed = [seen(at, lease) for at in (0, 1, 4, 12, 13)]
    assert verdicts.unheld(renewed, 4.0) == [Outage(8, 12)]


def test_scorer_of_a_run_that_goes_on_is_not_late() -> None:
    scorer = pod("s", "Running", "scorer")
    asleep = [seen(0, scorer), seen(40, scorer, gone=True)]
    assert verdicts.overstays([seen(0, run("Running"))], asleep, []) == {}


def test_run_that_was_resumed_ends_when_it_ends() -> None:
    suspended = run("Running")
    suspended["spec"] = {"suspend": True}
    runs = [
        seen(0, run("Running")),
        seen(5, suspended),
        seen(8, run("Running")),
        seen(20, run("Failed")),
    ]
    scorer = pod("s", "Running", "scorer")
    pods = [seen(0, scorer), seen(21, scorer, gone=True)]
    assert verdicts.overstays(runs, pods, []) == {"s": 1.0}
