"""What operator and people may do, by mode: exactly what they need, as the server decides it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.chart.conftest import CHART, Render, named
from tests.cluster.ground.api import Api
from tests.cluster.ground.controlplane import ControlPlane

from watercolour_operator import desired, rights
from watercolour_operator.cluster import kinds

Manifest = dict[str, Any]
#: A verb, a group and a resource, perhaps with its subresource.
Right = tuple[str, str, str]

RBAC = {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ServiceAccount"}

#: What no mode gives, with why it would matter.
NEVER: tuple[Right, ...] = (
    ("list", "", "secrets"),  # to read every Secret of a namespace
    ("watch", "", "secrets"),
    ("create", "", "secrets"),
    ("create", "", "pods"),  # pods come from Deployments and Jobs
    ("create", "", "pods/exec"),
    ("create", "", "serviceaccounts/token"),  # to become somebody else
    ("get", "", "nodes"),
    ("create", "rbac.authorization.k8s.io", "rolebindings"),
    ("escalate", "rbac.authorization.k8s.io", "roles"),
    ("update", "watercolour.dev", "watercolourruns"),  # the specification is the user's
    ("patch", "watercolour.dev", "watercolourruns"),
    ("create", "watercolour.dev", "watercolourruns"),
    ("patch", "apiextensions.k8s.io", "customresourcedefinitions"),
)


def needed() -> set[Right]:
    """The rights that the operator says it needs, in namespaces with runs."""
    found = {
        (
            right.verb,
            group(right.kind.api_version),
            "/".join(filter(None, (right.kind.plural, right.below))),
        )
        for right in rights.needed()
        if not right.own
    }
    # What --check leaves out, because a cluster may do without: KEDA's kind and the HPA's, and the
    # plugin that guards owner references which hold a deletion up.
    optional = (kind for kind in kinds.WATCHED if kind.optional)
    found |= {
        (verb, group(kind.api_version), kind.plural) for kind in optional for verb in rights.MADE
    }
    return found | {("update", "watercolour.dev", "watercolourruns/finalizers")}


def group(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def given(rules: Iterable[Manifest]) -> Iterator[Right]:
    """The rights that a role's rules give."""
    for rule in rules:
        for verb in rule["verbs"]:
            for api_group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    yield verb, api_group, resource


def test_the_role_has_what_the_code_uses_and_nothing_else() -> None:
    rules = yaml.safe_load((CHART / "files" / "operator-rules.yaml").read_text())
    found = list(given(rules))
    assert len(found) == len(set(found))
    assert set(found) == needed()


def test_every_kind_that_is_made_is_one_that_is_watched() -> None:
    watched = {(kind.api_version, kind.plural) for kind in kinds.WATCHED}
    assert {(kind.api_version, kind.plural) for kind in desired.KINDS} <= watched


Install = Callable[..., str]


@pytest.fixture
def install(api: Api, render: Render, namespace: str) -> Iterator[Install]:
    """Apply a mode's accounts and roles and wait until they hold; returns the operator's user.

    What has no namespace goes with the test: the next release of that name would refuse to own it.
    """
    applied: list[Manifest] = []

    def call(file: str, *, at: str = "", **values: Any) -> str:
        for each in render(file, namespace=namespace, values=values):
            if each["kind"] in RBAC:
                api.apply(each)
                applied.append(each)
        user = f"system:serviceaccount:{namespace}:watercolour-operator"
        last = ("create", "coordination.k8s.io", "leases")
        deadline = time.monotonic() + 10
        while not (
            may(api, user, next(iter(needed())), at or namespace)
            and may(api, user, last, namespace)
        ):
            assert time.monotonic() < deadline, "the roles give nothing"
        return user

    yield call
    for each in applied:
        if "namespace" not in each["metadata"]:
            api.delete(each["kind"], each["metadata"]["name"])


def may(api: Api, user: str, right: Right, namespace: str, name: str = "") -> bool:
    """Whether the API server would let a user do something."""
    verb, api_group, resource = right
    resource, _, below = resource.partition("/")
    asked = {
        "verb": verb,
        "group": api_group,
        "resource": resource,
        "subresource": below,
        "namespace": namespace,
        "name": name,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": asked},
    }
    return api.create(review)["status"]["allowed"]


def refused(api: Api, user: str, namespace: str) -> set[Right]:
    """The rights that the operator needs in a namespace and does not have there."""
    return {right for right in needed() if not may(api, user, right, namespace)}


@pytest.fixture
def other(control_plane: ControlPlane, namespace: str) -> str:
    """A second namespace, with people who have nothing to do with the first."""
    name = f"{namespace}-other"
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    control_plane.api.create(manifest)
    return name


@pytest.mark.cluster
def test_cluster_mode_reaches_every_namespace(
    api: Api, install: Install, namespace: str, other: str
) -> None:
    user = install("defaults")
    assert refused(api, user, namespace) == set()
    assert refused(api, user, other) == set()
    assert refused(api, user, "") == set()
    for right in NEVER:
        assert not may(api, user, right, other), right


@pytest.mark.cluster
def test_namespaces_mode_reaches_those_and_no_other(
    api: Api, install: Install, namespace: str, other: str
) -> None:
    rbac = {"mode": "namespaces", "namespaces": [other]}
    user = install("", at=other, rbac=rbac)
    assert refused(api, user, other) == set()
    # The release's own namespace is not one of them: it holds the Lease alone.
    for elsewhere in (namespace, "default", ""):
        assert refused(api, user, elsewhere) == needed()
    for right in NEVER:
        assert not may(api, user, right, other), right


