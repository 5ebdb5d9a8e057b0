"""What a store must answer so that persons are erased in its places: `ObjectStore` and, beside it, versions.

An adapter (`lake/stores/gcs`) is one class with both protocols, registered by its URI scheme under `pii_tracer.stores`.
Planning, executors and verification know this protocol and no provider.

What each adapter owes:

- A listing is whole or an error. A page that repeats, a token that leads nowhere, an answer without the fields that
  it must have: `StoreError`, never a shorter listing.
- A read gives the bytes of exactly the version that was asked for.
- A write or a deletion carries its condition to the store. No look before the write stands in for that.
- `Absent` and `Changed` are what they say; a hold, a retention or a missing right is another `StoreError`, whose `code`
  is the store's own word and whose `todo` says what to grant or release.
- Answers that ask for patience (429, 503) are asked again for a while, then are a `StoreError`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, cast

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.stores.base import ObjectStore
from pii_tracer.lake.stores.object_places.version_types import StoredVersion, StoreSettings
from pii_tracer.lake.stores.registry import store_at
from pii_tracer.model.locations import ObjectLocation


class VersionedStore(ObjectStore, Protocol):
    """A store of objects that lists and treats each version. Every method raises `StoreError` as `ObjectStore`'s do."""

    def settings(self) -> StoreSettings:
        """What the bucket or container is set to do now."""

    def reader_options(self) -> dict[str, str]:
        """How readers of tables written in Rust reach the store (https://docs.rs/object_store)."""

    def all_versions(self, prefix: str) -> Iterator[StoredVersion]:
        """Live, noncurrent and soft-deleted versions whose key begins so, to the end of each listing."""

    def live_objects(self, prefix: str) -> Iterator[StoredVersion]:
        """Live versions whose key begins so, to the end of the listing."""

    def version(self, key: str, version_id: str) -> StoredVersion:
        """A live or noncurrent version as it is now. Raises Absent: it is gone, or soft-deleted."""

    def live_version(self, key: str) -> StoredVersion:
        """What stands under a key now. Raises Absent: nothing does."""

    def read_version(self, version: StoredVersion, first: int, at_most: int) -> bytes:
        """Bytes of a live or noncurrent version from an offset on. Raises Absent: it is gone."""

    def replace(self, old: StoredVersion, data: bytes, plan_id: str) -> StoredVersion:
        """Write new bytes over a live version, if it still has its mark; returns the new version.

        The new version has the old one's storage class, headers, metadata, tags and access list, and `PLAN_TAG` beside
        them. What cannot be kept is a `StoreError` before anything is written.

        Raises:
            Changed: another version stands there, its metadata changed, or nothing does.
        """

    def cannot_keep(self, version: StoredVersion) -> tuple[str, ...]:
        """What `replace` could not keep of a live version, in words for people: planning asks, and the step again."""

    def unfinished(self, key: str, plan_id: str) -> bool:
        """Whether a `replace` of the plan that was killed left something beside the object."""

    def discard_unfinished(self, key: str, plan_id: str) -> None:
        """Remove what a `replace` of the plan that was killed left beside the object."""

    def delete_exactly(self, version: StoredVersion) -> None:
        """Delete a noncurrent version by its id, if it still has its mark. One that is gone is deleted already.

        Raises:
            Changed: its metadata changed.
        """


def versioned_store(estate: Estate, location: ObjectLocation) -> VersionedStore:
    """The store that a place lies in. Raises `EstateError` as `store_at`: not declared, or no adapter is installed."""
    return cast(VersionedStore, store_at(estate, str(location))[0])
