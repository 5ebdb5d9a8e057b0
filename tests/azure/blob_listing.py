"""Listings of the stand-in for Azure Blob Storage: https://learn.microsoft.com/rest/api/storageservices/list-blobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from email.utils import format_datetime
from xml.sax.saxutils import escape

from tests.azure.blob_state import Account, Blob, Container, Refused, State

_INCLUDE = {
    *("snapshots", "versions", "deleted", "deletedwithversions", "metadata", "uncommittedblobs", "tags"),
    *("immutabilitypolicy", "legalhold", "copy"),
}
_KNOWN = {
    *("restype", "comp", "include", "showonly", "prefix", "delimiter", "marker", "maxresults", "startFrom", "timeout"),
}


def listed(account: Account, container: Container, query: Mapping[str, str]) -> bytes:
    """One page: only what `include` asks for; with a delimiter, what lies deeper as one entry for each folder."""
    include = set(filter(None, query.get("include", "").split(",")))
    only, front, end = query.get("showonly"), query.get("prefix", ""), query.get("delimiter", "")
    if set(query) - _KNOWN or include - _INCLUDE or (account.hierarchical and include & {"versions", "tags"}):
        raise Refused(400, "InvalidQueryParameterValue")
    if only and not (account.hierarchical and only == "deleted" and "deleted" in include):
        raise Refused(400, "InvalidQueryParameterValue")
    if account.hierarchical and not only:
        include -= {"deleted"}
    entries: list[str] = []
    for name, blob in sorted(container.blobs.items(), key=lambda item: item[0].encode("utf-16-be")):
        if not name.startswith(front) or name < query.get("startFrom", ""):
            continue
        folder, slash, _ = name[len(front) :].partition(end) if end else ("", "", "")
        if end and account.hierarchical and blob.current and blob.current.folder and not slash:
            slash = end
        found = [entry for entry in _entries(account, name, blob, include) if not only or "<Deleted>" in entry]
        if slash and found:
            found = [f"<BlobPrefix><Name>{escape(f'{front}{folder}{end}')}</Name></BlobPrefix>"]
        entries += [entry for entry in found if not (slash and entry in entries)]
    first = int(query.get("marker") or 0)
    size = min(account.page, int(query.get("maxresults") or account.page))
    marker = str(first + size) if first + size < len(entries) else ""
    text = "".join(entries[first : first + size])
    text = f"<Prefix>{escape(front)}</Prefix><Blobs>{text}</Blobs>"
    return f"<EnumerationResults>{text}<NextMarker>{marker}</NextMarker></EnumerationResults>".encode()


def _entries(account: Account, name: str, blob: Blob, include: set[str]) -> Iterator[str]:
    for one in sorted(blob.past, key=lambda state: state.version or state.snapshot or ""):
        wanted = "snapshots" in include if one.snapshot else "versions" in include or not one.version
        if wanted and (not one.deleted or "deleted" in include):
            yield _entry(account, name, one, include)
    if blob.current:
        yield _entry(account, name, blob.current, include, current=True, lease=blob.lease)
    elif blob.blocks and "uncommittedblobs" in include:
        yield _entry(account, name, State(b"", "", account.now()), include)


def _entry(
    account: Account, name: str, one: State, include: set[str], *, current: bool = False, lease: str | None = None
) -> str:
    text = f"<Name>{escape(name)}</Name>"
    if one.snapshot:
        text += f"<Snapshot>{one.snapshot}</Snapshot>"
    if one.version and "versions" in include and not one.snapshot:
        text += f"<VersionId>{one.version}</VersionId>" + ("<IsCurrentVersion>true</IsCurrentVersion>" * current)
    if one.deleted:
        text += "<Deleted>true</Deleted>"
    inside = (
        f"{when_of(one.modified)}<Etag>{one.etag.strip(chr(34))}</Etag><Content-Length>{len(one.data)}</Content-Length>"
    )
    if account.hierarchical:
        inside += f"<ResourceType>{'directory' if one.folder else 'file'}</ResourceType>"
    inside += f"<BlobType>{one.blob_type}</BlobType>" + (f"<AccessTier>{one.tier}</AccessTier>" if one.tier else "")
    headers = {"Content-Type": "application/octet-stream", **one.headers}
    inside += "".join(f"<{n}>{escape(v)}</{n}>" for n, v in headers.items())
    inside += "<AccessTierInferred>true</AccessTierInferred>" * (not one.tier)
    inside += "<ArchiveStatus>rehydrate-pending-to-hot</ArchiveStatus>" * one.rehydrating
    inside += "<LeaseStatus>locked</LeaseStatus><LeaseState>leased</LeaseState>" * (lease is not None)
    if one.immutable_until and "immutabilitypolicy" in include:
        inside += f"<ImmutabilityPolicyUntilDate>{format_datetime(one.immutable_until, usegmt=True)}</ImmutabilityPolicyUntilDate>"
        inside += "<ImmutabilityPolicyMode>locked</ImmutabilityPolicyMode>"
    inside += "<LegalHold>true</LegalHold>" * (one.legal_hold and "legalhold" in include)
    if one.deleted:
        inside += f"<DeletedTime>{format_datetime(one.deleted, usegmt=True)}</DeletedTime>"
        inside += f"<RemainingRetentionDays>{account.remaining(one)}</RemainingRetentionDays>"
    text += f"<Properties>{inside}</Properties>"
    if one.metadata and "metadata" in include:
        text += f"<Metadata>{''.join(f'<{n}>{escape(v)}</{n}>' for n, v in one.metadata.items())}</Metadata>"
    if one.tags and "tags" in include:
        text += f"<Tags>{tag_set(one.tags)}</Tags>"
    if one.replicated:
        text += "<OrMetadata><or-policy_rule>complete</or-policy_rule></OrMetadata>"
    return f"<Blob>{text}</Blob>"


def when_of(when: datetime) -> str:
    return f"<Last-Modified>{format_datetime(when.astimezone(timezone.utc), usegmt=True)}</Last-Modified>"


def tag_set(tags: dict[str, str]) -> str:
    pairs = (f"<Tag><Key>{escape(n)}</Key><Value>{escape(v)}</Value></Tag>" for n, v in tags.items())
    return f"<TagSet>{''.join(pairs)}</TagSet>"
