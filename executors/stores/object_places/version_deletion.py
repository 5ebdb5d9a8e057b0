"""Old versions of objects: deleted by their ids, and waited for until the store has let go of their bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from executors.stores.object_places.step_base import (
    AwaitParameters,
    DeleteParameters,
    ObjectPart,
    VersionRef,
    another,
    live_version,
    named,
    version_of,
)
from pii_tracer.lake.stores.base import Changed
from pii_tracer.lake.stores.object_places.protocol import VersionedStore
from pii_tracer.lake.stores.object_places.version_types import StoredVersion, VersionState
from pii_tracer.model.errors import RunError
from pii_tracer.model.timestamps import instant
from pii_tracer.run.executor_protocol import Check, Outcome, Progress

_REMOVED = "removed"
_BEGAN = "waits_since"
_AGAIN = timedelta(hours=1)
"""Until the next look, where the day that the store named has come and the bytes are still listed."""


@dataclass(frozen=True)
class DeletingVersions(ObjectPart):
    """One OBJECT_DELETE_VERSIONS step."""

    parameters: DeleteParameters

    def check(self) -> None:
        """Raise `RunError` for a version that changed, or is live again."""
        store = self._store
        for ref in self.parameters.versions:
            if found := version_of(store, ref):
                self._refuse_another(store, ref, found)

    def run(self) -> Outcome:
        """Exactly the listed versions, each if it still has its mark. One whose object is gone stays, unless agreed."""
        store, done = self._store, self.noted(_REMOVED)
        left_alone = 0
        for ref, was_live in self._refs():
            found = version_of(store, ref)
            if found is None:
                continue
            if was_live and found.state is VersionState.LIVE:
                left_alone += 1  # nobody was in it, so that nothing was written over it
                continue
            if not was_live:
                self._refuse_another(store, ref, found)
            live = self._refuse_last(store, ref)
            note = {"sha256_before": None}  # the plan has a keyed one, and its mark says which version it is
            self.ctx.note(self.step_id, {_REMOVED: {_name(ref): note}})
            try:
                store.delete_exactly(found)
            except Changed:
                raise another(store, ref.key) from None
            self._refuse_astray(store, ref, live)
            done[_name(ref)] = note
        refs = ((ref.key, ref.version_id, done[_name(ref)]) for ref, _ in self._refs() if _name(ref) in done)
        return Outcome(
            {
                "files": named(self.parameters.place, refs),
                "versions_deleted": len(done),
                "left_alone": left_alone,
            }
        )

    def verify(self) -> Check:
        """None of the listed versions can be read, asked for by its id: a listing may leave out what is there."""
        left = self._left()
        return Check.none_left(left, "old version is", "old versions are", "still there")

    def probe(self) -> Progress:
        """How many of the versions are gone."""
        left = self._left()
        if not left:
            return Progress.DONE
        return Progress.PARTIAL if self.noted(_REMOVED) else Progress.NOT_STARTED

    @property
    def _store(self) -> VersionedStore:
        return self.store(self.parameters.place)

    def _refs(self) -> Iterator[tuple[VersionRef, bool]]:
        """Every listed version, and whether it was live when the plan was made."""
        yield from ((ref, False) for ref in self.parameters.versions)
        yield from ((ref, True) for ref in self.parameters.replaced)

    def _left(self) -> int:
        found = ((version_of(self._store, ref), was_live) for ref, was_live in self._refs())
        return sum(v is not None and not (was_live and v.state is VersionState.LIVE) for v, was_live in found)

    @staticmethod
    def _refuse_another(store: VersionedStore, ref: VersionRef, found: StoredVersion) -> None:
        if found.state is not VersionState.NONCURRENT or (found.mark, found.size) != (ref.mark, ref.size):
            raise another(store, ref.key)

    def _refuse_last(self, store: VersionedStore, ref: VersionRef) -> StoredVersion | None:
        """What stands under the key. Raises `RunError` where nothing does and that was not agreed."""
        live = live_version(store, ref.key)
        if not self.parameters.without_object and live is None:
            raise RunError(
                "an object was deleted after the plan was made; only its old version has rows of other people, so "
                "the step kept it",
                where=f"{store.name}/{ref.key}",
                todo="restore the object, or accept the loss with `deletable`; then make a new plan",
            )
        return live

    @staticmethod
    def _refuse_astray(store: VersionedStore, ref: VersionRef, live: StoredVersion | None) -> None:
        """Raises `RunError` where the live object went with its old version, as some emulators have it."""
        if live is not None and live_version(store, ref.key) is None:
            raise RunError(
                "an object disappeared after the deletion of its old version; the step deleted no other version",
                where=f"{store.name}/{ref.key}",
                todo="restore the object, and check the store, which does not behave as its interface requires",
            )


@dataclass(frozen=True)
class AwaitingPurge(ObjectPart):
    """One OBJECT_AWAIT_PURGE step."""

    parameters: AwaitParameters

    def check(self) -> None:
        """Raise `EstateError` where the store does not list what it keeps of deleted objects."""
        self._kept()

    def run(self) -> Outcome:
        """Look once; nobody can hurry the store."""
        kept = self._kept()
        facts = {"kept": len(kept), "kept_until": max((v.gone_on or "" for v in kept), default="")}
        facts |= {_BEGAN: (self._began() or self.ctx.now()).isoformat()}
        if not kept:
            return Outcome(facts)
        return Outcome(facts, self._until(kept), "the store retains deleted bytes until that time")

    def verify(self) -> Check:
        """None of the versions is kept as a deleted one."""
        kept = self._kept()
        day = max((v.gone_on or "a day that the store does not report" for v in kept), default="")
        return Check.none_left(len(kept), "deleted version is", "deleted versions are", f"kept until {day}")

    def probe(self) -> Progress:
        """Whether all are gone."""
        return Progress.DONE if self.verify().ok else Progress.NOT_STARTED

    def _kept(self) -> list[StoredVersion]:
        place = self.parameters.place
        store, versions = self.store(place), self.parameters.versions
        mine, keys = {(ref.key, ref.version_id) for ref in versions}, {ref.key for ref in versions}
        by_key = not store.settings().keeps_ids
        kept = (v for v in store.all_versions(place.prefix) if v.state is VersionState.SOFT_DELETED)
        if self.parameters.everything:
            since = self._began()
            return [v for v in kept if since is None or v.old_since is None or instant(v.old_since) < since]
        return [v for v in kept if (v.key, v.version_id) in mine or (by_key and v.key in keys)]

    def _began(self) -> datetime | None:
        """When the step was first run; what is deleted after that, writers delete who are at work."""
        told = [facts[_BEGAN] for facts in self.ctx.told(self.step_id) if _BEGAN in facts]
        return datetime.fromisoformat(told[0]) if told else None

    def _until(self, kept: list[StoredVersion]) -> datetime:
        """When to look again: on the last day that the store names, if that is still to come."""
        now = self.ctx.now()
        last = max((instant(version.gone_on) for version in kept if version.gone_on), default=now)
        return last if last > now and all(version.gone_on for version in kept) else now + _AGAIN


def _name(ref: VersionRef) -> str:
    return f"{ref.key}?version={ref.version_id}"
