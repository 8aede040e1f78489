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
from contextlib import ExitStack
from pathlib import Path
from statistics import fmean

import pytest
import yaml
from tests.browser.sketches import HONEST, sketch
from tests.cluster.ground import binaries, processes
from tests.cluster.node import cluster, run
from tests.cluster.node.cluster import ROOT, Cluster
from tests.cluster.node.daemons import SANDBOX
from tests.cluster.node.place import ADDRESS, DNS, OUTSIDE
from tests.node.conftest import Json, Space, restricted
from tests.node.lives import Run, ready, step

from watercolour.api import load

NAME = "tiny"
STEPS = 24  # enough for all that is done to it meanwhile
IDLE_MIB = 1.2 * 1024  # the bound on a node without runs
METADATA = "169.254.169.254"  # where a cloud's nodes tell who they are
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


def test_idle_node_with_the_operator_is_small(garden: Space) -> None:
    """Node, control plane, operator and the profile's installer, before the first run."""
    if garden.cluster.place is None:
        pytest.skip("the memory of KUBECONFIG's cluster is not ours")
    held = cluster.memory(garden.cluster.place)
    assert sum(held.values()) <= IDLE_MIB, held


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


def listening(pods: list[Json]) -> list[str]:
    """Where these pods say that they listen."""
    return [
        f"{pod['status']['podIP']}:{port['containerPort']}"
        for pod in pods
        for port in pod["spec"]["containers"][0].get("ports", [])
    ]


@pytest.fixture
def ways_out(garden: Space) -> Iterator[list[str]]:
    """Addresses that a pod without walls reaches, of every kind that it can: TCP and UDP answer."""
    where = ["service", "kubernetes", "-n", "default", "-o", "jsonpath={.spec.clusterIP}"]
    neighbour = garden.pod("serve", ":8080")
    garden.wait(f"pod/{neighbour}", "condition=Ready")
    ways = [f"{garden.kubectl('get', *where)}:443", f"{DNS}:53"]
    ways.append(f"{garden.get('pod', neighbour)['status']['podIP']}:8080")
    node = garden.cluster.place
    if node is None:
        yield ways
        return
    probe = str(binaries.provide("probe", print) / "probe")
    inside = ["nsenter", f"--net=/proc/{node.pid.read_text().strip()}/ns/net"]
    metadata = ["ip", "addr", "add", METADATA, "dev", "lo"]
    subprocess.run([*inside, *metadata], check=True)
    served = [[*inside, probe, "serve", f"{METADATA}:80"], [probe, "serve", f"{OUTSIDE}:8080"]]
    with ExitStack() as ends:
        for command in served:
            ends.callback(subprocess.Popen(command).kill)
        yield [
            *ways,
            *(f"{ADDRESS}:6443", f"{ADDRESS}:10250"),
            *(f"{METADATA}:80", f"{OUTSIDE}:8080"),
        ]
        metadata[2] = "del"
        subprocess.run([*inside, *metadata], check=True)


