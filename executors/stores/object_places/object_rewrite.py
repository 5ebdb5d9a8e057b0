"""Live objects of a bare folder, written again without the person.

The store writes the new version only if the old one still has its mark. The journal has the hash of the new bytes
before that, and the new object the plan's id, so that a run after a crash knows what is done.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from executors.executor_parts import placed
from executors.formats.plain_files.row_removal import MAX_OBJECT_BYTES, RowRemoval
from executors.stores.object_places.step_base import (
    ObjectPart,
    RewriteParameters,
    VersionRef,
    another,
    live_version,
    named,
)
from pii_tracer.lake.stores.base import Changed, StoreError
from pii_tracer.lake.stores.object_places.protocol import VersionedStore
from pii_tracer.lake.stores.object_places.version_file import VersionFile
from pii_tracer.lake.stores.object_places.version_types import StoredVersion
from pii_tracer.model.errors import RunError
from pii_tracer.run.executor_protocol import Check, Outcome, Progress

_WRITTEN = "written"


@dataclass(frozen=True)
class Rewriting(ObjectPart):
    """One OBJECT_REWRITE step."""

    parameters: RewriteParameters

    def check(self) -> None:
        """Raise `RunError` for a missing match, and for an object that changed or is held."""
        self._removal()
        store, written = self._store, self.noted(_WRITTEN)
        with self._tidied(store):
            for ref in self.parameters.versions:
                found = live_version(store, ref.key)
                if found is not None and not self._ours(store, written, found):
                    self._refuse_another(store, ref, found)

    def rehearse(self, names: Container[str]) -> None:
        """Read objects as `run` will, and write nothing. names: keys of those that are read; of the others only what
        one listing of the place tells is looked at, with their size: `run` reads each of them.

        Raises:
            RunError: as `run` would, for the first object that it refuses.
        """
        removal, store = self._removal(), self._store
        wanted = {ref.key for ref in self.parameters.versions}
        listed = store.live_objects(self.parameters.place.prefix)
        there = {found.key: found for found in listed if found.key in wanted}
        for ref in self.parameters.versions:
            found = there.get(ref.key)
            if found is None:
                continue
            self._refuse_another(store, ref, found)
            self._refuse_large(store, found)
            if ref.key in names:
                with placed(f"{store.name}/{ref.key}"):
                    removal.kept(self._read(store, found), ref.key)

    def run(self) -> Outcome:
        """Object by object; what this plan wrote before a crash is known by its id and the journal's hash."""
        store = self._store
        with self._tidied(store):
            return self._rewritten(store)

    @contextmanager
    def _tidied(self, store: VersionedStore) -> Iterator[None]:
        """Where the step cannot go on, what killed rewrites left beside any of its objects goes."""
        try:
            yield
        except RunError:
            with suppress(StoreError):  # the error that counts is the first one, and verification finds the file
                for ref in self.parameters.versions:
                    store.discard_unfinished(ref.key, self.parameters.plan_id)
            raise

    def _rewritten(self, store: VersionedStore) -> Outcome:
        removal, written = self._removal(), self.noted(_WRITTEN)
        done: dict[str, Mapping[str, Any]] = {}
        left_alone = gone = 0
        for ref in self.parameters.versions:
            found = live_version(store, ref.key)
            if found is None:
                gone += 1
            elif self._ours(store, written, found):
                done[ref.key] = written[ref.key]
            elif told := self._one(store, removal, ref, found):
                done[ref.key] = told
            else:
                left_alone += 1
            store.discard_unfinished(ref.key, self.parameters.plan_id)
        ids = {ref.key: ref.version_id for ref in self.parameters.versions}
        return Outcome(
            {
                "files": named(self.parameters.place, ((key, ids[key], told) for key, told in done.items())),
                "files_rewritten": len(done),
                "left_alone": left_alone,
                "gone": gone,
                "rows_dropped": sum(told["rows_dropped"] for told in done.values()),
            }
        )

    def verify(self) -> Check:
        """Every live object is the one that was written, or was read and is free of the person, or is gone."""
        removal, store, written = self._removal(), self._store, self.noted(_WRITTEN)
        findings: set[str] = set()
        for ref in self.parameters.versions:
            if store.unfinished(ref.key, self.parameters.plan_id):
                findings.add("an interrupted rewrite left a temporary file")
            found = live_version(store, ref.key)
            if found is None or self._ours(store, written, found):
                continue
            if found.version_id != ref.version_id:
                findings.add("a different process changed an object")
            elif removal.kept(self._read(store, found), ref.key).data is not None:
                findings.add("an object still contains the person")
        return Check(not findings, tuple(sorted(findings)))

    def probe(self) -> Progress:
        """Whether this plan wrote any of the objects."""
        if self.verify().ok:
            return Progress.DONE
        store, written = self._store, self.noted(_WRITTEN)
        there = (live_version(store, ref.key) for ref in self.parameters.versions)
        ours = any(found is not None and self._ours(store, written, found) for found in there)
        return Progress.PARTIAL if ours else Progress.NOT_STARTED

    @property
    def _store(self) -> VersionedStore:
        return self.store(self.parameters.place)

    def _removal(self) -> RowRemoval:
        match = self.copy.match if self.copy else None
        return RowRemoval.of(self.ctx, self.copy, match, self.parameters.format)

    def _ours(self, store: VersionedStore, written: Mapping[str, Mapping[str, Any]], found: StoredVersion) -> bool:
        """Whether this plan wrote what stands there: by its id, and by the bytes that it was about to write."""
        known = written.get(found.key)
        if known is None or found.plan != self.parameters.plan_id:
            return False
        return bool(hashlib.sha256(self._read(store, found)).hexdigest() == known["sha256"])

    def _refuse_another(self, store: VersionedStore, ref: VersionRef, found: StoredVersion) -> None:
        """Raise `RunError` for an object that changed or is held."""
        if found.mark != ref.mark or found.size != ref.size:
            raise another(store, ref.key)
        if found.holds:
            raise RunError(
                f"an object is under {' and '.join(found.holds)}; the step did not change it",
                where=f"{store.name}/{ref.key}",
                todo="ask the owner to release the hold, then run `pii-tracer resume`",
            )

    def _one(
        self, store: VersionedStore, removal: RowRemoval, ref: VersionRef, found: StoredVersion
    ) -> dict[str, Any] | None:
        """What was done with an object; None where it holds nobody and stays."""
        self._refuse_another(store, ref, found)
        old = self._read(store, found)
        before = hashlib.sha256(old).hexdigest()
        if self.ctx.marks.of_content(ref.key, before) != ref.sha256:
            raise another(store, ref.key)
        kept = removal.kept(old, ref.key)
        if kept.data is None:
            return None
        note = {
            "sha256_before": before,
            "sha256": hashlib.sha256(kept.data).hexdigest(),
            "rows_dropped": kept.rows_before - kept.rows_after,
        }
        self.ctx.note(self.step_id, {_WRITTEN: {ref.key: note}})
        try:
            made = store.replace(found, kept.data, self.parameters.plan_id)
        except Changed:
            raise another(store, ref.key) from None
        if self._read(store, made) != kept.data:
            raise RunError(
                "the written object differs from the sent bytes",
                where=f"{store.name}/{ref.key}",
                todo=(
                    "compare the object with its old version, which may still exist, and restore the old version if "
                    "needed"
                ),
            )
        return note

    def _refuse_large(self, store: VersionedStore, version: StoredVersion) -> None:
        if version.size > MAX_OBJECT_BYTES:
            raise RunError(
                f"the object has {version.size} bytes, more than the limit of a rewrite in memory",
                where=f"{store.name}/{version.key}",
                todo="let the job write smaller objects, then make a new plan",
            )

    def _read(self, store: VersionedStore, version: StoredVersion) -> bytes:
        self._refuse_large(store, version)
        where = f"{store.name}/{version.key}"
        data = VersionFile(store, version.key, version.size, version).whole()
        if len(data) != version.size:
            raise RunError("the bytes of an object ended too early", where=where, todo="run `pii-tracer resume`")
        return data
