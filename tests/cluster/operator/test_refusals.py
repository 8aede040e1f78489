"""What stands in the way of a run is told in its conditions, and gone when it is put right."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.conftest import CRDS
from tests.cluster.ground.api import Api
from tests.cluster.ground.controlplane import ControlPlane
from tests.cluster.operator import harness
from tests.cluster.operator.conftest import Start
from tests.cluster.operator.harness import Story, condition

from watercolour.api import yaml_text
from watercolour_operator import names, rights
from watercolour_operator.rights import Right

Json = dict[str, Any]


def allow(api: Api, namespace: str, needed: list[Right]) -> None:
    """A Role of these rights for the service account `limited`."""
    rules = [
        {
            "apiGroups": [right.kind.api_version.rpartition("/")[0]],
            "resources": ["/".join(filter(None, (right.kind.plural, right.below)))],
            "verbs": [right.verb],
        }
        for right in needed
    ]
    finalizers = {
        "apiGroups": [names.GROUP],
        "resources": [f"{names.PLURAL}/finalizers"],
        "verbs": ["update"],
    }
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "limited"},
        "rules": [*rules, finalizers],
    }
    api.apply(role, namespace)
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "limited"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "Role",
            "name": "limited",
        },
        "subjects": [{"kind": "ServiceAccount", "name": "limited", "namespace": namespace}],
    }
    api.apply(binding, namespace)


@pytest.fixture
def limited(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Path:
    """A kubeconfig of an account that may do nothing yet."""
    token = control_plane.token_of(namespace, "limited")
    return control_plane.kubeconfig_of(token, tmp_path / "limited")


def without(verb: str, plural: str) -> list[Right]:
    """All rights but one."""
    return [
        right
        for right in rights.needed()
        if (right.verb, right.kind.plural, right.below) != (verb, plural, "")
    ]


def until(story: Story, wanted: Callable[[Json], bool], what: str) -> Json:
    return story.api.until_one(
        names.KIND, story.name, story.namespace, wanted, timeout=60, what=what
    )


def degraded_by(reason: str) -> Callable[[Json], bool]:
    return lambda run: condition(run, "Degraded").get("reason") == reason


def test_the_listed_rights_are_enough_for_a_whole_life(
    api: Api, namespace: str, story: Story, start: Start, limited: Path
) -> None:
    allow(api, namespace, list(rights.needed()))
    start(limited)
    story.create()
    story.finish(story.train())


def test_a_missing_right_is_named_and_the_run_goes_on_when_it_is_given(
    api: Api, namespace: str, story: Story, start: Start, limited: Path
) -> None:
    allow(api, namespace, without("create", "jobs"))
    start(limited)
    story.create()
    run = until(story, degraded_by("PermissionDenied"), "the missing right is told")
    message = condition(run, "Degraded")["message"]
    assert f"may not create jobs.batch in namespace {namespace}" in message
    assert "Give its role the verb create" in message
    allow(api, namespace, list(rights.needed()))
    story.train()


def test_a_right_that_only_the_look_before_the_start_needs_is_named_too(
    api: Api, namespace: str, story: Story, start: Start, limited: Path
) -> None:
    allow(api, namespace, without("get", "secrets"))
    start(limited)
    secret: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hub"}}
    api.create(secret | {"stringData": {"token": "hf_x"}}, namespace)
    story.create(model={"id": "Qwen/Qwen3-4B", "tokenSecretRef": {"name": "hub"}})

    def told(run: Json) -> bool:
        return condition(run, "Progressing").get("reason") == "PermissionDenied"

    run = until(story, told, "the missing right is told")
    message = condition(run, "Progressing")["message"]
    assert f"may not get secrets in namespace {namespace}" in message
    assert "Progressing" in condition(run, "Degraded")["message"], "it does not call itself well"
    assert api.list("Job", namespace) == []
    (event,) = api.until(
        "Event",
        lambda found: len(found) == 1,
        namespace,
        fields="reason=PermissionDenied",
    )
    assert event["type"] == "Warning"
    allow(api, namespace, list(rights.needed()))
    story.train()


@pytest.fixture
def older(control_plane: ControlPlane, crd_installed: None) -> Iterator[None]:
    """The definition as a version had it that knew less of the status."""
    (path,) = CRDS
    current = yaml_text.mapping(path.read_text(), str(path))
    old = copy.deepcopy(current)
    for version in old["spec"]["versions"]:
        status = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
        del status["activeSeconds"]
        del status["renderers"]["properties"]["decision"]
        del status["attempts"]["items"]["properties"]["resumed"]
    control_plane.install(old)
    yield
    control_plane.install(current)


def test_a_definition_older_than_the_operator_is_told_and_the_run_goes_on(
    older: None, story: Story, start: Start
) -> None:
    start()
    story.create()
    run = until(story, degraded_by("VersionSkew"), "the older definition is told")
    message = condition(run, "Degraded")["message"]
    assert "status.activeSeconds" in message
    assert message.endswith("Upgrade the definition.")
    done = story.finish(story.train())
    assert done["status"]["attempts"][0]["reason"] == "Succeeded"


def test_check_names_every_missing_right(
    api: Api, namespace: str, crd_installed: None, limited: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from watercolour_operator.__main__ import main

    options = [
        "--kubeconfig",
        str(limited),
        "--check",
        "--namespaces",
        namespace,
        "--lease-namespace",
        namespace,
    ]
    allow(api, namespace, without("delete", "deployments"))
    assert main(options) == 1
    told = capfd.readouterr().out.splitlines()
    assert told == [
        f"The operator may not delete deployments.apps in namespace {namespace}. "
        "Give its role the verb delete for deployments.apps."
    ]
    allow(api, namespace, list(rights.needed()))
    assert main(options) == 0


def test_a_quota_is_told_with_its_limit(
    api: Api, namespace: str, story: Story, start: Start
) -> None:
    quota: Json = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small"},
        "spec": {"hard": {"count/deployments.apps": "1"}},
    }
    api.create(quota, namespace)
    api.until_one("ResourceQuota", "small", namespace, lambda it: it["status"].get("hard"))
    start()
    story.create()
    run = until(story, degraded_by("QuotaExceeded"), "the quota is told")
    assert "count/deployments.apps=1" in condition(run, "Degraded")["message"]
    api.delete("ResourceQuota", "small", namespace)
    story.train()


def test_a_namespaces_policy_is_told_in_its_own_words(
    api: Api, namespace: str, story: Story, start: Start
) -> None:
    """Jobs without pods: the reason is in the Job's events alone."""
    enforce = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    api.patch("Namespace", namespace, enforce)
    quota: Json = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "no-gpu"},
        "spec": {"hard": {"requests.nvidia.com/gpu": "0"}},
    }
    api.create(quota, namespace)
    api.until_one("ResourceQuota", "no-gpu", namespace, lambda it: it["status"].get("hard"))
    start()
    story.create()

    def told(run: Json) -> bool:
        return any(
            "exceeded quota: no-gpu" in one["message"]
            for one in run.get("status", {}).get("conditions", ())
        )

    until(story, told, "the Job's refused pods are told")