def test_attacker_in_a_renderers_place_reaches_nobody(
    garden: Space, ways_out: list[str], say: Callable[[str], None]
) -> None:
    """The same pod, labels and walls, with another's program in it."""
    renderer = pods(garden, "renderers")[0]
    free = garden.pod("pause")
    garden.wait(f"pod/{free}", "condition=Ready")
    answering = [way for way in ways_out if way.endswith((":8080", ":80"))]
    dialled = garden.probe(free, "dial", *ways_out)
    assert dialled.count(" open\n") == len(ways_out), dialled
    assert garden.probe(free, "udp", *answering).count(" open\n") == len(answering)
    # Who is behind walls of his own cannot be reached by the free one either.
    label = ["-n", run.SYSTEM, "-l", "app.kubernetes.io/component=operator"]
    others = listening(garden.get("pods", "", *label)["items"])
    for part in ("trainer", "env", "scorer", "renderers"):
        found = listening(pods(garden, part))
        assert found, part
        others += found
    spec, kubernetes = renderer["spec"], ways_out[0]
    labels = {**renderer["metadata"]["labels"]}
    labels.pop("pod-template-hash", None)
    imposter: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "imposter", "labels": labels},
        "spec": {
            "automountServiceAccountToken": False,
            "securityContext": spec["securityContext"],
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": "renderers",
                    "image": SANDBOX,
                    "imagePullPolicy": "Never",
                    "args": ["watch", kubernetes],
                    "resources": {"limits": {"cpu": "100m", "memory": "64Mi"}},
                    "securityContext": spec["containers"][0]["securityContext"],
                }
            ],
        },
    }
    garden.apply(imposter)
    try:
        garden.wait("pod/imposter", "condition=Ready", 120)
        targets = [*ways_out, *others]
        shut = processes.wait_until(
            lambda: " open\n" not in garden.probe("imposter", "dial", *targets), 60
        )
        assert shut, garden.probe("imposter", "dial", *targets)
        datagrams = garden.probe("imposter", "udp", *answering)
        assert " open\n" not in datagrams, datagrams
        raw = dict(
            line.split(maxsplit=1)
            for line in garden.probe("imposter", "echo", others[0].partition(":")[0]).splitlines()
            if line.startswith(("frames", "packets", "echo"))
        )
        assert (raw["frames"], raw["packets"]) == ("refused", "refused")
        assert raw["echo"] != "open"
        resolved = garden.probe("imposter", "lookup", "kubernetes.default.svc.cluster.local")
        assert kubernetes.partition(":")[0] not in resolved.split(), resolved
        told = [line.split() for line in garden.kubectl("logs", "imposter").splitlines()]
    finally:
        garden.kubectl("delete", "pod", "imposter")
    assert told[-1][1] != "open", told
    say(f"a new pod's network was open for {float(told[-1][0]) if len(told) > 1 else 0:.2f} s")


def test_renderer_of_ours_without_walls_paints_nothing(garden: Space) -> None:
    """Its canary gets through, so it takes no sketch and says why."""
    renderer = garden.get("pod", pods(garden, "renderers")[0]["metadata"]["name"])
    kept = ("containers", "volumes", "securityContext", "automountServiceAccountToken")
    spec = {name: value for name, value in renderer["spec"].items() if name in kept}
    open_one = {"name": "open"}
    garden.apply({"apiVersion": "v1", "kind": "Pod", "metadata": open_one, "spec": spec})
    ask = (
        "import json, sys, urllib.error, urllib.request as u\n"
        "given = sys.stdin.buffer.read() or None\n"
        "request = u.Request('http://127.0.0.1:8080' + sys.argv[1], given,"
        " {'Content-Type': 'application/json'})\n"
        "try: answer = u.urlopen(request, timeout=60)\n"
        "except urllib.error.HTTPError as refusal: answer = refusal\n"
        "print(json.dumps([answer.status, json.load(answer)]))\n"
    )

    def told(path: str, stdin: str = "") -> str:
        command = ["exec", "-i", "open", "--", "python", "-c", ask, path]
        return garden.kubectl(*command, stdin=stdin, check=False)

    try:
        garden.wait("pod/open", "jsonpath={.status.phase}=Running", 120)
        refuses = processes.wait_until(lambda: "NetworkPolicyNotEnforced" in told("/v1/load"), 120)
        assert refuses, told("/v1/load")
        code, answer = json.loads(told("/v1/render", json.dumps({"sketch": HONEST, "seed": 1})))
        assert code == 503, answer
        assert told("/readyz").startswith("[503")
    finally:
        garden.kubectl("delete", "pod", "open", "--wait=false")


def test_weakened_renderer_is_refused(garden: Space) -> None:
    manifest = yaml.safe_load((ROOT / "examples" / "cluster-tiny.yaml").read_text())
    manifest["metadata"]["name"] = "weak"
    override = {
        "spec": {"containers": [{"name": "renderers", "securityContext": {"privileged": True}}]}
    }
    manifest["spec"]["podTemplates"] = {"renderers": override}
    told = garden.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(manifest), check=False)
    assert "weak created" not in told, told


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
    gone = processes.wait_until(lambda: not garden.get("pods,jobs", "", *selector)["items"], 120)
    assert gone, garden.kubectl("get", "pods,jobs")
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
