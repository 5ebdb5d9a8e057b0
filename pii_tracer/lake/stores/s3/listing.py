"""Listings of a bucket to their true end, whatever a server says of where that is.

A listing may end early (a page that is cut and called the last), turn in a circle, or say that more is to come and not
where. So each is asked once more behind the last entry, until an answer brings nothing new; and what could not be
listed to its end is refused. Unfinished uploads are always those of the whole bucket: MinIO answers about a prefix only
where it is the very key (https://github.com/minio/minio/issues/20989).

What a server leaves out of the midst of a listing, or lists to nobody with this role, cannot be noticed here: an
attestation says so (`pii_tracer.proof.store_blind_spots`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import PaginationError

Page = Mapping[str, Any]

_NO_MARKER = "the server says that the list goes on, and does not say where"
_CIRCLE = "the server repeats a page of the list, whatever page is asked for"


def version_pages(client: Any, bucket: str, prefix: str) -> Iterator[Page]:
    """Answers of ListObjectVersions under a prefix, until nothing new comes.

    Raises:
        botocore.exceptions.ClientError: the bucket is missing or may not be listed.
        botocore.exceptions.PaginationError: the listing has no end that can be relied on.
    """
    listing = _Versions()
    return _pages(lambda at: client.list_object_versions(Bucket=bucket, Prefix=prefix, **at), listing)


def upload_items(client: Any, bucket: str, prefix: str = "") -> Iterator[Mapping[str, Any]]:
    """Unfinished multipart uploads whose keys begin with a prefix, as ListMultipartUploads tells each.

    The whole bucket is listed, and the prefix is looked for here.

    Raises:
        botocore.exceptions.ClientError, PaginationError: as `version_pages`.
    """
    for page in _pages(lambda at: client.list_multipart_uploads(Bucket=bucket, **at), _Uploads()):
        yield from (item for item in page["Uploads"] if item["Key"].startswith(prefix))


Place = dict[str, str]
"""Markers: behind what to go on."""


@dataclass
class _Versions:
    """What is remembered of a listing of versions: those of the last key, since a page may end among them.

    last: the id of the last one in each part of an answer. Which of two is the very last, their times do not tell.
    """

    key: str | None = None
    known: set[str] = field(default_factory=set)
    last: dict[str, str] = field(default_factory=dict)

    parts = ("Versions", "DeleteMarkers")
    id_marker = "VersionIdMarker"

    def fresh(self, page: Page, *, behind: bool) -> dict[str, list[Any]]:
        """What of an answer is new. behind: it was asked for after the last entry that is known."""
        found = {part: [i for i in page.get(part, ()) if not self._is_known(i)] for part in self.parts}
        # S3 lists in the order of UTF-8
        if behind and self.key is not None and any(i["Key"].encode() < self.key.encode() for i in _all(found)):
            raise PaginationError(message=_CIRCLE)
        return found

    def take(self, found: Mapping[str, list[Any]]) -> None:
        last = max((i["Key"] for i in _all(found)), default=None, key=str.encode)
        if last is None:
            return
        if last != self.key:
            self.key, self.known, self.last = last, set(), {}
        for part, items in found.items():
            ids = [i["VersionId"] for i in items if i["Key"] == last]
            self.known.update(ids)
            if ids:
                self.last[part] = ids[-1]

    def places(self) -> list[Place]:
        """Behind what to ask; what is known may come again."""
        return [{"KeyMarker": str(self.key), self.id_marker: version} for version in self.last.values()]

    def _is_known(self, item: Mapping[str, Any]) -> bool:
        return item["Key"] == self.key and item["VersionId"] in self.known


@dataclass
class _Uploads:
    """What is remembered of a listing of uploads: all, since they are few, and not every server heeds a marker."""

    known: set[tuple[str, str]] = field(default_factory=set)
    last: Place = field(default_factory=dict)

    id_marker = "UploadIdMarker"

    def fresh(self, page: Page, *, behind: bool) -> dict[str, list[Any]]:
        return {"Uploads": [i for i in page.get("Uploads", ()) if (i["Key"], i["UploadId"]) not in self.known]}

    def take(self, found: Mapping[str, list[Any]]) -> None:
        for item in found["Uploads"]:
            self.known.add((item["Key"], item["UploadId"]))
            self.last = {"KeyMarker": item["Key"], self.id_marker: item["UploadId"]}

    def places(self) -> list[Place]:
        return [self.last] if self.last else []


def _pages(ask: Callable[[Place], Page], listing: _Versions | _Uploads) -> Iterator[Page]:
    """Answers with what is new in them. ask: with markers."""
    waiting: list[Place] = [{}]
    behind = False
    while waiting:
        at = waiting.pop()
        page = ask(at)
        found = listing.fresh(page, behind=behind)
        listing.take(found)
        if any(found.values()):
            yield found
        if page.get("IsTruncated"):
            told = {"KeyMarker": page.get("NextKeyMarker"), listing.id_marker: page.get(f"Next{listing.id_marker}")}
            following = {name: value for name, value in told.items() if value}
            if "KeyMarker" not in following:
                raise PaginationError(message=_NO_MARKER)
            if following == at or following["KeyMarker"].encode() < at.get("KeyMarker", "").encode():
                raise PaginationError(message=_CIRCLE)
            waiting, behind = [following], False
        elif any(found.values()):
            waiting, behind = listing.places(), True


def _all(found: Mapping[str, list[Any]]) -> Iterator[Any]:
    for items in found.values():
        yield from items
