"""A container of Azure Blob Storage as a store of objects with versions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from pii_tracer.common.parallel_map import several
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.inventory import ObjectVersion, Upload
from pii_tracer.lake.stores.azure.account_settings import (
    container_holds,
    deleted_containers,
    has_access_lists,
    settings_of,
)
from pii_tracer.lake.stores.azure.client import ONCE, azure_errors, files_of, patiently, service_of
from pii_tracer.lake.stores.azure.file_rewrite import FileRewrite
from pii_tracer.lake.stores.azure.listed_blobs import (
    FOLDER,
    PLAN,
    SNAPSHOT,
    UNCOMMITTED,
    UNVERSIONED,
    deleted_above,
    if_match,
    is_block_blob,
    is_folder,
    is_past,
    listed,
    moment,
    stored,
    uncommitted,
    version_id,
)
from pii_tracer.lake.stores.azure.login import SCOPE, is_login
from pii_tracer.lake.stores.base import Absent, Changed, Content, StoreError
from pii_tracer.lake.stores.object_places.version_types import StoredVersion, StoreSettings
from pii_tracer.model.azure_location import azure_location, is_azure
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import object_location

if TYPE_CHECKING:
    from azure.storage.blob import BlobClient, BlobProperties, BlobServiceClient, ContainerClient
    from azure.storage.filedatalake import FileSystemClient

_ABSENT: dict[str, type[StoreError]] = {"BlobNotFound": Absent, "ResourceNotFound": Absent}
_CHANGED: dict[str, type[StoreError]] = {"ConditionNotMet": Changed, "BlobAlreadyExists": Changed}
_IS_CURRENT = "OperationNotAllowedOnRootBlob"
"""The service deletes no current version by its id: its blob has to be deleted, which makes it a past version."""
_NO_BYTES = "InvalidRange"
"""What the service answers to who asks for bytes of an empty blob."""
_WRITE, _DELETE, _READ = "a blob cannot be written", "a version cannot be deleted", "a blob cannot be read"
_NO_ADDRESS = "an owner and an access list, but the address of the DFS service is not known (set `dfs_endpoint`)"
_NO_RIGHT = "an owner and an access list, which a signature cannot set (use a key, or log in with Entra ID)"
"""https://learn.microsoft.com/rest/api/storageservices/create-account-sas: it has no rights for them."""
_NO_TABLES = (
    "Azure gives engines no access to an account without a hierarchical namespace while its soft delete is on: turn"
    " soft delete off, then plan again"
)
"""https://learn.microsoft.com/rest/api/storageservices/datalakestoragegen2 (`EndpointUnsupportedAccountFeatures`)."""


