"""One run, disturbed in every way that a cluster knows, told in order; it ends as if nothing were.

Each test finds the run as the one before left it.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cluster.ground import processes
from tests.cluster.node import cluster, run
from tests.cluster.node.cluster import Cluster
from tests.cluster.node.place import Place
from tests.node.conftest import Json, Space, restricted
from tests.node.lives import Run, ready, step

STEPS = 12
EVERY = 2  # steps between two checkpoints
PARTS = ("trainer", "env", "renderers", "scorer")
SECRET = "hf_NobodyButTheTrainerKnowsThis0"

#: Writes until nothing fits any more.
FILL = """
import errno
block = bytes(1 << 20)
with open("/artifacts/full", "wb", buffering=0) as file:
    while True:
        try:
            file.write(block)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            if len(block) == 1:
                break
            block = block[: len(block) // 2]
"""
#: Reads what a process of the pod's user can read of all processes but itself: command lines and
#: variables. Prints the places that hold the word on standard input.
LOOK = """
import glob, os, sys
word = sys.stdin.buffer.read()
for file in glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/[0-9]*/environ"):
    if file.split("/")[2] != str(os.getpid()):
        try:
            held = open(file, "rb").read()
        except OSError:
            continue
        if word in held:
            print(file)
for folder, _, files in os.walk("/tmp"):
    for name in files:
        try:
            held = open(os.path.join(folder, name), "rb").read()
        except OSError:
            continue
        if word in held:
            print(os.path.join(folder, name))
"""


@pytest.fixture(scope="module")
def garden(release: Cluster) -> Iterator[Space]:
    """The namespace of the run, with its Secret."""
    for made in restricted(release):
        made.apply(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "hub"},
                "stringData": {"token": SECRET},
            }
        )
        yield made


@pytest.fixture(scope="module")
def story(garden: Space) -> Run:
    return Run(garden, "storm")


def makes_a_step(story: Run) -> Json:
    """The run's status once it is a step further than now."""
    now = step(story.status())
    return story.until("a step further", lambda found: step(found) > now)


def alike(story: Run) -> set[str]:
    """The pods of the run that never come and go with demand, by uid."""
    return {
        pod["metadata"]["uid"] for part in ("trainer", "env", "scorer") for pod in story.pods(part)
    }


def test_run_with_a_secret_trains(story: Run) -> None:
    story.apply(
        STEPS,
        every=EVERY,
        model={"tokenSecretRef": {"name": "hub"}},
        restartPolicy={"maxRestarts": 20},
    )
    story.until("running", lambda found: step(found) >= 1)


@pytest.mark.parametrize("part", PARTS)
def test_no_part_but_the_trainer_knows_the_secret(story: Run, part: str) -> None:
    """In variables, command lines, scratch files and logs."""
    garden = story.space
    pods = [pod for pod in story.pods(part) if ready(pod)]
    assert pods
    for pod in pods:
        name = pod["metadata"]["name"]
        told = garden.kubectl("exec", "-i", name, "--", "python", "-c", LOOK, stdin=SECRET)
        # Its own process and those that it starts; nothing gets it as an argument or a file.
        places = [each for each in told.splitlines() if part != "trainer" or "/environ" not in each]
        assert places == [], name
        assert SECRET not in garden.kubectl("logs", name)
    if part == "trainer":
        name = pods[0]["metadata"]["name"]
        told = garden.kubectl("exec", "-i", name, "--", "python", "-c", LOOK, stdin=SECRET)
        assert "/proc/1/environ" in told, "the test would not see it if it were there"


def test_secret_stands_in_no_object_and_no_operators_log(story: Run) -> None:
    garden = story.space
    kinds = "wcr,pods,jobs,deployments,replicasets,configmaps,events,services"
    assert SECRET not in garden.kubectl("get", kinds, "-o", "yaml")
    operator = ["-n", run.SYSTEM, "-l", "app.kubernetes.io/component=operator"]
    assert SECRET not in garden.kubectl("logs", *operator, "--tail=-1")
    (pod,) = garden.get("pods", "", *operator)["items"]
    look = ["exec", "-n", run.SYSTEM, "-i", pod["metadata"]["name"], "--", "python", "-c", LOOK]
    assert garden.kubectl(*look, stdin=SECRET) == ""


@pytest.mark.parametrize("daemon", ["kubelet", "kube-apiserver"])
def test_daemons_end_disturbs_no_run(story: Run, place: Place, daemon: str) -> None:
    before, pods = cluster.daemon(place, daemon), alike(story)
    assert before
    os.kill(before, signal.SIGKILL)
    assert processes.wait_until(lambda: cluster.daemon(place, daemon) not in {None, before}, 60)

    def answers() -> bool:
        return story.space.kubectl("get", "--raw", "/readyz", check=False) == "ok"

    assert processes.wait_until(answers, 120)
    found = makes_a_step(story)
    assert len(found["attempts"]) == 1
    assert pods <= alike(story)


def test_new_release_of_the_operator_takes_over_a_run(story: Run) -> None:
    garden, pods = story.space, alike(story)
    label = "app.kubernetes.io/component=operator"
    where = ["pods", "-n", run.SYSTEM, "-l", label, "-o", "jsonpath={.items[*].metadata.uid}"]
    before = garden.kubectl("get", *where)
    told = garden.kubectl("get", "wcr", story.name, "-o", "jsonpath={.spec}")
    run.install(garden.cluster, print, "--set", "operator.pollSeconds=3")
    after = garden.kubectl("get", *where)
    assert before not in after, "the operator was not replaced"
    found = makes_a_step(story)
    assert len(found["attempts"]) == 1
    assert pods <= alike(story)
    assert garden.kubectl("get", "wcr", story.name, "-o", "jsonpath={.spec}") == told


def test_full_disk_keeps_the_last_checkpoint_and_room_ends_it(story: Run) -> None:
    garden = story.space
    found = story.until("at a checkpoint", lambda found: step(found) > EVERY)
    trainer = story.pods("trainer")[0]["metadata"]["name"]
    garden.kubectl("exec", trainer, "--", "python", "-c", FILL)
    full = story.until(
        "out of room", lambda now: any(one.get("reason") == "DiskFull" for one in now["attempts"])
    )
    assert full["phase"] != "Failed"
    free(story)
    later = story.until(
        "going on",
        lambda now: len(now["attempts"]) > len(found["attempts"]) and step(now) > step(full),
    )
    last = later["attempts"][-1]
    assert last["resumed"] is True
    assert last["firstStep"] >= EVERY


def free(story: Run) -> None:
    """Remove what fills the claim, from a pod beside the trainer's."""
    garden = story.space
    program = ["python", "-c", "import os; os.remove('/artifacts/full')"]
    claim = story.status()["artifacts"]["claim"]
    garden.apply(run.beside(garden.cluster, "broom", claim, program, writes=True))
    garden.wait("pod/broom", "jsonpath={.status.phase}=Succeeded", 180)


def test_disturbed_run_succeeds_and_leaves_its_report(
    story: Run, tmp_path: Path, say: Callable[[str], None]
) -> None:
    began = time.monotonic()
    found = story.until("succeeded", lambda found: found["phase"] == "Succeeded")
    say(f"succeeded {time.monotonic() - began:.0f} s after the last disturbance")
    assert step(found) == STEPS
    folder = run.fetch(story.space.cluster, story.space.name, story.name, tmp_path)
    assert "<html" in (folder / "report.html").read_text()
    everything = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert SECRET.encode() not in everything
