"""What the API server says no with becomes a reason, the fact and the remedy."""

from __future__ import annotations

import pytest

from watercolour.api.reasons import Reason
from watercolour_operator.cluster import errors
from watercolour_operator.cluster.errors import ApiError, NameTaken

RBAC = (
    'jobs.batch is forbidden: User "system:serviceaccount:ops:operator" cannot create resource '
    '"jobs" in API group "batch" in the namespace "studio"'
)
QUOTA = (
    'pods "x" is forbidden: exceeded quota: small, requested: requests.nvidia.com/gpu=1, '
    "used: requests.nvidia.com/gpu=1, limited: requests.nvidia.com/gpu=1"
)
POD_SECURITY = 'pods "x" is forbidden: violates PodSecurity "restricted:latest": privileged'
WEBHOOK = 'admission webhook "gate.example.org" denied the request: no latest tags'
ENDING = (
    'services "x" is forbidden: unable to create new content in namespace studio because it is '
    "being terminated"
)


def error(status: int, words: str, name: str = "peonies-env") -> ApiError:
    return ApiError(
        status, words, verb="patch", resource="deployments.apps", namespace="studio", name=name
    )


@pytest.mark.parametrize(
    ("status", "words", "reason", "transient"),
    [
        (403, RBAC, Reason.PERMISSION_DENIED, True),
        (403, QUOTA, Reason.QUOTA_EXCEEDED, True),
        (403, POD_SECURITY, Reason.ADMISSION_REFUSED, True),
        (403, WEBHOOK, Reason.ADMISSION_REFUSED, True),
        (422, "spec.replicas: Invalid value", Reason.ADMISSION_REFUSED, False),
        (400, WEBHOOK, Reason.ADMISSION_REFUSED, False),
        (409, "the object has been modified", Reason.API_UNAVAILABLE, True),
        (429, "too many requests", Reason.API_UNAVAILABLE, True),
        (500, "etcdserver: leader changed", Reason.API_UNAVAILABLE, True),
        (0, "no answer within 30 s", Reason.API_UNAVAILABLE, True),
    ],
)
def test_each_refusal_has_its_reason(
    status: int, words: str, reason: Reason, transient: bool
) -> None:
    found = errors.trouble(error(status, words))
    assert (found.reason, found.transient) == (reason, transient)


def test_a_missing_right_is_named_with_its_remedy() -> None:
    message = errors.trouble(error(403, RBAC)).message
    assert message == (
        "The operator may not create jobs.batch in namespace studio. "
        "Give its role the verb create for jobs.batch."
    )


def test_a_quota_is_named_with_its_limit() -> None:
    message = errors.trouble(error(403, QUOTA)).message
    assert "limited: requests.nvidia.com/gpu=1. Raise the quota of namespace studio" in message


def test_a_refusal_is_told_in_the_servers_own_words() -> None:
    assert WEBHOOK in errors.trouble(error(403, WEBHOOK)).message


def test_a_kind_that_the_cluster_lacks_is_version_skew() -> None:
    found = errors.trouble(error(404, "the server could not find the requested resource", name=""))
    assert found.reason is Reason.VERSION_SKEW


def test_a_name_that_is_taken_says_by_whom() -> None:
    found = errors.trouble(NameTaken("Service", "peonies-env", "nobody's run"))
    assert found.reason is Reason.NAME_TAKEN
    assert "Service peonies-env" in found.message


def test_a_namespace_that_ends_is_no_fault_of_the_run() -> None:
    assert errors.is_ending(error(403, ENDING))
    assert not errors.is_ending(error(403, RBAC))


def test_a_fault_of_ours_is_told_as_one() -> None:
    assert errors.trouble(KeyError("x")).reason is Reason.INTERNAL_ERROR