@pytest.mark.cluster
def test_single_mode_reaches_its_own_namespace_alone(
    api: Api, install: Install, namespace: str, other: str
) -> None:
    user = install("single")
    assert refused(api, user, namespace) == set()
    assert refused(api, user, other) == needed()
    assert refused(api, user, "") == needed()
    for right in NEVER:
        assert not may(api, user, right, namespace), right


def all_rights(plane: ControlPlane, account: str, home: str, where: str) -> set[Right]:
    """Every right that an account has in a namespace, by whatever role; named objects' as well.

    What every account has, such as to ask for its rights, is left out.
    """

    def asked(name: str) -> set[Right]:
        token = plane.token_of(home, name)
        client = Api(plane.server, token, plane.ca)
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectRulesReview",
            "spec": {"namespace": where},
        }
        try:
            return set(given(client.create(review)["status"]["resourceRules"]))
        finally:
            client.close()

    return asked(account) - asked("default")


LEASES: set[Right] = {
    (verb, "coordination.k8s.io", "leases") for verb in ("create", "get", "update")
}


@pytest.mark.cluster
@pytest.mark.parametrize("mode", ["cluster", "namespaces", "single"])
def test_each_account_has_every_right_that_it_needs_and_no_other(
    control_plane: ControlPlane, install: Install, namespace: str, other: str, mode: str
) -> None:
    rbac: Manifest = {"mode": mode}
    if mode == "namespaces":
        rbac["namespaces"] = [other]
    reached = {"cluster": {namespace, other}, "namespaces": {other}, "single": {namespace}}[mode]
    install("", at=min(reached), rbac=rbac)
    looks = {("list", "watercolour.dev", "watercolourruns")}
    for where in (namespace, other):
        there, lease = where in reached, LEASES if where == namespace else set[Right]()
        wanted = {
            "operator": (needed() if there else set[Right]()) | lease,
            # By default it refuses to go while there are runs.
            "uninstall": looks if there else set[Right](),
            "seccomp-profile": set[Right](),
        }
        for account, expected in wanted.items():
            found = all_rights(control_plane, f"watercolour-{account}", namespace, where)
            assert found == expected, (account, where)


@pytest.mark.cluster
@pytest.mark.parametrize("mode", ["cluster", "namespaces", "single"])
def test_the_operator_finds_its_rights_complete(
    api: Api,
    control_plane: ControlPlane,
    render: Render,
    install: Install,
    namespace: str,
    other: str,
    tmp_path: Path,
    mode: str,
) -> None:
    rbac: Manifest = {"mode": mode}
    if mode == "namespaces":
        rbac["namespaces"] = [other]
    values = {"rbac": rbac}
    install("", at=rbac.get("namespaces", [""])[0], **values)
    file = tmp_path / "operator.yaml"
    found = render(values=values, namespace=namespace)
    file.write_text(named(found, "ConfigMap", "-operator")["data"]["operator.yaml"])
    token = control_plane.token_of(namespace, "watercolour-operator")
    kubeconfig = control_plane.kubeconfig_of(token, tmp_path / "kubeconfig")
    command = [sys.executable, "-m", "watercolour_operator", "--check"]
    words = ["--config", str(file), "--kubeconfig", str(kubeconfig)]
    done = subprocess.run(
        [*command, *words], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


@pytest.mark.cluster
@pytest.mark.parametrize("file", ["defaults", "single"])
def test_the_lease_is_the_operators_own(
    api: Api, install: Install, namespace: str, other: str, file: str
) -> None:
    user = install(file)
    lease = "coordination.k8s.io", "leases"
    assert may(api, user, ("create", *lease), namespace)
    for verb in ("get", "update"):
        assert may(api, user, (verb, *lease), namespace, "watercolour-operator")
        assert not may(api, user, (verb, *lease), namespace, "somebody-elses")
        assert not may(api, user, (verb, *lease), other, "watercolour-operator")


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("role", "reads", "writes"),
    [("view", True, False), ("edit", True, True), ("admin", True, True)],
)
def test_the_clusters_own_roles_know_runs(
    api: Api, install: Install, namespace: str, role: str, reads: bool, writes: bool
) -> None:
    install("defaults")
    user = f"painter-{role}-{namespace}"
    rbac = "rbac.authorization.k8s.io"
    api.apply(
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": user, "namespace": namespace},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": user}],
        }
    )
    runs = "watercolour.dev"
    api.until_one(
        "ClusterRole",
        role,
        None,
        lambda each: any(runs in rule.get("apiGroups", ()) for rule in each["rules"]),
    )
    expected = {
        ("get", "watercolourruns"): reads,
        ("list", "watercolourruns"): reads,
        ("get", "watercolourruns/scale"): reads,
        ("create", "watercolourruns"): writes,
        ("patch", "watercolourruns"): writes,
        ("delete", "watercolourruns"): writes,
        ("update", "watercolourruns/scale"): writes,
        ("patch", "watercolourruns/status"): False,
    }
    for (verb, resource), allowed in expected.items():
        assert may(api, user, (verb, runs, resource), namespace) is allowed, (verb, resource)
