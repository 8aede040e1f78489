"""Whatever happens to the operator, the API, the pods and the runs: in the end the truth is told.

CHAOS_RUNS (30) and CHAOS_SEED (by chance) choose the storm; `make test-chaos` takes 300 runs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random, SystemRandom

import pytest
from tests.cluster.chaos import verdicts
from tests.cluster.chaos.pulse import Pulse
from tests.cluster.chaos.storm import LEASE, Storm
from tests.cluster.chaos.verdicts import ENDED, Json, Outage, phase
from tests.cluster.chaos.witness import Witness
from tests.cluster.ground.api import Api
from tests.cluster.ground.controlplane import ControlPlane
from tests.cluster.ground.faultproxy import FaultProxy
from tests.cluster.ground.podplayer import PodPlayer
from tests.cluster.operator import harness

RUNS = int(os.environ.get("CHAOS_RUNS", "30"))
AT_ONCE = 12  # runs that live at the same time; the fake nodes hold 16 GPUs
SETTLED_WITHIN = 300.0  # seconds after the storm
KINDS = ("Pod", "Job", "Deployment", "Service", "ConfigMap", "NetworkPolicy", "ServiceAccount")


@pytest.fixture
def storm(
    control_plane: ControlPlane,
    crd_installed: None,
    namespace: str,
    pods: PodPlayer,
    proxy: FaultProxy,
    tmp_path: Path,
) -> Iterator[Storm]:
    seed = int(os.environ.get("CHAOS_SEED") or SystemRandom().randrange(10**6))
    print(f"CHAOS_SEED={seed}")
    api = control_plane.api
    with (
        Witness(api, namespace) as witness,
        Pulse(api, namespace, witness) as pulse,
        harness.answering() as answers,
    ):
        storm = Storm(
            control_plane, proxy, pods, answers, witness, pulse, namespace, tmp_path, Random(seed)
        )
        yield storm
        print(storm.stop()[-20_000:])
        witness.write(tmp_path / "witness.jsonl")
        print(f"all that was seen: {tmp_path}/witness.jsonl")


def told(findings: list[str]) -> str:
    """Findings as a text, which a failed test shows whole."""
    return "\n".join(findings)


def living(api: Api, namespace: str) -> int:
    return sum(phase(run) not in ENDED for run in api.list("WatercolourRun", namespace))


def settled(storm: Storm) -> None:
    """Return once each run has ended or is suspended; whoever is suspended may go on first."""
    api, namespace = storm.api, storm.namespace
    for run in api.list("WatercolourRun", namespace):
        if run["spec"].get("suspend") and storm.chance.random() < 0.5:
            nothing = {"spec": {"suspend": False}}
            api.patch("WatercolourRun", run["metadata"]["name"], nothing, namespace)

    def at_rest(run: Json) -> bool:
        return phase(run) in ENDED or (
            bool(run["spec"].get("suspend")) and phase(run) == "Suspended"
        )

    give_up = time.monotonic() + SETTLED_WITHIN
    while True:
        storm.tend()
        try:
            api.until(
                "WatercolourRun",
                lambda runs: all(at_rest(run) for run in runs),
                namespace,
                timeout=5.0,
                what="every run has ended or is suspended",
            )
            return
        except AssertionError:
            if time.monotonic() > give_up:
                raise


def objects(api: Api, namespace: str) -> list[Json]:
    """Everything in the namespace that a run may have made."""
    return [{"kind": kind, **each} for kind in KINDS for each in api.list(kind, namespace)]


def unheld(witness: Witness) -> list[Outage]:
    """When no operator held the Lease for long enough to write."""
    leases = [seen for seen in witness.of("Lease") if seen.name == LEASE]
    return verdicts.unheld(leases, float(harness.FLAGS["lease-seconds"]) * 2 / 3)


def test_storm_leaves_nothing_behind_and_tells_the_truth(storm: Storm) -> None:
    storm.begin()
    storm.rise()
    begun = time.monotonic()
    for number in range(RUNS):
        storm.add_run(f"run-{number:03}")
        storm.act()
        while living(storm.api, storm.namespace) >= AT_ONCE:
            storm.act()
    storm.calm()
    struck = len(storm.proxy.seen(lambda call: bool(call.fault)))
    print(f"storm of {time.monotonic() - begun:.0f} s: {dict(sorted(storm.done.items()))}")
    print(f"{struck} of {len(storm.proxy.calls)} calls struck")
    settled(storm)
    api, namespace, witness = storm.api, storm.namespace, storm.witness

    outages = [*storm.outages, *storm.pulse.stalls, *unheld(witness)]
    unknown = verdicts.untold(storm.taken, witness.seen, outages)
    print(f"{len(unknown)} Jobs were taken away before anybody could tell of them")

    def wrong() -> list[str]:
        runs, there = api.list("WatercolourRun", namespace), objects(api, namespace)
        return [
            *verdicts.leaked(runs, there),
            *verdicts.contradictions(runs, there, witness.seen, unknown),
        ]

    # What is left goes with the garbage collector and the grace periods of pods, and the operator
    # tells of each pod when it is gone.
    give_up = time.monotonic() + 60
    while (found := wrong()) and time.monotonic() < give_up:
        time.sleep(0.5)
        storm.tend()
    assert witness.blind == []
    assert told(found) == ""
    assert told(verdicts.duplicates(witness.of("Pod"))) == ""
    stood = [round(each.end - each.begin, 1) for each in storm.pulse.stalls]
    print(f"{storm.pulse.beats} beats of the control; it stood still for {stood} s")
    outages = [*storm.outages, *storm.pulse.stalls, *unheld(witness)]
    overstays = verdicts.overstays(witness.of("WatercolourRun"), witness.of("Pod"), outages)
    print(f"scorers outlived their runs by {sorted(overstays.values())[-5:]} s at most")
    assert {pod: late for pod, late in overstays.items() if late > verdicts.OVERSTAY} == {}
    ends = [phase(run) for run in api.list("WatercolourRun", namespace)]
    print(
        f"{len(ends)} of {RUNS} runs are left: {ends.count('Succeeded')} succeeded, "
        f"{ends.count('Failed')} failed, {ends.count('Suspended')} suspended"
    )
    assert storm.pods.problems == []
