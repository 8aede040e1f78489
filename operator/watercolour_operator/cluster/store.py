"""The records of every run in memory, by run. Told by watches and by our own writes alike.

A record is replaced by a newer one only, so that a late event cannot undo what a write's answer
has shown already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from watercolour_operator.cluster import reduce
from watercolour_operator.cluster.kinds import Kind
from watercolour_operator.cluster.reduce import Entry, Run
from watercolour_operator.observed import Child, Pod, Trouble

Raw = Mapping[str, Any]
#: Namespace and name of a run; an empty name stands for what runs of the namespace share.
Key = tuple[str, str]
#: Deleted objects that are remembered; late news comes within seconds.
REMEMBERED = 10_000


def _lasting(old: Child | Pod, new: Child | Pod) -> Child | Pod:
    """A newer record, with what only the older one shows: an object tells its last change alone."""
    if isinstance(old, Pod) and isinstance(new, Pod) and old.readied:
        return replace(new, readied=old.readied)
    return new


@dataclass
class Store:
    """What is known of all runs."""

    #: Told the key of every run of which something changed.
    changed: Callable[[Key], None] = lambda key: None
    runs: dict[Key, Run] = field(default_factory=dict[Key, Run])
    #: Kind and namespace → what keeps it from being watched; None once it has been listed.
    watches: dict[tuple[str, str | None], Trouble | None] = field(
        default_factory=dict[tuple[str, str | None], Trouble | None]
    )
    #: Key → (kind, name) → entry.
    _entries: dict[Key, dict[tuple[str, str], Entry]] = field(
        default_factory=dict[Key, dict[tuple[str, str], Entry]]
    )
    #: Uid of an object → the key under which it is kept.
    _keys: dict[str, Key] = field(default_factory=dict[str, Key])
    #: Uid of a deleted object → its last version, so that late news does not bring it back.
    _gone: dict[str, int] = field(default_factory=dict[str, int])

    # Runs.

    def put_run(self, raw: Raw, *, quiet: bool = False) -> None:
        """A run as an event or a call has shown it; older news is ignored.

        Args:
            raw: the run.
            quiet: nobody need look at it for this.
        """
        new = reduce.run(raw)
        key = (new.namespace, new.name)
        old = self.runs.get(key)
        if self._late(new.uid, new.version) or (old and old.version >= new.version):
            return
        if old and old.uid != new.uid:
            self._bury(old.uid, new.version)
        self.runs[key] = new
        if not quiet:
            self.changed(key)

    def drop_run(self, key: Key, uid: str, version: int) -> None:
        """A run that is deleted, and the version that showed it."""
        self._bury(uid, version)
        known = self.runs.get(key)
        if known and known.uid == uid:
            del self.runs[key]
        self.changed(key)

    def _bury(self, uid: str, version: int) -> None:
        self._gone[uid] = version
        if len(self._gone) > REMEMBERED:
            del self._gone[next(iter(self._gone))]

    def _late(self, uid: str, version: int) -> bool:
        return version <= self._gone.get(uid, -1)

    # Their objects.

    def put(self, kind: Kind, raw: Raw) -> Entry | None:
        """An object as an event or a call has shown it; older news is ignored."""
        new = reduce.entry(kind.name, raw)
        if new is None:
            return None
        uid, key, place = new.record.uid, (new.namespace, new.run), (kind.name, new.record.name)
        if self._late(uid, new.version):
            return None
        before = self._keys.get(uid)
        kept = self._entries[before][place] if before is not None else None
        if kept and (kept.version > new.version or (kept.version == new.version and before == key)):
            return kept
        if before is not None and before != key:
            # Somebody has changed the label that says whose it is.
            self._take_away(before, place)
        self._keys[uid] = key
        entries = self._entries.setdefault(key, {})
        old = entries.get(place)
        if old and old.record.uid == uid:
            new.known, new.checked = old.known, old.checked
            new.record = _lasting(old.record, new.record)
        elif old:
            self._keys.pop(old.record.uid, None)
        entries[place] = new
        if old is None or old.record != new.record or old.mark != new.mark:
            self.changed(key)
        return new

    def _take_away(self, key: Key, place: tuple[str, str]) -> None:
        entries = self._entries[key]
        del entries[place]
        if not entries:
            del self._entries[key]
        self.changed(key)

    def drop(self, kind: Kind, gone: Entry) -> None:
        """An object that is deleted, with the version that showed it."""
        uid = gone.record.uid
        self._bury(uid, gone.version)
        # Under the label that it had at the last, whatever it was deleted with.
        key = self._keys.pop(uid, None)
        if key is not None:
            self._take_away(key, (kind.name, gone.record.name))

    def drop_unlisted(
        self, kind: Kind, namespace: str | None, listed: set[str], version: int
    ) -> None:
        """After a list: objects of its scope that it lacks are gone, unless they are newer."""
        lost = [
            found
            for found in self.entries()
            if found.kind == kind.name
            and namespace in (None, found.namespace)
            and found.record.uid not in listed
            and found.version <= version
        ]
        for found in lost:
            self.drop(kind, found)

    def entry(self, key: Key, kind: str, name: str) -> Entry | None:
        """One object of a run's name, or one that the runs of its namespace share."""
        place = (kind, name)
        own = self._entries.get(key, {}).get(place)
        return own or self._entries.get((key[0], ""), {}).get(place)

    def entries(self) -> Iterator[Entry]:
        """Every object of every run."""
        for entries in self._entries.values():
            yield from entries.values()

    def of(self, key: Key, uid: str, shared: str | None = None) -> list[Entry]:
        """Every object of a run, and of what it shares under a digest."""
        own = [found for found in self._entries.get(key, {}).values() if found.run_uid == uid]
        if shared is None:
            return own
        others = self._entries.get((key[0], ""), {}).values()
        return own + [found for found in others if found.shared == shared]

    def foreign(self, key: Key, uid: str) -> tuple[Child, ...]:
        """Objects of the run's name that belong to another run, most often an older one."""
        every = (
            found.record for found in self._entries.get(key, {}).values() if found.run_uid != uid
        )
        return tuple(found for found in every if isinstance(found, Child))

    # The watches.

    @property
    def synced(self) -> bool:
        """Whether every watch has listed its kind at least once, or may never be able to."""
        return bool(self.watches) and all(found is None for found in self.watches.values())

    def blind(self, namespace: str) -> Trouble | None:
        """What keeps the operator from seeing all objects of a namespace; None when it does."""
        for (_, where), found in self.watches.items():
            if where in (None, namespace) and found is not None:
                return found
        return None
