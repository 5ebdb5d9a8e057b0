"""What lies in an archive or a bare folder of S3 now, as the verifier asks for it: versions, markers, uploads."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pii_tracer.app.aws_refusals import unreadable
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.stores.base import ObjectStore, StoreError
from pii_tracer.lake.stores.registry import store_at
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import object_prefix
from pii_tracer.model.plan import Copy, ErasurePlan
from pii_tracer.verify.object_version_claims import counts_uploads, looks_at, named_versions
from pii_tracer.verify.refused_places import Refused

if TYPE_CHECKING:
    from pii_tracer.lake.inventory import ObjectVersion
    from pii_tracer.lake.stores.s3.object_versions import S3Client
    from pii_tracer.lake.stores.s3.version_readability import VersionBytes

Written = Mapping[tuple[str, str], str]
"""SHA-256 (hex) of objects this run wrote, by key and version id."""


@dataclass(frozen=True)
class ArchiveObjects:
    """Objects of the copies of a plan. written: those that this run wrote, as its journal says now."""

    estate: Estate
    plan: ErasurePlan
    now: Callable[[], datetime]
    written: Callable[[], Written]

    def uploads(self, copy: Copy) -> tuple[int, tuple[Refused, ...]]:
        """Unfinished multipart uploads of a place: bytes that nobody can read. Or that they cannot be listed."""
        if not counts_uploads(copy, self.plan.copies):
            return 0, ()
        try:
            store, prefix = self._store(copy)
            return sum(1 for _ in store.uploads(prefix)), ()
        except StoreError as error:
            return 0, (Refused("ListMultipartUploads", error.code),)

    def listed(self, copy: Copy) -> Iterator[ObjectVersion]:
        """Every version and marker in the copy's place, as the bucket lists them. Use inside `bucket`."""
        store, prefix = self._store(copy)
        return store.versions(prefix)

    def chosen(self, copy: Copy, wanted: Container[tuple[str, str]]) -> Iterator[VersionBytes]:
        """Some versions in the copy's place, by key and version id. Use inside `bucket`."""
        from pii_tracer.lake.stores.s3.archive_versions import iter_version_bytes

        return iter_version_bytes(*self._place(copy), self.now(), wanted=wanted)

    def named(self, copy: Copy, places: Iterable[tuple[str, str]]) -> Iterator[VersionBytes]:
        """Some versions, by key and version id, one HeadObject each. Those that are gone are left out."""
        from pii_tracer.lake.stores.s3.version_readability import hidden_versions

        return hidden_versions(*self._place(copy)[:2], self.now(), sorted(places))

    def _store(self, copy: Copy) -> tuple[ObjectStore, str]:
        return store_at(self.estate, copy.location, copy.facts.get("region"))

    def _place(self, copy: Copy) -> tuple[S3Client, str, str]:
        from pii_tracer.lake.stores.s3.archive_versions import s3_clients

        place = object_prefix(copy.location)
        if place is None:
            raise EstateError("the copy lies in no bucket", where=copy.location, todo="plan again")
        return s3_clients(self.estate)(copy.facts.get("region")), *place

    def versions(self, copy: Copy) -> Iterator[VersionBytes]:
        """The object versions that are the copy's, as they are now; read when they are opened.

        Also those that the plan's steps name and that are still there, though the store does not list them.
        """
        from pii_tracer.lake.stores.s3.archive_versions import iter_version_bytes

        others = {tuple(place) for place in copy.facts.get("of_others", ())}
        unlisted = named_versions(self.plan.steps, copy)
        for version in iter_version_bytes(*self._place(copy), self.now(), self.written(), unwanted=others):
            unlisted.discard((version.key, version.version_id))
            if looks_at(copy, self.plan.copies, latest=version.latest):
                yield version
        yield from self.named(copy, unlisted)

    def bucket(self, copy: Copy) -> AbstractContextManager[None]:
        """What the store refuses, as our own error."""
        todo = "make the bucket reachable, then verify again"
        return unreadable("the bucket cannot be listed", copy.location, todo)