@dataclass(frozen=True)
class AzureStore:
    """A container, and the client that reaches its account. name: as `abfss://container@account.dfs.core.windows.net`.

    files: the same container by the DFS service; None where nobody says at which address.
    """

    service: BlobServiceClient
    container_name: str
    name: str
    files: FileSystemClient | None = None

    @classmethod
    def at(cls, estate: Estate, place: str, region: str | None = None) -> tuple[AzureStore, str]:
        """As the protocol says."""
        location = object_location(place)
        for declared in estate.object_stores:
            if declared.store == location.store and is_azure(location.store):
                found = azure_location(location.store)
                anonymous = declared.anonymous
                service = service_of(found, declared.endpoint, anonymous=anonymous)
                files = files_of(found, declared.endpoint, declared.dfs_endpoint, anonymous=anonymous)
                return cls(service, found.container, location.store, files), location.prefix
        raise EstateError(
            "the estate file does not declare this container",
            where=location.store,
            todo="add it to `object_stores` in the estate file",
        )

    @cached_property
    def _container(self) -> ContainerClient:
        return self.service.get_container_client(self.container_name)

    @cached_property
    def hierarchical(self) -> bool:
        """Whether the account has a hierarchical namespace (Data Lake Storage Gen2).

        Raises:
            StoreError: refused.
        """
        if is_login(self.service.credential):
            return has_access_lists(self.files, self.name)
        with azure_errors("the account's kind cannot be read", self.name):
            return bool(self._container.get_account_information().get("is_hns_enabled"))

    def read(self, key: str, at_most: int) -> Content:
        """Get Blob; what is longer than one answer is read on the condition that it has not changed."""
        try:
            with azure_errors(_READ, self._where(key), _ABSENT | _CHANGED):
                found = self._blob(key).download_blob(offset=0, length=at_most)
                return Content(bytes(found.readall()), str(found.properties.etag))
        except StoreError as error:
            if error.code != _NO_BYTES:
                raise
        with azure_errors(_READ, self._where(key), _ABSENT):
            now = self._blob(key).get_blob_properties()
        if now.size:
            raise Changed(_READ, "Changed", where=self._where(key))
        return Content(b"", str(now.etag))

    def put_if_absent(self, key: str, data: bytes, media_type: str) -> str:
        """Put Blob with `If-None-Match: *`."""
        return self._put(key, data, media_type, {"overwrite": False})

    def put_if_unchanged(self, key: str, data: bytes, media_type: str, etag: str) -> str:
        """Put Blob with `If-Match`."""
        return self._put(key, data, media_type, if_match(etag) | {"overwrite": True})

    def _put(self, key: str, data: bytes, media_type: str, condition: dict[str, Any]) -> str:
        from azure.storage.blob import ContentSettings

        with azure_errors(_WRITE, self._where(key), _CHANGED | dict.fromkeys(_ABSENT, Changed)):
            settings = ContentSettings(content_type=media_type)
            upload = partial(self._blob(key).upload_blob, data, content_settings=settings, **condition, **ONCE)
            return str(patiently(upload)["etag"])

    def versions(self, prefix: str) -> Iterator[ObjectVersion]:
        """Every version and snapshot that is not soft-deleted."""
        for item in self._listed(prefix):
            if not item.deleted and not is_folder(item) and self._with_blocks(item, all_blobs=False)[1][0]:
                yield ObjectVersion(
                    key=item.name,
                    version_id=version_id(item),
                    latest=not is_past(item),
                    size=item.size,
                    etag=(item.etag or "").strip('"'),
                    storage_class=str(item.blob_tier or ""),
                    modified=moment(item.last_modified),
                )

    def uploads(self, prefix: str) -> Iterator[Upload]:
        """Blobs with blocks that were sent and not committed: no listing shows these bytes, and a week removes them."""
        for item in self._listed(prefix):
            if self._with_blocks(item, all_blobs=True)[1][1]:
                yield Upload(key=item.name, upload_id=UNCOMMITTED, touched=moment(item.last_modified))

    def delete_version(self, key: str, version_id: str) -> None:
        """Delete one state of a blob. With soft delete its bytes stay for the days that the account says."""
        self._delete(key, version_id, None)

    def settings(self) -> StoreSettings:
        """As the protocol says."""
        found = settings_of(self.service, self.name)
        unreached = found.soft_delete_seconds and not self.hierarchical
        return found.model_copy(update={"no_tables": _NO_TABLES if unreached else ""})

    def reader_options(self) -> dict[str, str]:
        """As the protocol says."""
        address, _, signature = self.service.url.partition("?")
        told = {"azure_storage_account_name": azure_location(self.name).account, "azure_endpoint": address.rstrip("/")}
        told |= {"azure_allow_http": "true"} if address.startswith("http:") else {}
        login = self.service.credential
        if is_login(login):
            with azure_errors("no token for the account", self.name):
                return told | {"azure_storage_token": login.get_token(SCOPE).token}
        if login is not None:
            return told | {"azure_storage_account_key": login.account_key}
        return told | ({"azure_storage_sas_key": signature} if signature else {"azure_skip_signature": "true"})

    def all_versions(self, prefix: str) -> Iterator[StoredVersion]:
        """Live, noncurrent and soft-deleted states, to the end of the listing; and what no listing of blobs shows:
        uncommitted blocks, deleted containers of the same name, and deleted directories around the place, all as
        soft-deleted.
        """
        yield from deleted_containers(self.service, self.container_name, prefix, self.name)
        now, held = datetime.now(timezone.utc), self._held()
        for item in deleted_above(self._container, prefix, self.name) if self.hierarchical else ():
            yield stored(item, now, hierarchical=True).model_copy(update={"key": prefix})
        asked = partial(self._with_blocks, all_blobs=True)
        for item, (there, waiting) in several(asked, self._listed(prefix), workers=8):
            if there:
                yield stored(item, now, held, hierarchical=self.hierarchical)
            if waiting:
                yield uncommitted(item, now)

    def live_objects(self, prefix: str) -> Iterator[StoredVersion]:
        """As the protocol says."""
        now, held = datetime.now(timezone.utc), self._held()
        for item in self._listed(prefix):
            if not (item.deleted or is_past(item)) and self._with_blocks(item, all_blobs=False)[1][0]:
                yield stored(item, now, held)

    def _held(self) -> tuple[str, ...]:
        """What stands against writing anything in the container."""
        return container_holds(self._container, self.name)

    def _with_blocks(self, item: BlobProperties, *, all_blobs: bool) -> tuple[BlobProperties, tuple[bool, bool]]:
        """A state, with whether it is one, and whether its blob has blocks that were not committed."""
        asked = _can_have_blocks(item) and (all_blobs or not item.size)
        return item, self._blocks(item) if asked else (True, False)

    def version(self, key: str, version_id: str) -> StoredVersion:
        """Get Blob Properties of a state. Raises Absent: it is gone, or soft-deleted."""
        name, state = _named(key, version_id)
        blob, more = self._state(name, state)
        if state.startswith(UNVERSIONED):
            more = if_match(state.removeprefix(UNVERSIONED))
        return self._now(key, blob, more)

    def live_version(self, key: str) -> StoredVersion:
        """What stands under a key now; where the key ends with a slash, a directory. Raises Absent: nothing does."""
        if key.endswith("/"):
            with suppress(Absent):
                return self._now(key, self._blob(key.removesuffix("/")), {})
        return self._now(key, self._blob(key), {})

    def _now(self, key: str, blob: BlobClient, condition: dict[str, Any]) -> StoredVersion:
        with azure_errors(_READ, self._where(key), _ABSENT | {"ConditionNotMet": Absent}):
            found = stored(blob.get_blob_properties(**condition), datetime.now(timezone.utc), self._held())
        if found.key != key:  # a directory is no object of its name
            raise Absent(_READ, "BlobNotFound", where=self._where(key))
        return found

    def read_version(self, version: StoredVersion, first: int, at_most: int) -> bytes:
        """Bytes of a live or noncurrent state from an offset on, on the condition that it is the one that was listed.

        Raises:
            Absent: it is gone. Changed: another one stands there.
        """
        if first >= version.size or not at_most:
            return b""
        length = min(at_most, version.size - first)
        blob, more = self._state(version.key, version.version_id)
        with azure_errors(_READ, self._where(version.key), _ABSENT | _CHANGED):
            found = blob.download_blob(offset=first, length=length, **if_match(version.mark), **more)
            data = bytes(found.readall())
        if len(data) != length:
            raise StoreError(_READ, "Cut", where=self._where(version.key), todo="run the command again")
        return data

    def replace(self, old: StoredVersion, data: bytes, plan_id: str) -> StoredVersion:
        """Put Blob with `If-Match`, with the blob's own headers, metadata, tags, tier and encryption scope; in a
        hierarchical namespace, see `FileRewrite`.

        Blocks that were not committed are gone with it (https://learn.microsoft.com/rest/api/storageservices/put-blob).

        Raises:
            Changed: another state stands there, or nothing.
            StoreError: refused, or something of the blob could not be kept; then nothing was written.
        """
        from azure.storage.blob import StandardBlobTier

        where, blob = self._where(old.key), self._blob(old.key)
        if self.hierarchical:
            if self.files is None:
                raise StoreError(_WRITE, "NoAddress", where=where, todo=f"it has {_NO_ADDRESS}")
            self._file(self.files, old.key).write(old.mark, data, plan_id)
            return self.live_version(old.key)
        with azure_errors(_WRITE, where, _CHANGED | dict.fromkeys(_ABSENT, Changed)):
            now = blob.get_blob_properties(**if_match(old.mark))
            if not is_block_blob(now):
                raise StoreError(_WRITE, "NotBlockBlob", where=where, todo="the tool rewrites only block blobs")
            now.content_settings.content_md5 = None
            upload = partial(
                blob.upload_blob,
                data,
                overwrite=True,
                metadata={**(now.metadata or {}), PLAN: plan_id},
                content_settings=now.content_settings,
                tags=blob.get_blob_tags() if now.tag_count else None,
                standard_blob_tier=None if now.blob_tier_inferred else StandardBlobTier(now.blob_tier),
                encryption_scope=now.encryption_scope,
                **if_match(old.mark),
                **ONCE,
            )
            patiently(upload)
        return self.live_version(old.key)

    def cannot_keep(self, version: StoredVersion) -> tuple[str, ...]:
        """As the protocol says: everything of a blob can be kept, but not of a file."""
        if not self.hierarchical:
            return ()
        if self.files is None or self.files.credential is None:
            return (_NO_RIGHT if self.files else _NO_ADDRESS,)
        return self._file(self.files, version.key).cannot_keep(version.mark)

    def unfinished(self, key: str, plan_id: str) -> bool:
        """As the protocol says: a blob is written in one request."""
        files = self.files if self.hierarchical else None
        return files is not None and self._file(files, key).unfinished(plan_id)

    def discard_unfinished(self, key: str, plan_id: str) -> None:
        """As the protocol says."""
        if self.hierarchical and self.files is not None:
            self._file(self.files, key).discard(plan_id)

    def _file(self, files: FileSystemClient, key: str) -> FileRewrite:
        return FileRewrite(self._container, files, key, self._where(key))

    def delete_exactly(self, version: StoredVersion) -> None:
        """Delete a noncurrent state, if it still has its mark. One that is gone is deleted already.

        Raises:
            Changed: it has another mark.
        """
        self._delete(version.key, version.version_id, version.mark)

    def _delete(self, key: str, version_id: str, mark: str | None) -> None:
        where, (name, version_id) = self._where(key), _named(key, version_id)
        blob, more = self._state(name, version_id)
        if version_id.startswith(UNVERSIONED):
            mark = version_id.removeprefix(UNVERSIONED)
        condition = if_match(mark) if mark else {}
        try:
            with azure_errors(_DELETE, where, _ABSENT | _CHANGED):
                patiently(partial(blob.delete_blob, **more, **condition, **ONCE))
        except Absent:
            return
        except Changed:
            if not version_id.startswith(UNVERSIONED):
                raise  # else another state stands there, and this one is gone
        except StoreError as error:
            if error.code != _IS_CURRENT:
                raise
            self._end_current(name, version_id, where)
            with azure_errors(_DELETE, where, {}):
                patiently(partial(blob.delete_blob, **more, **ONCE))

    def _end_current(self, key: str, version_id: str, where: str) -> None:
        """Make a current version a past one, by deleting its blob, if it is still the current one.

        The service would do that under a hold, too, and only then refuse to delete the version.
        """
        with azure_errors(_DELETE, where, _CHANGED):
            now = self._blob(key).get_blob_properties(version_id=version_id)
            until = now.immutability_policy.expiry_time if now.immutability_policy else None
            if now.has_legal_hold or (until and until > datetime.now(timezone.utc)):
                raise StoreError(
                    _DELETE, "Held", where=where, todo="wait until the policy ends or the hold is released"
                )
            patiently(partial(self._blob(key).delete_blob, **if_match(str(now.etag)), **ONCE))

    def _listed(self, prefix: str) -> Iterator[BlobProperties]:
        return listed(self._container, prefix, self._where(prefix), hierarchical=self.hierarchical)

    def _blocks(self, item: BlobProperties) -> tuple[bool, bool]:
        blob, where = self._blob(item.name), self._where(item.name)
        try:
            with azure_errors("blocks of a blob cannot be listed", where, _ABSENT):
                _, waiting = blob.get_block_list("uncommitted")
                return bool(item.size or not waiting or blob.exists()), bool(waiting)
        except Absent:
            return True, False  # deleted since it was listed: who reads it learns that

    def _state(self, key: str, version_id: str) -> tuple[BlobClient, dict[str, Any]]:
        if version_id.startswith(SNAPSHOT):
            return self._container.get_blob_client(key, snapshot=version_id.removeprefix(SNAPSHOT)), {}
        return self._blob(key), {} if version_id.startswith(UNVERSIONED) else {"version_id": version_id}

    def _blob(self, key: str) -> BlobClient:
        return self._container.get_blob_client(key)

    def _where(self, key: str) -> str:
        return f"{self.name}/{key}"


def _named(key: str, version_id: str) -> tuple[str, str]:
    """The blob's own name and the id of its state: those of a directory are told otherwise."""
    if version_id.startswith(FOLDER):
        return key.removesuffix("/"), version_id.removeprefix(FOLDER)
    return key, version_id


def _can_have_blocks(item: BlobProperties) -> bool:
    return is_block_blob(item) and not is_folder(item) and not item.deleted and not is_past(item)
