"""List one kind of object and watch it for ever, into the store.

A watch that stays silent for longer than the server's bookmarks take (a minute) is taken for dead
and opened again where it stopped; one whose place is no longer kept (410) begins with a new list.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import NoReturn

from watercolour.api.reasons import Reason
from watercolour.logs import get
from watercolour_operator import names
from watercolour_operator.cluster import errors, reduce
from watercolour_operator.cluster.api import Api, Raw
from watercolour_operator.cluster.errors import ApiError
from watercolour_operator.cluster.kinds import Kind
from watercolour_operator.cluster.store import Store
from watercolour_operator.observed import Trouble

log = get(__name__)

#: Finds every object of every run.
OURS = f"app.kubernetes.io/managed-by={names.MANAGER}"
#: Objects of one page of a list.
PAGE = 200
#: Seconds after which the server ends a watch by itself.
SERVER_SECONDS = 300
#: Longest pause between two tries, in seconds.
LONGEST_PAUSE = 30.0

NOT_LISTED = Trouble(Reason.API_UNAVAILABLE, "The operator is reading the cluster.", transient=True)


async def follow(
    api: Api,
    store: Store,
    kind: Kind,
    namespace: str | None,
    *,
    silence: float = 70.0,
    restarted: Callable[[str, str], None] = lambda kind, why: None,
) -> NoReturn:
    """Keep the store's objects of a kind true, in one namespace or (None) in all.

    Args:
        silence: seconds without an event after which the watch is opened again.
        restarted: told the kind and the reason of every list and every reconnection but the first.
    """
    scope = (kind.name, namespace)
    if not kind.optional:
        store.watches[scope] = NOT_LISTED
    version, tries = "", 0
    while True:
        opened = False
        try:
            if not version:
                version = await list_all(api, store, kind, namespace)
                store.watches[scope] = None
            async for reached in _watch(api, store, kind, namespace, version, silence):
                if not opened:
                    # Whatever an earlier try was refused for, it is seen again.
                    store.watches[scope] = None
                else:
                    tries = 0
                version, opened = reached, True
            restarted(kind.name, "ended")
        except ApiError as error:
            restarted(kind.name, "gone" if error.status == 410 else "failed")
            if error.status == 410:
                version = ""
                continue
            if opened and isinstance(error.__cause__, TimeoutError):
                # Nothing has happened, or a connection died unseen: no fault of the server's, and
                # a pause would leave nobody watching.
                log.debug("the watch of %s was silent and is opened again", kind.plural)
                continue
            await _bear(store, kind, scope, error, first=not version)
            tries += 1
            await asyncio.sleep(_pause(error, tries))


async def _bear(
    store: Store, kind: Kind, scope: tuple[str, str | None], error: ApiError, *, first: bool
) -> None:
    """Note what a failed list or watch means for the runs."""
    if kind.optional and error.status in (403, 404):
        # There is nothing of it to be seen, whatever an earlier list failed with.
        store.watches[scope] = None
        return
    log.warning("cannot %s %s: %s", error.verb, kind.plural, error.words)
    # A broken watch leaves the cache old, which is borne; what was never listed is not known.
    if first or error.status == 403:
        store.watches[scope] = errors.trouble(error)


def _pause(error: ApiError, tries: int) -> float:
    if error.status == 404:
        return LONGEST_PAUSE * 2
    longest = min(LONGEST_PAUSE, 0.25 * 2 ** min(tries, 10))
    return max(error.retry_after or 0.0, random.uniform(longest / 2, longest))


async def list_all(api: Api, store: Store, kind: Kind, namespace: str | None) -> str:
    """Read all objects of a kind into the store; returns the version to watch from.

    Raises:
        ApiError: the API server refused or did not answer.
    """
    query = {"labelSelector": OURS, "limit": str(PAGE)}
    seen: set[str] = set()
    while True:
        page = await api.page(kind, namespace, query, metadata=not kind.whole)
        for raw in page["items"]:
            seen.add(raw["metadata"]["uid"])
            store.put(kind, raw)
        version: str = page["metadata"]["resourceVersion"]
        following = page["metadata"].get("continue")
        if not following:
            store.drop_unlisted(kind, namespace, seen, int(version))
            return version
        query["continue"] = following


async def _watch(
    api: Api, store: Store, kind: Kind, namespace: str | None, version: str, silence: float
):
    """Follow from a version; yields it once the watch is open, and the one after each event."""
    query = {
        "labelSelector": OURS,
        "resourceVersion": version,
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(SERVER_SECONDS),
    }
    async with api.watch(kind, namespace, query, silence=silence) as events:
        yield version
        async for event in events:
            _take(store, kind, event)
            yield event["object"]["metadata"]["resourceVersion"]


def _take(store: Store, kind: Kind, event: Raw) -> None:
    what, raw = event["type"], event["object"]
    if what == "ERROR":
        raise ApiError(
            int(raw.get("code") or 500),
            raw.get("message") or "the watch ended with an error",
            verb="watch",
            resource=kind.resource,
        )
    if what == "DELETED":
        gone = reduce.entry(kind.name, raw)
        if gone is not None:
            store.drop(kind, gone)
    elif what in ("ADDED", "MODIFIED"):
        store.put(kind, raw)
