"""docs/operations.md: nothing is missing, nothing points nowhere, and its commands work."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel
from tests.chart import runs
from tests.chart.conftest import CHART, ROOT
from tests.cluster.ground.api import Api
from tests.cluster.ground.clusters import Binaries
from tests.cluster.ground.controlplane import ControlPlane
from tests.cluster.ground.podplayer import PodPlayer

from watercolour.api import load, part
from watercolour.api.docs import meanings
from watercolour.api.reasons import Reason
from watercolour.api.spec import RunSpec
from watercolour.api.status import Status

PAGE = (ROOT / "docs" / "operations.md").read_text()
MEANINGS = meanings(Reason)
SECTIONS = dict(re.findall(r"^#### (\w+)\n(.*?)(?=^##)", PAGE + "\n##", re.M | re.S))
QUIET = dict(
    re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE.partition("that need nothing\n\n")[2], re.M)
)


@pytest.mark.parametrize("reason", [reason.value for reason in Reason])
def test_every_reason_is_explained(reason: str) -> None:
    if reason in QUIET:
        assert reason not in SECTIONS
        assert QUIET[reason] == MEANINGS[reason]
        return
    section = SECTIONS.get(reason)
    assert section, f"docs/operations.md has no section #### {reason}"
    for word in ("Seen", "Means", "Do"):
        assert re.search(rf"^\*\*{word}\.\*\* \S", section, re.M), f"{reason}: {word}"
    assert re.search(r"^```console\n\$ ", section, re.M), f"{reason}: no command to look at"


def test_no_section_is_of_a_reason_that_does_not_exist() -> None:
    assert {*SECTIONS, *QUIET} == set(MEANINGS)


def anchors(page: Path) -> set[str]:
    """What a link into a page may name."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", ["operations.md", "cluster.md"])
def test_every_link_leads_somewhere(name: str) -> None:
    page = ROOT / "docs" / name
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        path, _, anchor = target.partition("#")
        other = (page.parent / path) if path else page
        assert other.exists(), target
        if anchor and other.suffix == ".md":
            assert anchor in anchors(other), target


def fields(model: type[BaseModel], path: str = "") -> Iterator[str]:
    """Every path of a model, with and without what stands before it."""
    for name, info in part.fields_of(model).items():
        here = f"{path}.{name}" if path else name
        yield here
        below = part.submodel(info.annotation)
        if below:
            yield from fields(below, here)


def keys(values: Any, path: str = "") -> Iterator[str]:
    """Every path of the chart's values."""
    if isinstance(values, dict):
        for name, below in values.items():
            here = f"{path}.{name}" if path else str(name)
            yield here
            yield from keys(below, here)


def test_every_field_and_value_that_is_named_exists() -> None:
    known = {*fields(RunSpec), *keys(yaml.safe_load((CHART / "values.yaml").read_text()))}
    known |= {f"spec.{path}" for path in fields(RunSpec)}
    known |= {f".status.{path}" for path in fields(Status)}
    known |= {f"status.{path}" for path in fields(Status)}
    free = ("spec.podTemplates.", "trainer.grpo.")
    found = re.findall(r"`(\.?[a-z]\w*(?:\.[a-z]\w*)+)(?:[:=][^`]*)?`", PAGE)
    assert len(found) > 50
    others = {"user.max_user_namespaces", "kernel.unprivileged_userns_clone"}
    unknown = {
        name
        for name in found
        if name not in known | others
        and not name.startswith(free)
        and not name.endswith((".yaml", ".pem", ".dev", ".html"))
    }
    assert unknown == set()


def commands() -> list[str]:
    """Every command of the page, on one line."""
    found: list[str] = []
    for block in re.findall(r"^```console\n(.*?)^```", PAGE, re.M | re.S):
        text = block.replace("\\\n", " ")
        found += [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]
    return list(dict.fromkeys(found))


#: What the test's cluster has no answer to: it has no kubelets, no metrics and no Kueue. The pod
#: that gives files out has a test of its own.
ELSEWHERE = re.compile(r" logs | top |\.kueue\.x-k8s\.io|^export |\bfiles\b")


def tried(command: str) -> str:
    """The command as it can be tried: nothing of it stays but an empty namespace."""
    if "| kubectl apply" in command:
        # What is there is Helm's here.
        return f"{command} --dry-run=server --force-conflicts"
    if command.startswith("helm uninstall"):
        return f"{command} --dry-run"
    if command.startswith("helm "):
        return re.sub(r"^helm (install|upgrade --install|upgrade)\b", "helm template", command)
    writes = re.compile(r"^kubectl (-n \S+ )?(apply|delete|label|patch) ")
    if writes.search(command) and "--dry-run" not in command:
        return f"{command} --dry-run=server"
    return command


