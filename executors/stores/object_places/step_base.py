"""What every step on a place of an object store needs: its parameters, the store, and what the journal has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from executors.executor_parts import NotingPart
from pii_tracer.lake.stores.base import Absent
from pii_tracer.lake.stores.object_places.protocol import VersionedStore, versioned_store
from pii_tracer.lake.stores.object_places.version_types import StoredVersion
from pii_tracer.model.datasets import Format, Frozen
from pii_tracer.model.errors import RunError
from pii_tracer.model.locations import ObjectLocation, object_location


class VersionName(Frozen):
    """A version by its key and id."""

    key: str
    version_id: str


class VersionRef(VersionName):
    """A version as the plan read it. sha256: of its bytes, keyed (`MarkKey.of_content`)."""

    mark: str
    size: int
    sha256: str


class PlaceParameters(Frozen):
    """What every step says: where, and for which plan."""

    location: str
    plan_id: str

    @property
    def place(self) -> ObjectLocation:
        return object_location(self.location)


class RewriteParameters(PlaceParameters):
    """OBJECT_REWRITE."""

    format: Format
    versions: tuple[VersionRef, ...]


class DeleteParameters(PlaceParameters):
    """OBJECT_DELETE_VERSIONS. versions: noncurrent when the plan was made. replaced: live then, written over since.

    without_object: versions go although no object stands under their key, as their owner agreed.
    """

    versions: tuple[VersionRef, ...]
    replaced: tuple[VersionRef, ...]
    without_object: bool


class AwaitParameters(PlaceParameters):
    """OBJECT_AWAIT_PURGE. versions: those that may be kept as deleted ones. soft_delete_seconds: for how long.

    everything: all that lies in the place and was deleted before the step began.
    """

    versions: tuple[VersionName, ...]
    soft_delete_seconds: int
    everything: bool = False


@dataclass(frozen=True)
class ObjectPart(NotingPart):
    """One step on one place."""

    def store(self, place: ObjectLocation) -> VersionedStore:
        """Raises `EstateError`: the estate file does not declare it."""
        return versioned_store(self.ctx.estate, place)


def live_version(store: VersionedStore, key: str) -> StoredVersion | None:
    """What stands under a key; None where nothing does."""
    try:
        return store.live_version(key)
    except Absent:
        return None


def version_of(store: VersionedStore, ref: VersionName) -> StoredVersion | None:
    """A live or noncurrent version; None where it is gone."""
    try:
        return store.version(ref.key, ref.version_id)
    except Absent:
        return None


def another(store: VersionedStore, key: str) -> RunError:
    """The error for an object that is not the one that the plan read."""
    return RunError(
        "somebody changed an object after the plan was made; the step did not write it",
        where=f"{store.name}/{key}",
        todo="stop the writer and make a new plan",
    )


def named(place: ObjectLocation, treated: Iterable[tuple[str, str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Versions that are gone, as the facts of steps name them: below the place, with the hash that they had."""
    return [
        {"file": key.removeprefix(place.prefix), "version_id": version, "sha256_before": told["sha256_before"]}
        for key, version, told in sorted(treated, key=lambda one: one[:2])
    ]
