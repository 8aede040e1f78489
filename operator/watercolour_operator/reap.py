"""Find, and with ``--yes`` remove, what runs that no longer exist have left behind.

``python -m watercolour_operator.reap`` looks at every namespace, ``--namespace`` (as often as
needed) at some. It needs no operator: the uid label of an object says which run it was made for.
Claims that were to outlive their run are left alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from watercolour_operator.cluster import watch
from watercolour_operator.cluster.api import Api, NoCluster, connect
from watercolour_operator.cluster.errors import ApiError, trouble
from watercolour_operator.cluster.kinds import BY_NAME, RUN, WATCHED
from watercolour_operator.cluster.reduce import Entry
from watercolour_operator.cluster.store import Store

#: An object younger than this may belong to a run that was created a moment ago.
YOUNG = timedelta(seconds=60)
PAGE = "500"


async def living(api: Api, scopes: Sequence[str | None]) -> tuple[frozenset[str], int]:
    """Uids of all runs that exist, and the version at which that was so.

    Raises:
        ApiError: the API server refused or did not answer.
    """
    uids: set[str] = set()
    versions: list[int] = []
    for scope in scopes:
        query = {"limit": PAGE}
        while True:
            page = await api.page(RUN, scope, query, metadata=True)
            uids.update(raw["metadata"]["uid"] for raw in page["items"])
            if following := page["metadata"].get("continue"):
                query["continue"] = following
                continue
            versions.append(int(page["metadata"]["resourceVersion"]))
            break
    return frozenset(uids), min(versions, default=0)


def orphans(entries: Iterable[Entry], alive: frozenset[str], now: datetime) -> list[Entry]:
    """The objects whose run is gone."""
    return [
        found
        for found in entries
        if found.run_uid
        and found.run_uid not in alive
        and not _kept(found)
        and now - found.record.created > YOUNG
    ]


def _kept(entry: Entry) -> bool:
    """Files that outlive their run: by their label, or because nobody owns them."""
    unowned = not getattr(entry.record, "owner_uid", None)
    return entry.kept or (entry.kind == "PersistentVolumeClaim" and unowned)


async def find(api: Api, scopes: Sequence[str | None]) -> list[Entry]:
    """What runs that no longer exist have left behind.

    Raises:
        ApiError: the API server refused or did not answer.
    """
    store = Store()
    for scope in scopes:
        for kind in WATCHED:
            try:
                await watch.list_all(api, store, kind, scope)
            except ApiError as error:
                if not (kind.optional and error.status in (403, 404)):
                    raise
    # The runs last: whoever made an object existed before it.
    alive, _ = await living(api, scopes)
    return orphans(store.entries(), alive, datetime.now(UTC))


async def remove(api: Api, found: Entry) -> None:
    """Delete one object, and no newcomer of its name.

    Raises:
        ApiError: the API server refused or did not answer.
    """
    body = {"preconditions": {"uid": found.record.uid}, "propagationPolicy": "Background"}
    try:
        await api.write(
            "delete", BY_NAME[found.kind], found.namespace, found.record.name, body=body
        )
    except ApiError as error:
        if error.status not in (404, 409):
            raise


def as_data(found: Entry) -> dict[str, Any]:
    """One object, for --json."""
    return {
        "kind": found.kind,
        "namespace": found.namespace,
        "name": found.record.name,
        "uid": found.record.uid,
        "run": found.run,
        "runUid": found.run_uid,
        "created": found.record.created.isoformat(),
    }


async def _reap(args: argparse.Namespace) -> int:
    async with connect(args.kubeconfig) as api:
        left = await find(api, args.namespace or [None])
        for entry in left:
            if not args.json:
                run = f"run {entry.run} ({entry.run_uid})"
                sys.stdout.write(f"{entry.kind} {entry.namespace}/{entry.record.name}  {run}\n")
            if args.yes:
                await remove(api, entry)
    if args.json:
        listed = [as_data(entry) for entry in left]
        sys.stdout.write(json.dumps({"removed": args.yes, "objects": listed}) + "\n")
        return 0
    count = f"{len(left)} object{'' if len(left) == 1 else 's'}"
    words = "removed" if args.yes else "left behind" + (" (--yes removes them)" if left else "")
    sys.stderr.write(f"watercolour: {count} {words}\n")
    return 0


def main(argv: list[str] | None = None) -> int:
    """Look, and remove when told to; 3 when the API server does not answer."""
    parser = argparse.ArgumentParser(
        prog="watercolour reap", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--yes", action="store_true", help="remove what is found")
    parser.add_argument("--namespace", action="append", default=[], help="look only here")
    parser.add_argument(
        "--kubeconfig", help="file to use instead of kubectl's own or the pod's account"
    )
    parser.add_argument("--json", action="store_true", help="print one object")
    args = parser.parse_args(argv)
    try:
        return asyncio.run(_reap(args))
    except ApiError as error:
        sys.stderr.write(f"watercolour: {trouble(error).message}\n")
    except NoCluster as error:
        sys.stderr.write(f"watercolour: {error}\n")
    return 3


if __name__ == "__main__":
    sys.exit(main())
