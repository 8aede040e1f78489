"""One run's life in a cluster, told in order: each test finds the run as the one before left it.

Nothing is played: our images, real Chromium under its own sandbox, policies that the kernel
enforces, a trainer that trains. What is asked here is what only a kubelet, a network and limits can
answer; everything else is asked of the operator without them (tests/cluster).
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean

import pytest
from tests.browser.sketches import HONEST, sketch
from tests.cluster.ground import processes
from tests.cluster.node import run
from tests.cluster.node.cluster import Cluster
from tests.node.conftest import Json, Space, restricted
from tests.node.lives import Run, ready, step

from watercolour.api import load

NAME = "tiny"
STEPS = 40  # enough for all that is done to it meanwhile
EVERY = 2  # steps between two checkpoints
BOMB = sketch("const all = []; for (;;) all.push(new Array(1e5).fill({ a: all.length }));")


@pytest.fixture(scope="module")
def garden(release: Cluster) -> Iterator[Space]:
    """The namespace of the run."""
    yield from restricted(release)


def until(garden: Space, what: str, holds: Callable[[Json], object]) -> Json:
    return Run(garden, NAME).until(what, holds)


def pods(garden: Space, component: str) -> list[Json]:
    return Run(garden, NAME).pods(component)


def render(garden: Space, renderer: Json, source: str, cpu: float = 60) -> tuple[int, Json]:
    """Ask one renderer for a painting, from the environment's pod: nobody else may."""
    ask = (
        "import json, sys, urllib.error, urllib.request as u\n"
        "request = u.Request(sys.argv[1], sys.stdin.buffer.read(),"
        " {'Content-Type': 'application/json'})\n"
        "try: answer = u.urlopen(request, timeout=600)\n"
        "except urllib.error.HTTPError as refusal: answer = refusal\n"
        "print(json.dumps([answer.status, json.load(answer)]))\n"
    )
    address = renderer["status"]["podIP"]
    job = {"sketch": source, "seed": 1, "deadline_s": 300, "cpu_budget_s": cpu}
    command = ["exec", "-i", pods(garden, "env")[0]["metadata"]["name"], "--", "python", "-c", ask]
    for _ in range(100):  # the trainer's own paintings come between
        told = garden.kubectl(*command, f"http://{address}:8080/v1/render", stdin=json.dumps(job))
        code, answer = json.loads(told)
        if code != 429:
            return code, answer
    pytest.fail("the renderer is busy for ever")


def test_applied_run_trains(garden: Space) -> None:
    Run(garden, NAME).apply(STEPS, every=EVERY)
    found = until(garden, "running", lambda found: step(found) >= 1)
    assert found["phase"] == "Running"
    assert {each["reason"] for each in found["conditions"] if each["type"].endswith("Ready")} <= {
        "Ready",
        "NotNeeded",
        "PodStarting",  # a second renderer
    }


def test_renderer_paints_in_chromiums_own_sandbox(garden: Space) -> None:
    renderer = painters(garden)[0]
    code, answer = render(garden, renderer, HONEST)
    assert code == 200, answer
    assert answer["paint_fraction"] > 0
    security = renderer["spec"]["containers"][0]["securityContext"]
    assert security["seccompProfile"]["type"] == "Localhost"
    told = garden.kubectl("exec", renderer["metadata"]["name"], "--", "cat", "/proc/1/status")
    kernel = dict(line.split(":\t", 1) for line in told.splitlines() if ":\t" in line)
    assert (kernel["Seccomp"], kernel["NoNewPrivs"], int(kernel["CapEff"], 16)) == ("2", "1", 0)
    arguments = renderer["spec"]["containers"][0]["args"]
    assert "--allow-unsandboxed" not in arguments


