"""The real API server takes every object of every example, where Pod Security is `restricted`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.ground.api import Api, ApiError

from watercolour.api import load
from watercolour.api.spec import WatercolourRun
from watercolour.api.status import Status
from watercolour_operator import desired
from watercolour_operator.desired import Manifest
from watercolour_operator.observed import Observed
from watercolour_operator.plan import Plan
from watercolour_operator.settings import Settings

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
UID = "8f14e45f-ceea-467f-a0e6-0e5a2c1f4a11"
NOW = datetime(2026, 1, 1, tzinfo=UTC)

#: Specifications whose objects no example has.
CORNERS: dict[str, dict[str, Any]] = {
    "everything-named": {
        "model": {
            "id": "owner/name",
            "cacheClaim": "cache",
            "tokenSecretRef": {"name": "hub"},
        },
        "recipe": {"name": "hps-led"},
        "references": {"claim": "pool"},
        "scorer": {"backend": "hpsv3", "checkpoint": {"claim": "weights"}, "queued": True},
        "judge": {
            "backend": "openai",
            "model": "vision",
            "secretRef": {"name": "judge"},
            "deploy": {"image": "vllm/vllm-openai:v0.11.0", "model": "o/n", "gpus": 2},
        },
        "artifacts": {"keep": False, "hub": {"repo": "o/n", "secretRef": {"name": "push"}}},
        "egress": {"trainer": ["all"], "env": ["203.0.113.0/24", "2001:db8::/32"]},
        "queueName": "gpus",
    },
    "embedded-judge-alone": {"scorer": {"backend": "none"}, "recipe": {"name": "judge-led"}},
    "downloads": {
        "scorer": {"backend": "hpsv3", "download": True, "checkpoint": {"id": "o/n"}},
        "references": {"configMap": "pool"},
    },
    "shared-scorer": {"scorer": {"sharing": "Namespace"}},
    "hpa": {"renderers": {"scaling": {"mode": "HPA", "max": 4}}},
    "several-pods": {"trainer": {"replicas": 2, "resources": {"limits": {"nvidia.com/gpu": 1}}}},
    "runtime-class": {"renderers": {"runtimeClassName": "gvisor", "networkCanary": "Warn"}},
    "templates": {
        "podTemplates": {
            "trainer": {
                "metadata": {"labels": {"team": "paint"}},
                "spec": {
                    "nodeSelector": {"gpu": "h200"},
                    "initContainers": [{"name": "fetch", "image": "busybox:1"}],
                    "containers": [{"name": "trainer", "env": [{"name": "A", "value": "b"}]}],
                },
            },
            "env": {"spec": {"containers": [{"name": "proxy", "image": "envoy:1"}]}},
            "renderers": {"spec": {"tolerations": [{"operator": "Exists"}]}},
        }
    },
}
SETTINGS = {
    "plain": Settings(),
    "air-gapped": Settings(
        image_pull_secrets=("registry",),
        proxy_env={"HTTPS_PROXY": "http://proxy.example:3128"},
        ca_bundle="-----BEGIN CERTIFICATE-----\n",
        metrics_namespaces={"kubernetes.io/metadata.name": "monitoring"},
        operator_cidrs=("10.0.0.0/8",),
        priority_class="system-node-critical",
        canary_address="10.96.0.1:443",
    ),
}


@pytest.fixture
def restricted(api: Api, namespace: str) -> str:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    api.patch("Namespace", namespace, {"metadata": {"labels": labels}})
    runtime = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "runsc"}
    api.apply({**runtime, "metadata": {"name": "gvisor"}})
    return namespace


def observed(run: WatercolourRun, namespace: str) -> Observed:
    return Observed(
        now=NOW,
        namespace=namespace,
        name=run.metadata.name,
        uid=UID,
        generation=1,
        created=NOW,
        spec=run.spec,
        status=Status(),
        scorer_sharers=(("another", "another-uid"),),
    )


def manifests(run: WatercolourRun, namespace: str, settings: Settings) -> list[Manifest]:
    plan = Plan(Status(), active=True, attempt=3, resume=True, env=1, scorer=1, judge=1)
    return desired.manifests(observed(run, namespace), plan, settings)


def expect_accepted(api: Api, wanted: list[Manifest]) -> None:
    """Apply all by server-side dry run, and each pod that would come of them, as a pod.

    Pod Security looks at pods and at nothing else; a pod needs its account to be there.
    """
    make_accounts(api, wanted)
    for item in wanted:
        name = f"{item['kind']}/{item['metadata']['name']}"
        try:
            api.apply(item, dry_run=True)
            if "template" in item.get("spec", {}):
                api.create(as_pod(item, item["spec"]["template"]), dry_run=True)
        except ApiError as error:
            pytest.fail(f"{name}: {error}")


def make_accounts(api: Api, wanted: list[Manifest]) -> None:
    """Without owners: theirs is no object here, so the garbage collector would take them away."""
    for item in wanted:
        if item["kind"] == "ServiceAccount":
            meta = {**item["metadata"], "ownerReferences": []}
            api.apply({**item, "metadata": meta})


def as_pod(item: Manifest, template: dict[str, Any]) -> Manifest:
    spec = dict(template["spec"])
    meta = {**template["metadata"], "namespace": item["metadata"]["namespace"]}
    name = item["metadata"]["name"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {**meta, "name": name}, "spec": spec}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_object_of_an_example_is_accepted(
    example: Path, settings: Settings, api: Api, restricted: str
) -> None:
    expect_accepted(api, manifests(load.run(example), restricted, settings))


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("corner", CORNERS)
def test_every_object_of_a_rare_specification_is_accepted(
    corner: str, settings: Settings, api: Api, restricted: str
) -> None:
    run = load.from_dict({"metadata": {"name": corner}, "spec": CORNERS[corner]})
    expect_accepted(api, manifests(run, restricted, settings))


def test_the_longest_name_is_accepted(api: Api, restricted: str) -> None:
    run = load.from_dict({"metadata": {"name": "r" * 51}})
    expect_accepted(api, manifests(run, restricted, Settings()))


def test_a_pod_with_one_safeguard_less_is_refused(api: Api, restricted: str) -> None:
    wanted = manifests(load.from_dict({"metadata": {"name": "weak"}}), restricted, Settings())
    make_accounts(api, wanted)
    item = next(item for item in wanted if item["kind"] == "Deployment")
    pod = as_pod(item, item["spec"]["template"])
    del pod["spec"]["containers"][0]["securityContext"]["capabilities"]
    with pytest.raises(ApiError, match="restricted"):
        api.create(pod, dry_run=True)
