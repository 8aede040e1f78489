"""Gathers one frozen ``Observed`` from the caches. It judges nothing and changes nothing."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml
from pydantic import ValidationError

from watercolour.api import load, yaml_text
from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.api.spec import RunSpec
from watercolour.api.status import Phase, Status
from watercolour_operator import desired, names
from watercolour_operator.cluster import errors, read, reduce
from watercolour_operator.cluster.api import Api
from watercolour_operator.cluster.errors import ApiError
from watercolour_operator.cluster.kinds import BY_NAME
from watercolour_operator.cluster.reduce import Run
from watercolour_operator.cluster.store import Key, Store
from watercolour_operator.desired.run import scorer_digest
from watercolour_operator.observed import Child, Observed, Pod, Trouble
from watercolour_operator.polls import Polls

OVER = (Phase.SUCCEEDED, Phase.FAILED)
#: In these a run's objects are applied; one that is suspended looks after none.
AT_WORK = (Phase.STARTING, Phase.RUNNING)
#: Seconds for which a Secret or claim that was found counts as found, and one that was missed
#: as missing.
FOUND_SECONDS, MISSED_SECONDS = 600.0, 10.0
#: Seconds that a Job may be without pods before its events are read for the reason.
PODLESS = timedelta(seconds=5)
#: Seconds between two readings of them.
EVENTS_SECONDS = 15.0


@dataclass
class Remembered:
    """Answers of the API server that are kept for a while, so that a look costs no call."""

    #: (kind, namespace, name) → whether it exists, and until when that counts.
    exists: dict[tuple[str, str, str], tuple[bool, float]] = field(
        default_factory=dict[tuple[str, str, str], tuple[bool, float]]
    )
    #: Uid of a run → version of its ConfigMap, and the packed specification in it.
    started: dict[str, tuple[int, bytes | None]] = field(
        default_factory=dict[str, tuple[int, bytes | None]]
    )
    #: Uid of a Job → why it has no pods, and until when that counts.
    podless: dict[str, tuple[str | None, float]] = field(
        default_factory=dict[str, tuple[str | None, float]]
    )

    def forget(self, uid: str) -> None:
        """A run is gone."""
        self.started.pop(uid, None)
        now = time.monotonic()
        self.exists = {key: kept for key, kept in self.exists.items() if kept[1] > now}
        self.podless = {key: kept for key, kept in self.podless.items() if kept[1] > now}


@dataclass
class Observer:
    """Knows where everything that is known of a run is kept."""

    api: Api
    store: Store
    polls: Polls
    remembered: Remembered = field(default_factory=Remembered)

    async def observe(self, run: Run, trouble: Trouble | None) -> Observed:
        """The run and its surroundings now.

        Args:
            run: the run.
            trouble: what kept the operator from its work at the last attempt.

        Raises:
            ApiError: what is not in the caches could not be asked.
        """
        key = (run.namespace, run.name)
        spec, problem = specification(run)
        shares = shared_digest(run, spec)
        entries = self.store.of(key, run.uid, shares)
        children = tuple(found.record for found in entries if isinstance(found.record, Child))
        pods = tuple(found.record for found in entries if isinstance(found.record, Pod))
        answers = self.polls.answers(key, run.uid)
        sharers = self._sharers(run, shares) if shares else ()
        wanting = [other for other, status in sharers if status.scorer in ("Ready", "Starting")]
        seen = Observed(
            now=datetime.now(UTC),
            namespace=run.namespace,
            name=run.name,
            uid=run.uid,
            generation=run.generation,
            created=run.created,
            spec=spec,
            spec_problem=problem,
            status=status_of(run),
            deleting=run.deleting,
            children=await self._with_problems(run.namespace, children, pods),
            pods=pods,
            foreign=self.store.foreign(key, run.uid),
            progress=answers.progress,
            demand=answers.demand,
            loads=answers.loads,
            trouble=trouble,
            started_with=await self._started_with(run, children),
            scorer_wanted_elsewhere=bool(wanting),
            scorer_kept_elsewhere=any(status.phase in AT_WORK for _, status in sharers),
            scorer_users=1 + len(wanting),
            scorer_sharers=tuple((other.name, other.uid) for other, _ in sharers),
        )
        if spec is None or run.deleting or seen.status.phase in OVER:
            return seen
        try:
            missing = await self._missing(run.namespace, spec)
        except ApiError as error:
            unasked = errors.trouble(error)
            if unasked.reason is Reason.API_UNAVAILABLE:
                raise
            # Refused for good: a run that trains is looked after all the same.
            return replace(seen, unasked=unasked)
        return replace(seen, missing=missing)

    def _sharers(self, run: Run, digest: str) -> list[tuple[Run, Status]]:
        """The other runs of the namespace that name the same shared scorer and are not over."""
        found: list[tuple[Run, Status]] = []
        for (namespace, _), other in self.store.runs.items():
            if namespace != run.namespace or other.uid == run.uid or not other.shares:
                continue
            status = status_of(other)
            if other.deleting or status.phase in OVER:
                continue
            if shared_digest(other, specification(other)[0]) == digest:
                found.append((other, status))
        return sorted(found, key=lambda one: one[0].name)

    async def _started_with(self, run: Run, children: Iterable[Child]) -> RunSpec | None:
        name = names.config(run.name)
        entry = self.store.entry((run.namespace, run.name), "ConfigMap", name)
        if entry is None or entry.run_uid != run.uid:
            return None
        known = self.remembered.started.get(run.uid)
        if known is None or known[0] != entry.version:
            paths = (names.START_FILE, names.SPEC_FILE)
            text = await read.config(self.api, run.namespace, name, *paths)
            known = (entry.version, _spec_in(text))
            self.remembered.started[run.uid] = known
        if known[1] is None:
            return None
        return RunSpec.model_validate_json(reduce.unpacked(known[1]), by_name=True)

    async def _missing(self, namespace: str, spec: RunSpec) -> tuple[str, ...]:
        """Secrets and claims that the specification names and the cluster lacks."""
        missing: list[str] = []
        for need in desired.needs(spec):
            place = (need.kind, namespace, need.name)
            known, now = self.remembered.exists.get(place), time.monotonic()
            if known is None or known[1] < now:
                raw = await self.api.get(BY_NAME[need.kind], namespace, need.name, metadata=True)
                seconds = FOUND_SECONDS if raw else MISSED_SECONDS
                known = self.remembered.exists[place] = (raw is not None, now + seconds)
            if not known[0]:
                key = f" with the key {need.key}" if need.key else ""
                missing.append(f"{need.kind} {need.name}{key} ({need.field})")
        return tuple(missing)

    async def _with_problems(
        self, namespace: str, children: tuple[Child, ...], pods: tuple[Pod, ...]
    ) -> tuple[Child, ...]:
        """A Job that gets no pods says why in its events alone."""
        owners = {pod.owner_uid for pod in pods}
        latest = datetime.now(UTC) - PODLESS
        found: list[Child] = []
        for child in children:
            podless = (
                child.kind == "Job"
                and child.finished is None
                and not child.suspended
                and not child.deleting
                and child.uid not in owners
                and child.created < latest
            )
            words = await self._podless(namespace, child.uid) if podless else None
            found.append(replace(child, problem=words) if words else child)
        return tuple(found)

    async def _podless(self, namespace: str, uid: str) -> str | None:
        known, now = self.remembered.podless.get(uid), time.monotonic()
        if known is None or known[1] < now:
            words = await read.refusal(self.api, namespace, uid)
            known = self.remembered.podless[uid] = (words, now + EVENTS_SECONDS)
        return known[0]


def specification(run: Run) -> tuple[RunSpec | None, str | None]:
    """The run's specification, or what is wrong with it."""
    try:
        return RunSpec.model_validate_json(run.spec, by_alias=True, by_name=False), None
    except ValidationError:
        pass
    try:
        # Slower, and in words that name field, value and remedy.
        whole = {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "metadata": {"name": run.name},
            "spec": run.spec_data,
        }
        return load.from_dict(whole, source="spec").spec, None
    except InputError as error:
        return None, str(error)


