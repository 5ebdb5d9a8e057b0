"""Every state of a blob that a container keeps, as the listing shows it.

A blob has at most one current state. Versions are what was written over or deleted, where the account keeps them;
snapshots were taken by somebody. Each of them can be soft-deleted, which hides its bytes for some days.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pii_tracer.lake.stores.azure.client import azure_errors
from pii_tracer.lake.stores.base import PagesSeen, StoreError
from pii_tracer.lake.stores.object_places.version_types import StoredVersion, VersionState

if TYPE_CHECKING:
    from azure.storage.blob import BlobProperties, ContainerClient

PLAN = "pii_tracer_plan"
"""Metadata of a blob that a plan wrote: names of metadata here have no hyphens."""
_UNFINISHED = re.compile(r"_pii_tracer_[0-9a-f]{32}\.tmp")
SNAPSHOT = "snapshot="
UNVERSIONED = "etag="
"""What the ids of a snapshot, and of a blob without versions, begin with: no id stands for other bytes later."""
FOLDER = "folder="
"""What the id of a directory begins with. Its key ends with a slash, as that of what stands for folders elsewhere."""
UNCOMMITTED = "uncommitted blocks"
_ARCHIVE = "Archive"
_State = tuple[str, str, bool, str]
_Listing = tuple[list[str], dict[str, Any]]
_SHOW_DELETED: dict[str, Any] = {"params": {"showonly": "deleted"}}
_FLAT: tuple[_Listing, ...] = (
    (
        ["metadata", "snapshots", "versions", "deleted", "uncommittedblobs", "tags", "immutabilitypolicy", "legalhold"],
        {},
    ),
)
_HIERARCHICAL: tuple[_Listing, ...] = (
    (["metadata", "snapshots", "uncommittedblobs"], {}),
    (["metadata", "deleted"], _SHOW_DELETED),
)
"""What listings are asked for. An account with a hierarchical namespace has neither versions nor tags, and lists what
was deleted by itself (https://learn.microsoft.com/rest/api/storageservices/list-blobs, `showonly`).
"""
_IS_FOLDER = "hdi_isfolder"
"""Metadata of a directory, which an account with a hierarchical namespace lists as a blob. In other accounts engines
write such blobs.
"""


def listed(container: ContainerClient, prefix: str, where: str, *, hierarchical: bool) -> Iterator[BlobProperties]:
    """Every state of every blob and directory whose name begins so, asked once more behind the end of the listing until
    nothing new comes.

    Raises:
        StoreError: refused, or an answer that is no such listing.
    """
    seen: dict[_State, int] = {}
    with azure_errors("the container cannot be listed", where):
        for include, more in _HIERARCHICAL if hierarchical else _FLAT:
            yield from _asked(container, prefix, where, seen, include=include, **more)


def _asked(
    container: ContainerClient, prefix: str, where: str, seen: dict[_State, int], **query: Any
) -> Iterator[BlobProperties]:
    """One listing, without what another one has shown, and what an answer about names from its last one on adds.

    Raises:
        StoreError: as `_round`.
    """
    from azure.core.exceptions import HttpResponseError

    start = ""
    while True:  # a service that does not know the question shows what comes before, too: then nothing is new behind
        asked, last = dict(query), ""
        if start:
            asked["params"] = {**query.get("params", {}), "startFrom": quote(start, safe="")}
        try:
            for item in _round(container, prefix, where, seen, **asked):
                if start and not _is_behind(item, start):
                    continue
                last = str(item.name)
                yield item
        except HttpResponseError as error:
            # a service or emulator that does not know the question has answered the listing itself
            if not start or last or error.status_code != HTTPStatus.BAD_REQUEST:
                raise
        if not last:
            return
        start = last


def _is_behind(item: BlobProperties, start: str) -> bool:
    """Whether an item belongs into an answer from a name on, in any order that a service may have: of letters, of
    UTF-16, of folders. Of the name itself only further states do: not the one that was written over meanwhile.
    """
    name = str(item.name)
    if name == start:
        return bool(item.version_id or item.snapshot or item.deleted)
    orders = (name, start), (name.encode("utf-16-be"), start.encode("utf-16-be")), (name.split("/"), start.split("/"))
    return any(one > other for one, other in orders)  # type: ignore[operator]


def _round(
    container: ContainerClient, prefix: str, where: str, seen: dict[_State, int], **query: Any
) -> Iterator[BlobProperties]:
    """Answers to one question, without what another one has shown. seen: what tells each item from all others, with the
    number of the question whose answer showed it last.

    Raises:
        StoreError: it shows one of them again, has no end, or is none.
    """
    pages, number = PagesSeen(), 1 + max(seen.values(), default=0)
    try:
        for page in container.list_blobs(name_starts_with=prefix or None, **query).by_page():
            items = list(page)
            if pages.too_many_empty(len(items)):
                raise _odd(where)
            for item in items:
                state = (item.name, version_id(item), bool(item.deleted), moment(item.deleted_time))
                wrong = not isinstance(item.name, str) or item.size is None or not item.name.startswith(prefix)
                if wrong or seen.get(state) == number:  # a page again
                    raise _odd(where)
                new = state not in seen
                seen[state] = number
                if new:
                    yield item
    except (AttributeError, KeyError, TypeError):  # of the library, which reads any XML as a listing
        raise _odd(where) from None


def deleted_above(container: ContainerClient, prefix: str, where: str) -> Iterator[BlobProperties]:
    """Soft-deleted directories that a place lies in, and its own: until they are restored, no listing shows what was in
    them (https://learn.microsoft.com/azure/storage/blobs/soft-delete-blob-overview).

    Raises:
        StoreError: refused.
    """
    parts = prefix.rstrip("/").split("/")
    above = {"/".join(parts[:depth]) for depth in range(1, len(parts) + 1)} - {""}
    if above:
        with azure_errors("the container's deleted directories cannot be listed", where):
            for item in _asked(container, parts[0], where, {}, include=["metadata", "deleted"], **_SHOW_DELETED):
                if item.name in above and item.deleted:
                    yield item


def unfinished_name(key: str, plan_id: str) -> str:
    """The path of a plan's new file for a key: in the same folder, hidden from readers, the same after a crash."""
    digest = hashlib.sha256(f"{plan_id}\0{key}".encode("utf-8", "surrogateescape")).hexdigest()
    folder, slash, _ = key.rpartition("/")
    return f"{folder}{slash}_pii_tracer_{digest[:32]}.tmp"


def is_folder(item: BlobProperties) -> bool:
    """Whether it is a directory."""
    return bool((item.metadata or {}).get(_IS_FOLDER) == "true")


def stored(
    item: BlobProperties, now: datetime, held: tuple[str, ...] = (), *, hierarchical: bool = False
) -> StoredVersion:
    """A state in words of no provider. now: from when the days count that soft-deleted bytes remain. held: holds on
    the whole container. hierarchical: directories of the account are more than blobs.
    """
    policy, deleted, past = item.immutability_policy, bool(item.deleted), is_past(item)
    until, days = policy.expiry_time if policy else None, item.remaining_retention_days
    metadata = {name: str(value) for name, value in (item.metadata or {}).items()}
    return StoredVersion(
        key=f"{item.name}/" if is_folder(item) else item.name,
        version_id=f"{FOLDER}{version_id(item)}" if is_folder(item) else version_id(item),
        state=VersionState.SOFT_DELETED if deleted else VersionState.NONCURRENT if past else VersionState.LIVE,
        size=item.size,
        mark=(item.etag or "").strip('"'),
        modified=moment(item.last_modified),
        checksum=bytes(item.content_settings.content_md5 or b"").hex(),
        storage_class=str(item.blob_tier or ""),
        holds=(*held, *_holds(item, past)),
        retained_until=moment(until) or None,
        # whole days are counted: what remains 0 days may remain until tomorrow
        gone_on=moment(now + timedelta(days=int(days) + 1)) if deleted and days is not None else None,
        old_since=(moment(item.deleted_time) or None) if deleted else None,
        offline=item.blob_tier == _ARCHIVE,
        pins=bool(item.snapshot),
        hides=hierarchical and deleted and is_folder(item),
        plan=metadata.get(PLAN),
        unfinished=PLAN in metadata and bool(_UNFINISHED.fullmatch(item.name.rpartition("/")[2])),
        beside=_beside(item, metadata),
    )


def uncommitted(item: BlobProperties, now: datetime) -> StoredVersion:
    """Blocks that were sent and not committed. Nobody can read them; a week after the last one they are gone
    (https://learn.microsoft.com/rest/api/storageservices/put-block).
    """
    gone = moment(now + timedelta(days=8))
    return StoredVersion(
        key=item.name,
        version_id=UNCOMMITTED,
        state=VersionState.SOFT_DELETED,
        size=0,
        mark="",
        modified=moment(item.last_modified),
        gone_on=gone,
        hides=True,
    )


def _holds(item: BlobProperties, past: bool) -> Iterator[str]:
    if item.has_legal_hold:
        yield "a legal hold"
    if item.lease and item.lease.state in ("leased", "breaking"):
        yield "an active lease"
    if not past and not is_block_blob(item) and not is_folder(item):
        yield f"being an {item.blob_type.value} (the tool rewrites only block blobs)"
    if item.object_replication_source_properties:
        yield (
            "object replication, whose target container retains its versions (end the replication, and erase the "
            "person there, too)"
        )


def is_block_blob(item: BlobProperties) -> bool:
    """Whether a blob is made of blocks that are written all at once."""
    return str(getattr(item.blob_type, "value", item.blob_type)) == "BlockBlob"


def if_match(etag: str) -> dict[str, Any]:
    """The condition of a request on what has a mark."""
    from azure.core import MatchConditions

    return {"etag": f'"{etag.strip(chr(34))}"', "match_condition": MatchConditions.IfNotModified}


def version_id(item: BlobProperties) -> str:
    """The id of a state among all that its blob ever had."""
    if item.snapshot:
        return f"{SNAPSHOT}{item.snapshot}"
    return item.version_id or f"{UNVERSIONED}{(item.etag or '').strip(chr(34))}"


def is_past(item: BlobProperties) -> bool:
    """Whether it is a version that was written over or deleted, or a snapshot."""
    return bool(item.snapshot or (item.version_id and not item.is_current_version))


def moment(when: datetime | None) -> str:
    """ISO 8601, UTC; empty of nothing."""
    return when.astimezone(timezone.utc).isoformat().replace("+00:00", "Z") if when else ""


def _beside(item: BlobProperties, metadata: dict[str, str]) -> tuple[str, ...]:
    settings = item.content_settings
    headers = (settings.content_disposition, settings.content_type, settings.content_language, settings.cache_control)
    tags = item.tags or {}
    texts = (text for pair in metadata.items() if pair[0] not in (PLAN, _IS_FOLDER) for text in pair)
    return (*map(str, filter(None, headers)), *texts, *tags, *tags.values())


def _odd(where: str) -> StoreError:
    return StoreError(
        "the endpoint does not follow the interface of Azure Storage",
        "NoListing",
        where=where,
        todo="correct the endpoint in the estate file",
    )
