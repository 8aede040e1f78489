"""What stands between a renderer and everything else, tried by an attacker, in pods.

A run trains meanwhile, so that all that could be reached is there.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import yaml
from tests.browser.sketches import HONEST
from tests.cluster.ground import binaries, processes
from tests.cluster.node import run
from tests.cluster.node.cluster import ROOT, Cluster
from tests.cluster.node.daemons import SANDBOX
from tests.cluster.node.place import ADDRESS, DNS, OUTSIDE
from tests.node.conftest import Json, Space, restricted
from tests.node.lives import Run, step

STEPS = 10_000  # it trains for as long as these tests take
METADATA = "169.254.169.254"  # where a cloud's nodes tell who they are


@pytest.fixture(scope="module")
def garden(release: Cluster) -> Iterator[Space]:
    """The namespace of the run."""
    yield from restricted(release)


@pytest.fixture(scope="module")
def story(garden: Space) -> Run:
    """A run that trains."""
    found = Run(garden, "walled")
    found.apply(STEPS)
    found.until("running", lambda status: step(status) >= 1)
    return found


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
    story: Run, ways_out: list[str], say: Callable[[str], None]
) -> None:
    """The same pod, labels and walls, with another's program in it."""
    garden = story.space
    renderer = story.pods("renderers")[0]
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
        found = listening(story.pods(part))
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


def test_renderer_of_ours_without_walls_paints_nothing(story: Run) -> None:
    """Its canary gets through, so it takes no sketch and says why."""
    garden = story.space
    renderer = garden.get("pod", story.pods("renderers")[0]["metadata"]["name"])
    kept = ("containers", "volumes", "securityContext", "automountServiceAccountToken")
    spec = {name: value for name, value in renderer["spec"].items() if name in kept}
    open_one = {"name": "open"}
    garden.apply({"apiVersion": "v1", "kind": "Pod", "metadata": open_one, "spec": spec})
    ask = (
        "import json, sys, urllib.error, urllib.request as u\n"
        "given = sys.stdin.buffer.read() or None\n"
        "request = u.Request(sys.argv[1], given,"
        " {'Content-Type': 'application/json'})\n"
        "try: answer = u.urlopen(request, timeout=60)\n"
        "except urllib.error.HTTPError as refusal: answer = refusal\n"
        "print(json.dumps([answer.status, json.load(answer)]))\n"
    )

    asker = run.beside(garden.cluster, "asker", "", ["sleep", "infinity"])
    asker["spec"]["volumes"] = asker["spec"]["containers"][0]["volumeMounts"] = []
    garden.apply(asker)
    garden.wait("pod/asker", "condition=Ready")

    def told(path: str, stdin: str = "") -> str:
        """From another pod: the renderer has shut itself into a network without interfaces."""
        url = f"http://{garden.get('pod', 'open')['status'].get('podIP')}:8080{path}"
        command = ["exec", "-i", "asker", "--", "python", "-c", ask, url]
        return garden.kubectl(*command, stdin=stdin, check=False)

    try:
        garden.wait("pod/open", "jsonpath={.status.phase}=Running", 120)
        refuses = processes.wait_until(lambda: "NetworkPolicyNotEnforced" in told("/v1/load"), 120)
        assert refuses, told("/v1/load")
        code, answer = json.loads(told("/v1/render", json.dumps({"sketch": HONEST, "seed": 1})))
        assert code == 503, answer
        assert told("/readyz").startswith("[503")
    finally:
        garden.kubectl("delete", "pod", "open", "asker", "--wait=false")


def test_weakened_renderer_is_refused(garden: Space) -> None:
    manifest = yaml.safe_load((ROOT / "examples" / "cluster-tiny.yaml").read_text())
    manifest["metadata"]["name"] = "weak"
    override = {
        "spec": {"containers": [{"name": "renderers", "securityContext": {"privileged": True}}]}
    }
    manifest["spec"]["podTemplates"] = {"renderers": override}
    told = garden.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(manifest), check=False)
    assert "weak created" not in told, told
