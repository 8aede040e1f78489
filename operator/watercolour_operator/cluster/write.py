"""What changes the cluster: server-side apply, delete, status, events.

Each call is safe to repeat. An object that has not changed since this process made it what the
manifest says is not applied again; that is an optimisation alone, and is forgotten with the
process.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from watercolour.logs import get
from watercolour_operator import names
from watercolour_operator.cluster import kinds, reduce, skew
from watercolour_operator.cluster.api import APPLY, MERGE, Api, Bucket, Raw
from watercolour_operator.cluster.errors import ApiError, NameTaken
from watercolour_operator.cluster.kinds import BY_NAME, Kind
from watercolour_operator.cluster.reduce import Entry, Run
from watercolour_operator.cluster.store import Key, Store
from watercolour_operator.names import Component
from watercolour_operator.observed import Child, Pod

log = get(__name__)

#: Objects of one run that are asked for at the same time.
AT_ONCE = 4
#: Longest message of an event that the API server takes.
LONGEST_MESSAGE = 1024
#: Seconds after which a definition that lacked fields is asked again whether it has them.
SKEW_SECONDS = 60.0
FIELD_MANAGER = {"fieldManager": names.MANAGER}
FORCED = {**FIELD_MANAGER, "force": "true"}


class Event(Protocol):
    """What is told about a run once."""

    @property
    def type(self) -> str:
        """Normal or Warning."""
        ...

    @property
    def reason(self) -> str:
        """A stable word."""
        ...

    @property
    def message(self) -> str:
        """A sentence."""
        ...


@dataclass
class Writer:
    """Applies and deletes the objects of runs, and tells the store what came of it."""

    api: Api
    store: Store
    #: After a restart an object whose annotation names the wanted manifest is believed, and
    #: applied again as this rate allows: a restart does not cost a call an object at once.
    checks: Bucket = field(default_factory=lambda: Bucket(per_second=5, burst=100))
    #: Fields of the status that the definition lacks, and until when that counts.
    lacking: tuple[str, ...] = ()
    lacking_until: float = 0.0

    async def apply(self, run: Run, manifests: Sequence[Raw]) -> bool:
        """Make the run's objects what the manifests say, in their order.

        Returns:
            Whether anything had to be written.

        Raises:
            NameTaken: an object of a needed name belongs to somebody else.
            ApiError: the API server refused or did not answer; the rest is not tried.
            WriteRefused: the Lease is not surely held any more.
        """
        key = (run.namespace, run.name)
        await self._find_unknown(key, run, manifests)
        written = False
        for manifest in manifests:
            written = await self._apply(key, run, manifest) or written
        return written

    def settled(self, run: Run, shared: str | None) -> bool:
        """Whether all is as it was applied, and nothing is to be checked now."""
        entries = self.store.of((run.namespace, run.name), run.uid, shared)
        unchecked = any(found.known and not found.checked for found in entries)
        return not any(found.disturbed for found in entries) and not (
            unchecked and self.checks.free
        )

    def lacks(self, run: Run, manifests: Sequence[Raw]) -> list[Raw]:
        """The manifests of which no object is known: they are to be created."""
        key = (run.namespace, run.name)
        return [
            found
            for found in manifests
            if self.store.entry(key, found["kind"], found["metadata"]["name"]) is None
        ]

    async def _find_unknown(self, key: Key, run: Run, manifests: Sequence[Raw]) -> None:
        """Look for objects of our names that no label shows; ours join the store."""
        unknown = [
            (BY_NAME[found["kind"]], found["metadata"]["name"], found["metadata"]["labels"])
            for found in self.lacks(run, manifests)
        ]
        few = asyncio.Semaphore(AT_ONCE)

        async def get(kind: Kind, name: str) -> Raw | None:
            async with few:
                return await self.api.get(kind, run.namespace, name, metadata=True)

        found = await asyncio.gather(*(get(kind, name) for kind, name, _ in unknown))
        for (kind, name, labels), raw in zip(unknown, found, strict=True):
            if raw is None:
                continue
            if not _is_ours(raw, run, labels):
                owners = [owner["name"] for owner in raw["metadata"].get("ownerReferences") or ()]
                raise NameTaken(kind.name, name, " and ".join(owners) or "nobody's run")
            await self._adopt(kind, run, name, labels)

    async def _adopt(self, kind: Kind, run: Run, name: str, labels: Mapping[str, str]) -> None:
        """Ours, but without our labels or not seen yet: taken for what apply will make of it."""
        raw = await self.api.get(kind, run.namespace, name, metadata=not kind.whole)
        if raw is not None:
            raw["metadata"]["labels"] = {**(raw["metadata"].get("labels") or {}), **labels}
            self.store.put(kind, raw)

    async def _apply(self, key: Key, run: Run, manifest: Raw) -> bool:
        kind, name = BY_NAME[manifest["kind"]], manifest["metadata"]["name"]
        digest = _digest(manifest)
        known = self.store.entry(key, kind.name, name)
        if known is not None and not self._needs(known, kind, run, digest):
            return False
        body = _marked(manifest, digest)
        query = FIELD_MANAGER
        if known is not None and _gives_up_replicas(manifest, known):
            await self._hand_over_replicas(kind, run, name, known)
        if known is not None:
            # Only the object that we know, never a newcomer of the same name.
            body["metadata"]["uid"] = known.record.uid
            query = FORCED
        raw = await self.api.write(
            "patch", kind, run.namespace, name, body=body, query=query, content=APPLY
        )
        made = self.store.put(kind, raw)
        if made is not None:
            made.known, made.checked = (digest, made.mark), True
        return True

    async def _hand_over_replicas(self, kind: Kind, run: Run, name: str, known: Entry) -> None:
        """Leave the number of pods as it is to whoever steers it from now on.

        A field that its only manager no longer applies goes back to its default, one pod; so
        another name holds it until the autoscaler writes.
        """
        record = known.record
        body: Raw = {
            "apiVersion": kind.api_version,
            "kind": kind.name,
            "metadata": {"name": name, "uid": record.uid},
            "spec": {"replicas": record.wanted if isinstance(record, Child) else None},
        }
        query = {"fieldManager": f"{names.MANAGER}-replicas", "force": "true"}
        await self.api.write(
            "patch", kind, run.namespace, name, body=body, query=query, content=APPLY
        )

    def _needs(self, known: Entry, kind: Kind, run: Run, digest: str) -> bool:
        """Whether an object that exists has to be applied again."""
        record = known.record
        if known.shared is None and known.run_uid != run.uid:
            raise NameTaken(kind.name, record.name, f"the run with uid {known.run_uid}")
        if isinstance(record, Child) and record.deleting:
            return False
        if known.known is None and known.applied == digest:
            known.known = (digest, known.mark)
        if known.known == (digest, known.mark) and (
            known.checked or not self.checks.take_if_free()
        ):
            return False
        return not kind.fixed or known.applied in (digest, None)

    async def remove(self, run: Run, kind: Kind, name: str, grace_seconds: int | None) -> bool:
        """Delete one object of the run; its pods follow, each with its own grace.

        Returns:
            Whether there was something to delete.
        """
        key = (run.namespace, run.name)
        known = self.store.entry(key, kind.name, name)
        if known is None or (known.shared is None and known.run_uid != run.uid):
            return False
        record = known.record
        if isinstance(record, Child) and record.deleting:
            return False
        body: Raw = {"preconditions": {"uid": record.uid}, "propagationPolicy": "Background"}
        if grace_seconds is not None and kind.name == "Pod":
            body["gracePeriodSeconds"] = grace_seconds
        try:
            raw = await self.api.write("delete", kind, run.namespace, name, body=body)
        except ApiError as error:
            # 404: it is gone already. 409: another object of the name has come.
            if error.status not in (404, 409):
                raise
            self.store.drop(kind, known)
            return True
        if raw.get("kind") == kind.name:
            self.store.put(kind, raw)
        else:
            self.store.drop(kind, known)
        return True

    async def annotate_pod(self, run: Run, name: str, key: str, value: str) -> None:
        """Set one annotation of a pod; a pod that is gone is no error."""
        known = self.store.entry((run.namespace, run.name), "Pod", name)
        if known is None:
            return
        metadata = {"uid": known.record.uid, "annotations": {key: value}}
        try:
            raw = await self.api.write(
                "patch",
                kinds.POD,
                run.namespace,
                name,
                body={"metadata": metadata},
                query=FIELD_MANAGER,
                content=MERGE,
            )
        except ApiError as error:
            if error.status not in (404, 409):
                raise
            return
        self.store.put(kinds.POD, raw)

    async def status(self, run: Run, status: Raw, *, quiet: bool = False) -> None:
        """Write the run's whole status; refused (409) when the run changed meanwhile.

        What an older definition does not declare is left out, and named in ``lacking``.

        Args:
            run: the run as it was seen.
            status: its new status.
            quiet: nothing follows from it, so the run is not looked at again for it.
        """
        known = time.monotonic() < self.lacking_until
        lacking = self.lacking if known else ()
        while True:
            try:
                await self._status(run, skew.without(status, lacking), quiet)
                break
            except ApiError as error:
                more = tuple(path for path in skew.undeclared(error) if path not in lacking)
                if not more:
                    raise
                lacking += more
                known = False
        if not known:
            self.lacking, self.lacking_until = lacking, time.monotonic() + SKEW_SECONDS

    async def _status(self, run: Run, status: Raw, quiet: bool) -> None:
        body = {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "metadata": {
                "name": run.name,
                "uid": run.uid,
                "resourceVersion": str(run.version),
            },
            "status": status,
        }
        raw = await self.api.write(
            "patch",
            kinds.RUN,
            run.namespace,
            run.name,
            body=body,
            query=FORCED,
            content=APPLY,
            below="status",
        )
        self.store.put_run(raw, quiet=quiet)

    async def delete_run(self, run: Run) -> None:
        """Delete the run itself: its time to live is over."""
        conditions = {"uid": run.uid, "resourceVersion": str(run.version)}
        body: Raw = {"preconditions": conditions, "propagationPolicy": "Background"}
        await self.api.write("delete", kinds.RUN, run.namespace, run.name, body=body)

    async def fresh_run(self, run: Run) -> Run | None:
        """The run as the server has it now; None when it is gone or another of its name."""
        raw = await self.api.get(kinds.RUN, run.namespace, run.name)
        key = (run.namespace, run.name)
        if raw is None or raw["metadata"]["uid"] != run.uid:
            self.store.drop_run(key, run.uid, run.version)
        if raw is None:
            return None
        self.store.put_run(raw)
        return self.store.runs.get(key) if raw["metadata"]["uid"] == run.uid else None

    async def fresh_pods(self, run: Run, component: Component) -> list[Pod]:
        """The pods of one part as the server has them now; the store learns of them."""
        labels = f"{names.RUN_UID}={run.uid},{names.COMPONENT}={component}"
        page = await self.api.page(kinds.POD, run.namespace, {"labelSelector": labels})
        for raw in page["items"]:
            self.store.put(kinds.POD, raw)
        found = (reduce.pod(raw) for raw in page["items"])
        return [pod for pod in found if pod is not None]

    async def event(self, run: Run, event: Event) -> None:
        """Post an event; one that cannot be posted is logged and lost."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        body: Raw = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"namespace": run.namespace, "generateName": f"{run.name}."},
            "involvedObject": {
                "apiVersion": names.API_VERSION,
                "kind": names.KIND,
                "namespace": run.namespace,
                "name": run.name,
                "uid": run.uid,
                "resourceVersion": str(run.version),
            },
            "type": event.type,
            "reason": event.reason,
            "message": event.message[:LONGEST_MESSAGE],
            "source": {"component": names.MANAGER},
            "reportingComponent": names.MANAGER,
            "reportingInstance": names.MANAGER,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        try:
            await self.api.write("create", kinds.EVENT, run.namespace, "", body=body)
        except ApiError as error:
            log.warning("event %s not posted: %s", event.reason, error.words)


def _gives_up_replicas(manifest: Raw, known: Entry) -> bool:
    """Whether a Deployment's number of pods is left to somebody else, an autoscaler, from now."""
    return known.sizes and "replicas" not in manifest["spec"]


def _is_ours(raw: Raw, run: Run, labels: Mapping[str, str]) -> bool:
    """By its owner; what several runs share and own by its label."""
    metadata = raw["metadata"]
    if shared := labels.get(names.SHARED):
        return (metadata.get("labels") or {}).get(names.SHARED) == shared
    if names.KEEP in labels and not metadata.get("ownerReferences"):
        return (metadata.get("labels") or {}).get(names.RUN) == run.name
    return any(owner["uid"] == run.uid for owner in metadata.get("ownerReferences") or ())


def _digest(manifest: Raw) -> str:
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2s(text.encode(), digest_size=8).hexdigest()


def _marked(manifest: Raw, digest: str) -> Raw:
    metadata: dict[str, Any] = dict(manifest["metadata"])
    metadata["annotations"] = {**(metadata.get("annotations") or {}), names.APPLIED: digest}
    return {**manifest, "metadata": metadata}
