"""A file of an account with a hierarchical namespace, written again with its owner and its access list.

A write over such a file would lose both. So the new content goes into a file beside it, which is renamed over the old
one (https://learn.microsoft.com/rest/api/storageservices/datalakestoragegen2/path/create). The new file is empty until
its owner and its access list are those of the old one: a new file inherits the default list of its folder, which may
let more people read it. Both the rename and the look at the old file are conditional on their marks.

Azure breaks a lease on a file that is renamed over, and keeps that file where soft delete is on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pii_tracer.lake.stores.azure.client import ONCE, azure_errors, patiently
from pii_tracer.lake.stores.azure.listed_blobs import PLAN, if_match, is_block_blob, unfinished_name
from pii_tracer.lake.stores.base import Absent, Changed, StoreError

if TYPE_CHECKING:
    from azure.storage.blob import ContainerClient
    from azure.storage.filedatalake import DataLakeFileClient, FileSystemClient

_GONE: dict[str, type[StoreError]] = dict.fromkeys(("BlobNotFound", "PathNotFound", "ResourceNotFound"), Absent)
_CHANGED: dict[str, type[StoreError]] = {
    **dict.fromkeys(_GONE, Changed),
    **dict.fromkeys(("ConditionNotMet", "SourceConditionNotMet", "PathAlreadyExists", "SourcePathNotFound"), Changed),
}
_WRITE, _READ = "a file cannot be written", "a file's owner and access list cannot be read"
_REMOVE = "an unfinished file cannot be removed"
_TRIES = 3
"""How often a file that changes is tried to be removed."""
_ACCOUNT_KEY = "$account-encryption-key"
"""The scope of a container that has none of its own."""
_NO_SCOPE = "no encryption scope, and a new file would get its container's"
_LONGEST = 1024
"""Characters of a path (https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata)."""
_PIECE = 64 << 20
"""Bytes of one request that appends; the service takes 4,000 MiB."""


@dataclass(frozen=True)
class _Kept:
    """What the new file has to have of the old one. permissions: as the service writes them, `rw-r-----+`. metadata:
    without the id of a plan that wrote the file. tags: how many.
    """

    owner: str
    group: str
    permissions: str
    acl: str
    headers: tuple[str | None, ...]
    metadata: tuple[tuple[str, str], ...]
    tags: int
    scope: str
    context: str
    expires: Any
    tier: str


@dataclass(frozen=True)
class FileRewrite:
    """One file. files: the container by the DFS service. key: the file's path; where: how people are shown it."""

    container: ContainerClient
    files: FileSystemClient
    key: str
    where: str

    def cannot_keep(self, mark: str) -> tuple[str, ...]:
        """What of the file no new one could have, in words for people.

        Raises:
            Changed: another file is there, or none.
            StoreError: refused.
        """
        return tuple(self._obstacles(self._look(self.key, mark)))

    def unfinished(self, plan_id: str) -> bool:
        """Whether the new file of a killed rewrite is still there."""
        return self._left_over(plan_id) is not None

    def discard(self, plan_id: str) -> None:
        """Remove the new file of a killed rewrite. Soft delete may keep it; the person is not in it."""
        file = self.files.get_file_client(unfinished_name(self.key, plan_id))
        for _ in range(_TRIES):
            mark = self._left_over(plan_id)
            if mark is None:
                return
            with suppress(Changed), azure_errors(_REMOVE, self.where, _CHANGED):
                patiently(partial(file.delete_file, **if_match(mark), **ONCE))
        if self._left_over(plan_id) is not None:
            raise StoreError(_REMOVE, "Changed", where=self.where, todo="correct `dfs_endpoint`, or delete the file")

    def write(self, mark: str, data: bytes, plan_id: str) -> None:
        """Write new content over the file, if it still has its mark and its access list.

        Raises:
            Changed: it has not.
            StoreError: refused, or something of the file could not be kept. The file is as it was, unless the error
                says that it was rewritten.
        """
        kept = self._look(self.key, mark)
        if reasons := tuple(self._obstacles(kept)):
            raise self._not_kept(f"it has {', '.join(reasons)}")
        new = self.files.get_file_client(unfinished_name(self.key, plan_id))
        try:
            self._make(new, kept, plan_id)
            self._fill(new, data)
            if kept.tier:
                self._set_tier(new.path_name, kept.tier)
            self._move(new, kept, mark, data, plan_id)
        except StoreError:
            with suppress(StoreError):  # the error that counts is the first one, and verification finds the file
                self.discard(plan_id)
            raise

    def _make(self, new: DataLakeFileClient, kept: _Kept, plan_id: str) -> None:
        """An empty file that has everything of the old one. One of a killed rewrite is written over."""
        from azure.core import MatchConditions

        left_over = self._left_over(plan_id)
        condition = {"match_condition": MatchConditions.IfMissing} if left_over is None else if_match(left_over)
        create = partial(
            new.create_file,
            content_settings=_settings(kept),
            metadata={**dict(kept.metadata), PLAN: plan_id},
            expires_on=kept.expires,
            encryption_context=kept.context or None,
            **condition,
            **ONCE,
        )
        allow = partial(new.set_access_control, owner=kept.owner, group=kept.group, acl=kept.acl, **ONCE)
        try:
            with azure_errors(_WRITE, self.where, _CHANGED):
                patiently(create)
        except Changed:  # a request that the service called too busy may have been done
            if self._left_over(plan_id) in (None, left_over):
                raise
        with azure_errors("a new file's owner and access list cannot be set", self.where, _CHANGED):
            patiently(allow)
        if replace(self._look(new.path_name, None), tier="") != replace(kept, tier=""):
            raise self._not_kept("the new file did not get all these properties")

    def _fill(self, new: DataLakeFileClient, data: bytes) -> None:
        with azure_errors(_WRITE, self.where, _CHANGED):
            for first in range(0, len(data), _PIECE):
                piece = data[first : first + _PIECE]
                patiently(partial(new.append_data, piece, offset=first, length=len(piece), **ONCE))
            if data:
                patiently(partial(new.flush_data, len(data), close=True, **ONCE))

    def _set_tier(self, name: str, tier: str) -> None:
        with azure_errors(_WRITE, self.where, _CHANGED):
            patiently(partial(self.container.get_blob_client(name).set_standard_blob_tier, tier, **ONCE))

    def _move(self, new: DataLakeFileClient, kept: _Kept, mark: str, data: bytes, plan_id: str) -> None:
        """Rename the new file over the old one, after a last look at both; then look at what stands there."""
        from azure.core import MatchConditions

        ready = self._left_over(plan_id)
        if ready is None or self._look(new.path_name, ready) != kept:
            raise Changed(_WRITE, "Changed", where=self.where)
        if not self._has(new.path_name, ready, data):
            raise StoreError(_WRITE, "OtherBytes", where=self.where, todo="run the command again")
        if self._look(self.key, mark) != kept:
            raise Changed(_WRITE, "Changed", where=self.where)
        rename = partial(
            new.rename_file,
            f"{self.files.file_system_name}/{self.key}",
            source_etag=f'"{ready}"',
            source_match_condition=MatchConditions.IfNotModified,
            **if_match(mark),
            **ONCE,
        )
        try:
            with azure_errors(_WRITE, self.where, _CHANGED):
                patiently(rename)
        except Changed:  # a request that the service called too busy may have been done
            now = self._marked(self.key, plan_id)
            if now is None or not self._has(self.key, now, data):
                raise
        if self._look(self.key, None) != kept:
            raise StoreError(
                "a file was rewritten, but its owner, access list or a different property changed",
                "NotKept",
                where=self.where,
                todo="restore these properties (a file in the same folder may show them)",
            )

    def _has(self, name: str, mark: str, data: bytes) -> bool:
        """Whether a file with this mark has exactly these bytes."""
        with azure_errors(_READ, self.where, _CHANGED):
            blob = self.container.get_blob_client(name)
            if blob.get_blob_properties(**if_match(mark)).size != len(data):
                return False
            found = hashlib.sha256()
            for piece in blob.download_blob(**if_match(mark)).chunks() if data else ():
                found.update(piece)
        return not data or found.digest() == hashlib.sha256(data).digest()

    def _look(self, name: str, mark: str | None) -> _Kept:
        """What a file has now. Raises Changed: it has another mark, or is gone."""
        condition = if_match(mark) if mark else {}
        file = self.files.get_file_client(name)
        with azure_errors(_READ, self.where, _CHANGED):
            blob = self.container.get_blob_client(name).get_blob_properties(**condition)
            more = file.get_file_properties(**condition)
            access = file.get_access_control(**condition)
        settings = blob.content_settings
        if not is_block_blob(blob) or (blob.lease and blob.lease.state in ("leased", "breaking")):
            raise Changed(_READ, "Changed", where=self.where)
        return _Kept(
            owner=str(access["owner"]),
            group=str(access["group"]),
            permissions=str(access["permissions"]),
            acl=str(access["acl"]),
            headers=(
                settings.content_type,
                settings.content_encoding,
                settings.content_language,
                settings.content_disposition,
                settings.cache_control,
            ),
            metadata=tuple(sorted(pair for pair in (blob.metadata or {}).items() if pair[0] != PLAN)),
            tags=blob.tag_count or 0,
            scope=str(blob.encryption_scope or ""),
            context=str(more.encryption_context or ""),
            expires=more.expiry_time,
            tier="" if blob.blob_tier_inferred else str(blob.blob_tier or ""),
        )

    def _obstacles(self, kept: _Kept) -> Iterator[str]:
        if kept.permissions.rstrip("+")[-1:] in ("t", "T"):
            yield "a sticky bit, which cannot be combined with an access list"
        if kept.scope != self._own_scope():
            yield "an encryption scope that is not its container's" if kept.scope else _NO_SCOPE
        if kept.tags:
            yield "index tags, which a temporary file cannot get"
        if len(unfinished_name(self.key, "")) > _LONGEST:
            yield "a path so long that a temporary file cannot have a name"
        if "%" in self.key:
            yield "a percent sign in its path, which Azure's library changes"
        with azure_errors(_READ, self.where):
            listed = self.container.list_blobs(name_starts_with=self.key, include=["snapshots"])
            if any(item.name == self.key and item.snapshot for item in listed):
                yield "snapshots (delete them, because a rewrite may lose them)"

    def _own_scope(self) -> str:
        with azure_errors(_READ, self.where):
            found = self.container.get_container_properties().encryption_scope
        name = str(found.default_encryption_scope) if found else ""
        return "" if name == _ACCOUNT_KEY else name

    def _left_over(self, plan_id: str) -> str | None:
        """The mark of the new file of a rewrite that was killed, or goes on."""
        return self._marked(unfinished_name(self.key, plan_id), plan_id)

    def _marked(self, name: str, plan_id: str) -> str | None:
        """The mark of a file that the plan wrote."""
        try:
            with azure_errors(_READ, self.where, _GONE):
                found = self.container.get_blob_client(name).get_blob_properties()
        except Absent:
            return None
        if (found.metadata or {}).get(PLAN) != plan_id:
            return None
        return str(found.etag).strip('"')

    def _not_kept(self, why: str) -> StoreError:
        return StoreError(
            f"a new file cannot have a property of this file: {why}",
            "NotKept",
            where=self.where,
            todo="erase the person there with the engine that writes the files",
        )


def _settings(kept: _Kept) -> Any:
    from azure.storage.filedatalake import ContentSettings

    kind, encoding, language, disposition, cache = kept.headers
    return ContentSettings(
        content_type=kind,
        content_encoding=encoding,
        content_language=language,
        content_disposition=disposition,
        cache_control=cache,
    )