def test_memory_bomb_is_the_sketchs_fault_and_costs_nobody_else(garden: Space) -> None:
    """Another renderer paints meanwhile, and the same one afterwards."""
    until(garden, "with two renderers", lambda _: len(painters(garden)) == 2)
    hurt, other = painters(garden)
    with ThreadPoolExecutor() as threads:
        meanwhile = threads.submit(render, garden, other, HONEST)
        code, answer = render(garden, hurt, BOMB)
    assert (code, answer["violation"]["code"]) == (422, "sketch_oom"), answer
    for code, answer in (meanwhile.result(), render(garden, hurt, HONEST)):
        assert code == 200, answer
    after = garden.get("pod", hurt["metadata"]["name"])["status"]["containerStatuses"][0]
    assert after["restartCount"] == 0
    assert until(garden, "running", lambda found: found)["phase"] == "Running"


def painters(garden: Space) -> list[Json]:
    """The renderers that are ready."""
    return [each for each in pods(garden, "renderers") if ready(each)]


def test_no_pod_of_the_run_holds_a_token(garden: Space) -> None:
    for component in ("trainer", "env", "renderers", "scorer"):
        found = pods(garden, component)
        assert found, component
        for pod in found:
            name = pod["metadata"]["name"]
            # Builds leave an empty folder above it in some images.
            token = "/var/run/secrets/kubernetes.io"
            ls = garden.kubectl("exec", name, "--", "ls", token, check=False)
            assert "No such file" in ls, f"{name}: {ls}"


def test_deleted_trainer_goes_on_from_its_checkpoint(garden: Space) -> None:
    found = until(garden, "at a checkpoint", lambda found: step(found) > EVERY)
    trainer = pods(garden, "trainer")[0]["metadata"]["name"]
    garden.kubectl("delete", "pod", trainer, "--wait=false")
    found = until(
        garden,
        "further in a second attempt",
        lambda later: len(later["attempts"]) == 2 and step(later) > step(found),
    )
    first, second = found["attempts"]
    assert first["counted"] is False, first
    assert second["resumed"] is True, second
    assert second["firstStep"] >= EVERY


def test_suspended_run_holds_no_pod_and_goes_on(garden: Space) -> None:
    garden.kubectl("patch", "wcr", NAME, "--type=merge", "-p", '{"spec":{"suspend":true}}')
    before = until(garden, "suspended", lambda found: found["phase"] == "Suspended")
    selector = ["-l", f"watercolour.dev/run={NAME}"]
    gone = processes.wait_until(lambda: not garden.get("pods", "", *selector)["items"], 120)
    assert gone, garden.kubectl("get", "pods")
    garden.kubectl("patch", "wcr", NAME, "--type=merge", "-p", '{"spec":{"suspend":false}}')
    after = until(garden, "going on", lambda found: step(found) > step(before))
    assert after["attempts"][-1]["firstStep"] >= step(before)


def test_run_succeeds_and_its_scorer_goes_at_once(garden: Space) -> None:
    until(garden, "succeeded", lambda found: found["phase"] in {"Completing", "Succeeded"})
    label = f"watercolour.dev/run={NAME},watercolour.dev/component in (scorer,judge)"
    told = garden.kubectl("wait", "pod", "-l", label, "--for=delete", "--timeout=10s", check=False)
    assert "timed out" not in told, told
    found = until(garden, "succeeded", lambda found: found["phase"] == "Succeeded")
    assert step(found) == STEPS
    assert found["progress"]["reward"]["mean"] is not None


def test_report_comes_out_of_the_claim(garden: Space, tmp_path: Path) -> None:
    folder = run.fetch(garden.cluster, garden.name, NAME, tmp_path)
    assert load.run(folder / "run.yaml").spec.trainer.steps == STEPS
    assert "<html" in (folder / "report.html").read_text(), "the trainer left no report"
    subprocess.run([sys.executable, "-m", "watercolour.cli", "report", str(folder)], check=True)
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["steps"], summary["resumed"]) == (STEPS, True)
    with (folder / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    steps = [int(row["step"]) for row in rows]
    assert steps == sorted(set(steps)), "a step was counted twice"
    assert len(steps) == STEPS
    assert list(folder.glob("paintings/*/*.png"))
    rewards = [float(row["reward_adjusted"]) for row in rows if row["reward_adjusted"]]
    third = len(rewards) // 3
    assert fmean(rewards[-third:]) > fmean(rewards[:third]), "no learning is to be seen"