def status_of(run: Run) -> Status:
    """The run's status; an empty one when it is none of ours."""
    try:
        return Status.model_validate_json(run.status, by_alias=True)
    except ValidationError:
        return Status()


def shared_digest(run: Run, spec: RunSpec | None) -> str | None:
    """What the run's shared scorer is known by; None when it shares none."""
    shares = spec is not None and spec.scorer.sharing == "Namespace"
    return scorer_digest(spec) if spec is not None and shares else None


def wake_sharers(store: Store, key: Key) -> list[Key]:
    """The runs of a namespace that may care about what its runs share."""
    return [at for at, run in store.runs.items() if at[0] == key[0] and run.shares]


def _spec_in(text: str | None) -> bytes | None:
    """The specification of a run.yaml, as packed JSON; None when it cannot be read."""
    if text is None:
        return None
    for reader in (_quickly, yaml_text.mapping):
        try:
            whole = load.from_dict(reader(text, names.SPEC_FILE), source=names.SPEC_FILE)
        except (InputError, yaml.YAMLError):
            continue
        return reduce.packed(whole.spec.model_dump_json().encode())
    return None


def _quickly(text: str, source: str) -> dict[str, Any]:
    """YAML as libyaml reads it, ten times as fast: enough for what we have written ourselves."""
    found = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return found if isinstance(found, dict) else {}