def test_a_secret_that_is_not_there_is_waited_for(
    api: Api, namespace: str, story: Story, start: Start
) -> None:
    start()
    token = {"tokenSecretRef": {"name": "hub", "key": "token"}}
    story.create(model={"id": "Qwen/Qwen3-4B", **token}, egress={"trainer": ["all"]})

    def told(run: Json) -> bool:
        return any(
            one["reason"] == "SecretMissing" and "Secret hub" in one["message"]
            for one in run.get("status", {}).get("conditions", ())
        )

    until(story, told, "the missing Secret is told")
    assert api.list("Job", namespace) == []
    api.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "hub"},
            "stringData": {"token": "hf_do_not_show"},
        },
        namespace,
    )
    run = story.until("Starting")
    assert "hf_do_not_show" not in str(run)


def test_an_object_of_somebody_else_is_left_alone_and_named(
    api: Api, namespace: str, story: Story, start: Start
) -> None:
    theirs: Json = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "peonies-env"},
        "spec": {"ports": [{"port": 1}]},
    }
    api.create(theirs, namespace)
    start()
    story.create()
    run = until(story, degraded_by("NameTaken"), "the taken name is told")
    assert "Service peonies-env" in condition(run, "Degraded")["message"]
    assert "labels" not in api.get("Service", "peonies-env", namespace)["metadata"]
    api.delete("Service", "peonies-env", namespace)
    story.train()


def test_the_longest_name_has_a_whole_life(
    api: Api, namespace: str, story: Story, start: Start
) -> None:
    start()
    story.name = "a" * 51
    story.create(prompts={"subjects": ["牡丹", "Pfingstrose – zart", "🌸"]})
    story.finish(story.train())
    longer = harness.run("a" * 52)
    with pytest.raises(Exception, match="51"):
        api.create(longer, namespace)


def test_a_broken_run_does_not_disturb_its_neighbour(
    api: Api, namespace: str, story: Story, start: Start
) -> None:
    """One that an older definition let in: its specification is none."""
    start()
    story.create()
    pod = story.train()
    theirs: Json = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "lotus-env"},
        "spec": {"ports": [{"port": 1}]},
    }
    api.create(theirs, namespace)
    api.create(harness.run("lotus"), namespace)
    lotus = Story(api, namespace, story.pods, story.answers, name="lotus")
    until(lotus, degraded_by("NameTaken"), "the taken name is told")
    story.finish(pod)
