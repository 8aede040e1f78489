"""What the API server says no with, and what a person can do about it."""

from __future__ import annotations

import re

from watercolour.api.reasons import Reason
from watercolour_operator.observed import Trouble


class ApiError(Exception):
    """The API server refused a call or did not answer.

    Attributes:
        status: HTTP status; 0 when no answer came.
        verb: the verb that a role would have to name, such as ``create``.
        resource: plural and group, such as ``jobs.batch``.
        namespace: where, or an empty string.
        name: the object, or an empty string.
        words: the server's own message.
        retry_after: seconds that the server asked to be left alone, or None.
    """

    def __init__(
        self,
        status: int,
        words: str,
        *,
        verb: str = "",
        resource: str = "",
        namespace: str = "",
        name: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{verb} {resource} {namespace}/{name}: {status} {words}")
        self.status = status
        self.words = words
        self.verb = verb
        self.resource = resource
        self.namespace = namespace
        self.name = name
        self.retry_after = retry_after


class WriteRefused(Exception):
    """The Lease is not held for long enough to write: somebody else may be the writer by now."""


class NameTaken(Exception):
    """An object of a needed name exists and belongs to somebody else."""

    def __init__(self, kind: str, name: str, owner: str) -> None:
        super().__init__(
            f"{kind} {name} exists and belongs to {owner}. Delete it, or give the run another name."
        )


_RBAC = re.compile(
    r'cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)"'
    r'(?: in API group "(?P<group>[^"]*)")?'
    r'(?: in the namespace "(?P<namespace>[^"]*)")?'
)
_QUOTA = ("exceeded quota", "failed quota", "insufficient quota")
_ENDING = "because it is being terminated"


def trouble(error: Exception) -> Trouble:
    """The error in words for a run's conditions: the object, the verb or the limit, the remedy."""
    if isinstance(error, NameTaken):
        return Trouble(Reason.NAME_TAKEN, str(error), transient=True)
    if not isinstance(error, ApiError):
        return Trouble(Reason.INTERNAL_ERROR, f"{type(error).__name__}: {error}", transient=True)
    if error.status == 403:
        return _forbidden(error)
    if error.status == 404 and not error.name:
        return Trouble(
            Reason.VERSION_SKEW,
            f"The cluster serves no {error.resource}. Install its definition, "
            "or leave out the field that needs it.",
            transient=True,
        )
    if error.status in (400, 413, 415, 422):
        return _refused(error, transient=False)
    return Trouble(Reason.API_UNAVAILABLE, _unavailable(error), transient=True)


def _forbidden(error: ApiError) -> Trouble:
    found = _RBAC.search(error.words)
    if found:
        resource = ".".join(filter(None, (found["resource"], found["group"])))
        where = f" in namespace {found['namespace']}" if found["namespace"] else " in the cluster"
        return Trouble(
            Reason.PERMISSION_DENIED,
            f"The operator may not {found['verb']} {resource}{where}. "
            f"Give its role the verb {found['verb']} for {resource}.",
            transient=True,
        )
    if any(words in error.words for words in _QUOTA):
        return Trouble(
            Reason.QUOTA_EXCEEDED,
            f"{error.words.rstrip('.')}. Raise the quota of namespace {error.namespace}, "
            "or ask for less.",
            transient=True,
        )
    return _refused(error, transient=True)


def _refused(error: ApiError, *, transient: bool) -> Trouble:
    what = f"{error.resource} {error.name}".strip()
    return Trouble(
        Reason.ADMISSION_REFUSED,
        f"The API server refused {what}: {error.words}",
        transient=transient,
    )


def _unavailable(error: ApiError) -> str:
    what = " ".join(filter(None, (error.verb, error.resource, error.name)))
    answer = f"answered {error.status}" if error.status else "did not answer"
    return f"The API server {answer} to {what}: {error.words}. Trying again."


def is_ending(error: ApiError) -> bool:
    """Whether the call failed only because its namespace is being deleted."""
    return error.status in (403, 404) and _ENDING in error.words
