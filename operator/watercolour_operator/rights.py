"""Which rights the operator needs, and which of them its role lacks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import NamedTuple

from watercolour_operator.cluster import kinds
from watercolour_operator.cluster.api import Api
from watercolour_operator.cluster.kinds import Kind
from watercolour_operator.settings import Settings


class Right(NamedTuple):
    """A verb on a kind, below a subresource if one is named."""

    verb: str
    kind: Kind
    below: str = ""
    #: In the operator's own namespace alone, and but for create on the operator's own object.
    own: bool = False


MADE = ("get", "list", "watch", "create", "patch", "delete")
#: What differs: pods are made by Deployments and Jobs, and a claim, which holds files, is never
#: deleted: it goes by its owner references or stays.
OTHERWISE = {
    kinds.POD: ("list", "watch", "patch", "delete"),
    kinds.CLAIM: ("get", "list", "watch", "create", "patch"),
}


def needed() -> Iterator[Right]:
    """Every right that the operator uses; what other projects bring is left out."""
    yield from (Right(verb, kinds.RUN) for verb in ("get", "list", "watch", "delete"))
    yield Right("patch", kinds.RUN, "status")
    for kind in kinds.WATCHED:
        verbs = () if kind.optional else OTHERWISE.get(kind, MADE)
        yield from (Right(verb, kind) for verb in verbs)
    yield Right("get", kinds.SECRET)
    yield from (Right(verb, kinds.EVENT) for verb in ("create", "list"))
    yield from (Right(verb, kinds.LEASE, own=True) for verb in ("get", "create", "update"))


async def missing(api: Api, settings: Settings) -> list[str]:
    """A sentence for every right that is missing, with the remedy.

    Raises:
        ApiError: the API server refused or did not answer.
    """
    asked: list[tuple[Right, str | None]] = []
    for right in needed():
        scopes = (settings.lease_namespace,) if right.own else settings.namespaces or (None,)
        asked += [(right, scope) for scope in scopes]
    name = settings.lease_name
    allowed = await asyncio.gather(*(_allowed(api, right, scope, name) for right, scope in asked))
    return [
        _sentence(right, scope)
        for (right, scope), yes in zip(asked, allowed, strict=True)
        if not yes
    ]


async def _allowed(api: Api, right: Right, scope: str | None, lease: str) -> bool:
    group, slash, _ = right.kind.api_version.partition("/")
    attributes = {
        "verb": right.verb,
        "group": group if slash else "",
        "resource": right.kind.plural,
        "subresource": right.below,
        "namespace": scope or "",
        # A role may name the one Lease, but what is to be created has no name to be named by.
        "name": lease if right.own and right.verb != "create" else "",
    }
    body = {
        "apiVersion": kinds.ACCESS.api_version,
        "kind": kinds.ACCESS.name,
        "spec": {"resourceAttributes": attributes},
    }
    answer = await api.write_unguarded("create", kinds.ACCESS, "", "", body)
    return bool(answer["status"].get("allowed"))


def _sentence(right: Right, scope: str | None) -> str:
    resource = right.kind.resource
    if right.below:
        plural, dot, group = resource.partition(".")
        resource = f"{plural}/{right.below}{dot}{group}"
    where = f"in namespace {scope}" if scope else "in the cluster"
    return (
        f"The operator may not {right.verb} {resource} {where}. "
        f"Give its role the verb {right.verb} for {resource}."
    )
