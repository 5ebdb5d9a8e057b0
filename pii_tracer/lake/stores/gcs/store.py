"""A bucket of Google Cloud Storage as a `VersionedStore`.

A version is a generation. Its mark is generation and metageneration, which every write and deletion names as its
condition (https://cloud.google.com/storage/docs/request-preconditions). Where the live generation is deleted, no older
one takes its place.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.inventory import ObjectVersion, Upload
from pii_tracer.lake.stores.base import Absent, Changed, Content, StoreError
from pii_tracer.lake.stores.gcs.credentials import default_credentials, no_credentials
from pii_tracer.lake.stores.gcs.json_api import ENDPOINT, GcsBucket
from pii_tracer.lake.stores.object_places.version_types import PLAN_TAG, StoredVersion, StoreSettings, VersionState
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import object_location

_KEPT = (
    "contentType",
    "contentEncoding",
    "contentDisposition",
    "contentLanguage",
    "cacheControl",
    "customTime",
    "storageClass",
    "kmsKeyName",
)
"""Fields that a new object takes over. `kmsKeyName` goes without its version."""
_TEXTS = ("contentType", "contentEncoding", "contentDisposition", "contentLanguage", "cacheControl")


@dataclass(frozen=True)
class GcsStore:
    """A bucket."""

    api: GcsBucket

    @classmethod
    def at(cls, estate: Estate, place: str, region: str | None = None) -> tuple[GcsStore, str]:
        """As the protocol says."""
        location = object_location(place)
        for declared in estate.object_stores:
            if declared.store == location.store and location.store.startswith("gs://"):
                headers: Callable[[], Mapping[str, str]] = (
                    no_credentials if declared.anonymous else default_credentials()
                )
                bucket = location.store.removeprefix("gs://")
                return cls(GcsBucket(bucket, declared.endpoint or ENDPOINT, headers)), location.prefix
        raise EstateError(
            "the estate file does not declare this bucket",
            where=location.store,
            todo="add it to `object_stores` in the estate file",
        )

    @property
    def name(self) -> str:
        """As `gs://bucket`."""
        return self.api.name

    # -- objects ------------------------------------------------------------------------------------------------------

    def read(self, key: str, at_most: int) -> Content:
        """The live generation's bytes and mark."""
        version = self.live_version(key)
        return Content(self.read_version(version, 0, min(at_most, version.size)), version.mark)

    def put_if_absent(self, key: str, data: bytes, media_type: str) -> str:
        """As the protocol says."""
        return self._put(key, data, {"contentType": media_type}, ifGenerationMatch="0").mark

    def put_if_unchanged(self, key: str, data: bytes, media_type: str, etag: str) -> str:
        """As the protocol says."""
        version = self._live_as(key, etag)
        return self._put(key, data, {"contentType": media_type}, **_matching(version)).mark

    def versions(self, prefix: str) -> Iterator[ObjectVersion]:
        """Live and noncurrent generations."""
        for version in self._listed(prefix, "versions"):
            yield ObjectVersion(
                key=version.key,
                version_id=version.version_id,
                latest=version.state is VersionState.LIVE,
                size=version.size,
                etag=version.mark,
                modified=version.modified,
            )

    def uploads(self, prefix: str) -> Iterator[Upload]:
        """None: the JSON API lists no unfinished uploads."""
        return iter(())

    def delete_version(self, key: str, version_id: str) -> None:
        """As the protocol says."""
        with suppress(Absent):
            self.api.delete(key, generation=version_id if version_id.isdecimal() else "1")

    # -- versions -----------------------------------------------------------------------------------------------------

    def settings(self) -> StoreSettings:
        """As the protocol says."""
        told = self.api.settings()
        try:
            return StoreSettings(
                soft_delete_seconds=int(told.get("softDeletePolicy", {}).get("retentionDurationSeconds", 0))
            )
        except (TypeError, ValueError, AttributeError):
            raise self.api.odd(None) from None

    def reader_options(self) -> dict[str, str]:
        """As the protocol says."""
        if self.api.endpoint == ENDPOINT:
            return {}
        told = {"gcs_base_url": self.api.endpoint, "client_email": "", "private_key": "", "private_key_id": ""}
        return {"google_service_account_key": json.dumps({**told, "disable_oauth": not self.api.headers()})}

    def all_versions(self, prefix: str) -> Iterator[StoredVersion]:
        """As the protocol says: two listings, since none has both."""
        yield from self._listed(prefix, "versions")
        yield from self._listed(prefix, "softDeleted")

    def live_objects(self, prefix: str) -> Iterator[StoredVersion]:
        """As the protocol says."""
        for item in self.api.pages(prefix):
            version = self._version(item)
            if version.state is not VersionState.LIVE:
                raise self.api.odd(prefix)
            yield version

    def version(self, key: str, version_id: str) -> StoredVersion:
        """As the protocol says."""
        return self._version(self.api.look(key, generation=version_id))

    def live_version(self, key: str) -> StoredVersion:
        """As the protocol says."""
        return self._version(self.api.look(key))

    def read_version(self, version: StoredVersion, first: int, at_most: int) -> bytes:
        """As the protocol says."""
        return self.api.read(version.key, version.version_id, first, at_most)

    def replace(self, old: StoredVersion, data: bytes, plan_id: str) -> StoredVersion:
        """As the protocol says. The access list goes along where the bucket has lists of objects."""
        told = self.api.look(old.key, generation=old.version_id, projection="full")
        if self._version(told).mark != old.mark:
            raise self._changed(old.key)
        kept = {name: told[name] for name in _KEPT if name in told}
        if "kmsKeyName" in kept:
            kept["kmsKeyName"] = str(kept["kmsKeyName"]).partition("/cryptoKeyVersions/")[0]
        if "acl" in told:
            kept["acl"] = [{"entity": one["entity"], "role": one["role"]} for one in told["acl"]]
        if contexts := _contexts(told):
            kept["contexts"] = {"custom": {name: {"value": value} for name, value in contexts.items()}}
        kept["metadata"] = {**told.get("metadata", {}), PLAN_TAG: plan_id}
        return self._put(old.key, data, kept, **_matching(old))

    def cannot_keep(self, version: StoredVersion) -> tuple[str, ...]:
        """As the protocol says: `replace` keeps everything."""
        return ()

    def unfinished(self, key: str, plan_id: str) -> bool:
        """As the protocol says: an object is written in one request."""
        return False

    def discard_unfinished(self, key: str, plan_id: str) -> None:
        """As the protocol says."""

    def delete_exactly(self, version: StoredVersion) -> None:
        """As the protocol says."""
        query = _matching(version)
        with suppress(Absent):
            self.api.delete(
                version.key, generation=version.version_id, ifMetagenerationMatch=query["ifMetagenerationMatch"]
            )

    def _put(self, key: str, data: bytes, resource: Mapping[str, Any], **conditions: str) -> StoredVersion:
        digest = base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
        made = self.api.write(key, data, {**resource, "md5Hash": digest}, **conditions)
        if made.get("md5Hash") != digest:
            raise StoreError(
                "the written object differs from the sent bytes",
                "OtherBytes",
                where=f"{self.name}/{key}",
                todo="compare it with its old generation, which may still exist, and restore the old version if needed",
            )
        return self._version(made)

    def _live_as(self, key: str, mark: str) -> StoredVersion:
        try:
            version = self.live_version(key)
        except Absent:
            raise self._changed(key) from None
        if version.mark != mark:
            raise self._changed(key)
        return version

    def _changed(self, key: str) -> Changed:
        return Changed("an object cannot be written", "conditionNotMet", where=f"{self.name}/{key}")

    def _listed(self, prefix: str, which: str) -> Iterator[StoredVersion]:
        seen = set[tuple[str, str]]()
        for item in self.api.pages(prefix, **{which: "true"}):
            version = self._version(item)
            known = (version.key, version.version_id)
            if known in seen or (version.state is VersionState.SOFT_DELETED) != (which == "softDeleted"):
                raise self.api.odd(prefix)  # a page again, or a listing of another kind than was asked for
            seen.add(known)
            yield version

    def _version(self, item: Mapping[str, Any]) -> StoredVersion:
        try:
            return _told(item)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise self.api.odd(str(item.get("name", ""))) from None