@pytest.fixture(scope="module")
def shell(
    control_plane: ControlPlane, binaries: Binaries, all_pods: PodPlayer, tmp_path_factory: Any
) -> Iterator[Any]:
    """A shell as the page's reader has it, with a release and a run."""
    api: Api = control_plane.api
    folder: Path = tmp_path_factory.mktemp("shell")
    for name in ("kubectl", "helm"):
        (folder / name).symlink_to(getattr(binaries, name))
    place = "operations"
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}})
    environment = {
        **os.environ,
        "PATH": f"{folder}:{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}",
        "KUBECONFIG": str(control_plane.kubeconfig),
        "HELM_CACHE_HOME": str(folder),
        "WS": place,
        "NS": place,
        "RUN": "peony",
    }

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-eu", "-o", "pipefail", "-c", command],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    installed = run("helm install watercolour charts/watercolour --namespace $WS")
    assert installed.returncode == 0, installed.stderr
    run_manifest = yaml.safe_load((ROOT / "examples" / "local.yaml").read_text())
    run_manifest["metadata"]["name"] = "peony"
    uid = api.create(run_manifest, place)["metadata"]["uid"]
    for each in runs.manifests(place):
        each["metadata"].pop("ownerReferences", None)
        # Else `watercolour reap` would take them for a lost run's.
        each["metadata"]["labels"]["watercolour.dev/run-uid"] = uid
        api.apply(each)
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    api.apply({**lease, "metadata": {"name": "watercolour-operator", "namespace": place}})
    yield run
    run("helm uninstall watercolour --namespace $WS --no-hooks; kubectl delete crd --all")


@pytest.mark.cluster
def test_the_commands_of_the_page_work(shell: Any) -> None:
    listed = [command for command in commands() if not ELSEWHERE.search(command)]
    assert len(listed) > 60
    failed: list[str] = []
    for command in listed:
        done = shell(tried(command))
        if done.returncode:
            failed.append(f"{command}\n    {done.stderr.strip()}")
    assert not failed, "\n".join(failed)


@pytest.mark.cluster
def test_the_pod_that_gives_files_out_may_be_made_where_only_restricted_ones_may(
    shell: Any, control_plane: ControlPlane, kubectl: Any
) -> None:
    control_plane.api.until_one("ServiceAccount", "default", "operations")
    strict = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    control_plane.api.patch("Namespace", "operations", strict)
    (text,) = re.findall(r"^```yaml\n(apiVersion: v1\nkind: Pod\n.*?)^```", PAGE, re.M | re.S)
    manifest = text.replace("$IMAGE", "watercolour/operator:1").replace("$RUN", "peony")
    told = kubectl("-n", "operations", "apply", "--dry-run=server", "-f", "-", stdin=manifest)
    assert "pod/files created" in told
    claim = yaml.safe_load(manifest)["spec"]["volumes"][0]["persistentVolumeClaim"]
    assert control_plane.api.find("PersistentVolumeClaim", claim["claimName"], "operations")


CLUSTER_PAGE = (ROOT / "docs" / "cluster.md").read_text()
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", CLUSTER_PAGE, re.M | re.S)


@pytest.mark.parametrize("text", [each for each in BLOCKS if each.startswith("spec:")])
def test_parts_of_a_run_on_the_clusters_page_are_valid(text: str) -> None:
    load.from_dict({"metadata": {"name": "peony"}, **yaml.safe_load(text)})


@pytest.mark.cluster
def test_manifests_of_the_clusters_page_may_be_made_where_only_restricted_pods_may(
    api: Api, namespace: str, kubectl: Any
) -> None:
    strict = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    api.patch("Namespace", namespace, strict)
    (text,) = (each for each in BLOCKS if each.startswith("apiVersion:"))
    told = kubectl("apply", "--dry-run=server", "-f", "-", stdin=text)
    assert told.count(" created (server dry run)") == 3
    assert "Warning" not in kubectl("apply", "--dry-run=server", "-f", "-", stdin=text, check=False)
    (deployment,) = (each for each in yaml.safe_load_all(text) if each["kind"] == "Deployment")
    pod: dict[str, Any] = {**deployment["spec"]["template"], "metadata": {"name": "trackio"}}
    pod |= {"apiVersion": "v1", "kind": "Pod"}
    told = kubectl("apply", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump(pod))
    assert "pod/trackio created" in told


def test_commands_that_are_not_tried_are_at_least_well_formed() -> None:
    for command in commands():
        if ELSEWHERE.search(command):
            assert shlex.split(command)[0] in {"kubectl", "export", "envsubst"}
