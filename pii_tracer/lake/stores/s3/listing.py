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

from botocore.exceptions import ClientError, PaginationError

from pii_tracer.lake.aws_errors import error_code

Page = Mapping[str, Any]

_NO_MARKER = "the server reports that the list continues, but does not report where"
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

    def instead(self, at: Place) -> list[Place]:
        """Nothing is asked instead: versions of a key that only a marker leads to would be missed."""
        return []

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

    def instead(self, at: Place) -> list[Place]:
        """What is asked instead of a question whose id the server refuses, the last first.

        Nothing where it broke off among the uploads of one key, and does not go on there.
        """
        if self.id_marker not in at or at.get("Prefix") == at["KeyMarker"]:
            return []
        return [{"KeyMarker": at["KeyMarker"]}, {"Prefix": at["KeyMarker"]}]


def _pages(ask: Callable[[Place], Page], listing: _Versions | _Uploads) -> Iterator[Page]:
    """Answers with what is new in them, until a round of questions behind the last entry brings nothing.

    ask: with markers. asked: since something new came.
    """
    waiting: list[Place] = [{}]
    ends: list[Place] = []
    asked: list[Place] = []
    news = False
    while waiting:
        at = waiting.pop()
        asked.append(at)
        try:
            page = ask(at)
        except ClientError as error:
            instead = listing.instead(at) if _is_about_a_marker(error, at) else []
            if not instead or any(question in asked for question in instead):
                raise
            waiting += instead
            continue
        found = listing.fresh(page, behind=at in ends)
        listing.take(found)
        if any(found.values()):
            yield found
            waiting, asked, news = [], [at], True
        if page.get("IsTruncated"):
            waiting.append(_following(page, at, listing.id_marker, asked))
        if news and not waiting:
            ends, asked, news = listing.places(), [], False
            waiting = list(ends)


def _following(page: Page, at: Place, id_marker: str, asked: list[Place]) -> Place:
    """The question for what follows a page, with the markers that it names."""
    told = {"KeyMarker": page.get("NextKeyMarker"), id_marker: page.get(f"Next{id_marker}")}
    markers = {name: value for name, value in told.items() if value}
    if "KeyMarker" not in markers:
        raise PaginationError(message=_NO_MARKER)
    following = {name: value for name, value in at.items() if name == "Prefix"} | markers
    if following in asked or following["KeyMarker"].encode() < at.get("KeyMarker", "").encode():
        raise PaginationError(message=_CIRCLE)
    return following


def _is_about_a_marker(error: ClientError, at: Place) -> bool:
    """Whether a refusal can be about a marker: the same was answered without one. A denial is about the caller."""
    return bool(at) and error_code(error) == "InvalidArgument"


def _all(found: Mapping[str, list[Any]]) -> Iterator[Any]:
    for items in found.values():
        yield from items