def _matching(version: StoredVersion) -> dict[str, str]:
    """Conditions of a write over a version."""
    generation, _, meta = version.mark.strip('"').partition("-")
    return {"ifGenerationMatch": generation, "ifMetagenerationMatch": meta}


def _told(item: Mapping[str, Any]) -> StoredVersion:
    """Raises KeyError, TypeError, ValueError, AttributeError: it is no object's resource."""
    generation, metadata = str(int(item["generation"])), item.get("metadata", {})
    held = {"temporaryHold": "a temporary hold", "eventBasedHold": "an event-based hold"}
    ends = [t for t in (item.get("retentionExpirationTime"), item.get("retention", {}).get("retainUntilTime")) if t]
    state = VersionState.NONCURRENT if "timeDeleted" in item else VersionState.LIVE
    if "softDeleteTime" in item:
        state = VersionState.SOFT_DELETED
    return StoredVersion(
        key=item["name"],
        version_id=generation,
        state=state,
        size=int(item["size"]),
        mark=f'"{generation}-{int(item["metageneration"])}"',
        modified=item["timeCreated"],  # `updated` moves when metadata does
        checksum=item.get("md5Hash") or item.get("crc32c", ""),
        storage_class=item.get("storageClass", ""),
        holds=tuple(words for name, words in held.items() if item.get(name)),
        retained_until=max(ends, default=None),
        gone_on=item.get("hardDeleteTime"),
        old_since=item.get("timeDeleted"),
        plan=metadata.get(PLAN_TAG),
        beside=(
            *(str(text) for pair in metadata.items() for text in pair if pair[0] != PLAN_TAG),
            *(str(text) for pair in _contexts(item).items() for text in pair),
            *(str(item[name]) for name in _TEXTS if name in item),
        ),
    )


def _contexts(item: Mapping[str, Any]) -> dict[str, Any]:
    """Keys and values that somebody attached (https://cloud.google.com/storage/docs/object-contexts)."""
    return {name: one.get("value", "") for name, one in item.get("contexts", {}).get("custom", {}).items()}
