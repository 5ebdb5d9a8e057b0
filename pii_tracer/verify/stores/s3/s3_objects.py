"""Tables in S3 by their bytes: every version of every object in the folder is read back, decoded and searched.

A noncurrent version, and what a delete marker hides, is there for whoever asks for it, so all versions count alike.
What cannot be read, or even listed, is unverified, never clean.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, ClassVar

from botocore.exceptions import BotoCoreError, ClientError

from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.inventory import ObjectVersion, Upload
from pii_tracer.lake.stores.s3.known_versions import VersionParts, first_byte, identity_of, is_that
from pii_tracer.lake.stores.s3.locks_and_uploads import iter_uploads
from pii_tracer.lake.stores.s3.object_versions import (
    ClientFactory,
    S3Client,
    iter_object_versions,
    tags_of,
)
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.lake.stores.s3.version_bytes import fetch
from pii_tracer.model.errors import EstateError
from pii_tracer.model.hive_text.layout import FileText
from pii_tracer.model.hive_text.text_reading_rules import TextPlaces
from pii_tracer.model.locations import S3Location, object_uri
from pii_tracer.model.plan import Copy, Mask
from pii_tracer.scan.false_min_max_hits import without_explained
from pii_tracer.scan.folder_scan import scan_bytes, with_name
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.known_columns import key_columns, makes_columns, with_columns_made
from pii_tracer.scan.object_metadata import search_beside
from pii_tracer.scan.search_workers import THREADS, KnownByStore, Searchers, Stamp, place_in_store
from pii_tracer.scan.shapes.objects_read_before import Keeper
from pii_tracer.scan.shapes.partial_object_reads import search_in_parts, search_whole
from pii_tracer.scan.value_forms import Patterns
from pii_tracer.verify.byte_search import (
    judge,
    judge_held,
    look_past,
    with_uploads,
)
from pii_tracer.verify.held_rows import IN_STREAMS
from pii_tracer.verify.hold_allowances import rows_with_more
from pii_tracer.verify.short_numbers import ShortNumbersThen
from pii_tracer.verify.verdicts import ByteVerdict, ScannedFile
from pii_tracer.verify.waived_files import NOTHING_WAIVED, WaivedFiles

_REFUSALS = (ClientError, BotoCoreError)


@dataclass(frozen=True)
class S3Folder:
    """A folder in a bucket, reached by a client for its region (None: the estate's own).

    texts: by what rules text is read. without: prefixes of keys in it that are others', and looked at in their own
    right.
    """

    clients: ClientFactory
    region: str | None
    place: S3Location
    texts: TextPlaces
    without: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        clients: ClientFactory,
        region: str | None,
        place: S3Location,
        texts: TextPlaces,
        without: Collection[str],
    ) -> S3Folder:
        """The folder without some prefixes of keys. One that is no part of it leaves nothing out."""
        inside = (p for p in without if p != place.prefix and p.startswith(place.prefix))
        return cls(clients, region, place, texts.near(str(place)), tuple(sorted(inside)))

    @property
    def client(self) -> S3Client:
        """The client that reads it."""
        return self.clients(self.region)

    def versions(self) -> Iterator[ObjectVersion]:
        """Every version and delete marker, as S3 orders them.

        Raises:
            botocore.exceptions.ClientError, BotoCoreError: the bucket is missing or may not be listed.
        """
        found = iter_object_versions(self.client, self.place.bucket, self.place.prefix)
        return (version for version in found if not version.key.startswith(self.without))

    def uploads(self) -> Iterator[Upload]:
        """Every unfinished upload. Raises as `versions`."""
        found = iter_uploads(self.client, self.place.bucket, self.place.prefix)
        return (upload for upload in found if not upload.key.startswith(self.without))

    def relative(self, key: str) -> str:
        """A key as told from the folder."""
        return key.removeprefix(self.place.prefix)

    def text(self, version: ObjectVersion) -> FileText | None:
        """How its text is read."""
        return self.texts.of(object_uri(self.place.bucket, version.key))

    def named(self, version: ObjectVersion, patterns: Patterns) -> str:
        """A version in verdicts, listings and proofs: where it lies in the folder, values of the persons masked."""
        return f"{patterns.mask(self.relative(version.key))}?versionId={version.version_id}"


def verify_s3_table(copy: Copy, patterns: Patterns, folder: S3Folder, searchers: Searchers = THREADS) -> ByteVerdict:
    """Search everything of a table in S3, as `verify_bytes` does in a folder of this machine.

    Tags are asked for with each version, since an answer tells their number only to those who may read them.
    """
    root = S3Path(folder.place, folder.client) if makes_columns(copy.format) else None
    patterns = patterns.comparing(key_columns(copy.places, root))
    others = with_columns_made(copy.other_keys, root)
    seen = _seen(folder, patterns, searchers)
    if not seen.files and not seen.refused and not seen.marked:
        seen.refused.append(f"{folder.place}: the place contains no object; was the table moved?")
    files = seen.told(folder.place)
    kept = with_columns_made(copy.mask.kept if copy.mask else (), root)
    verdict = judge(copy, str(folder.place), files, others, kept)
    if copy.mask:
        verdict = _without_held(copy, copy.mask, verdict, seen, files, patterns, folder, kept)
    verdict = verdict.model_copy(
        update={
            "files": tuple(seen.files),
            "unverified": (*verdict.unverified, *seen.refused),
            "compared": patterns.key_columns.labels,
        }
    )
    return with_uploads(verdict, seen.uploads)


def _without_held(
    copy: Copy,
    mask: Mask,
    rest: ByteVerdict,
    seen: _Seen,
    files: tuple[FileScan, ...],
    patterns: Patterns,
    folder: S3Folder,
    kept: frozenset[str],
) -> ByteVerdict:
    """As `verify_bytes` where a hold keeps columns. Rows are read again of the formats that lake tables have.

    rest: what `judge` says of the files.
    """
    versions = {_of_version(scan.path, version): version for version, scan in seen.marked}

    def at(name: str) -> BinaryIO:
        import pyarrow as pa

        version = versions[name]
        if name != _of_version(folder.relative(version.key), version):
            raise ValueError("a masked name may be that of several objects")
        data, _ = fetch(folder.client, folder.place.bucket, version)
        return pa.BufferReader(pa.py_buffer(data))  # type: ignore[no-any-return]

    more, unread = rows_with_more(copy, mask, files, kept, at, patterns, readable=IN_STREAMS)
    return judge_held(copy, mask, rest, files, kept, more, unread)


def look_past_s3(
    name: str,
    patterns: Patterns,
    folder: S3Folder,
    searchers: Searchers = THREADS,
    *,
    alone: bool = False,
    named: bool = False,
    short: ShortNumbersThen | None = None,
    waived: WaivedFiles = NOTHING_WAIVED,
) -> ByteVerdict:
    """The verdict on a place in S3 that is no copy (see `look_past`), with what could not be listed of it."""
    seen = _seen(folder, patterns, searchers)
    verdict = look_past(name, str(folder.place), seen.told(folder.place), alone=alone, short=short, waived=waived)
    files = tuple(seen.files) if alone or named else ()
    told = verdict.model_copy(update={"unverified": (*verdict.unverified, *seen.refused), "files": files})
    return with_uploads(told, seen.uploads)


@dataclass
class _Seen:
    """What is kept of a folder while its versions pass: of those that hold nothing, which are the most, very little.

    marked: with a hit, or not wholly searched. refused: why the folder was not looked at to its end.
    """

    files: list[ScannedFile] = field(default_factory=list)
    marked: list[tuple[ObjectVersion, FileScan]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    uploads: int = 0

    def take(self, version: ObjectVersion, scan: FileScan) -> None:
        if scan.sha256:
            self.files.append(
                ScannedFile(
                    path=_of_version(scan.path, version), size=scan.size, sha256=scan.sha256, decoded_as=scan.decoded_as
                )
            )
        if scan.hits or scan.unread:
            self.marked.append((version, scan))

    def told(self, root: S3Location) -> tuple[FileScan, ...]:
        """What is marked, without cut bounds of files that hold nothing of the persons, each named with its version."""
        known = {_of_version(scan.path, version) for version, scan in self.marked}
        clean = (_plain(file) for file in self.files if file.path not in known)
        scans = without_explained(root, [scan for _, scan in self.marked], clean)
        pairs = zip(self.marked, scans, strict=True)
        return tuple(scan.model_copy(update={"path": _of_version(scan.path, v)}) for (v, _), scan in pairs)


def _of_version(path: str, version: ObjectVersion) -> str:
    return f"{path}?versionId={version.version_id}"


def _plain(file: ScannedFile) -> FileScan:
    """A file without any hit, named without its version, as metadata names it."""
    path, _, _ = file.path.rpartition("?versionId=")
    return FileScan(path=path, size=file.size, sha256=file.sha256, decoded_as=file.decoded_as)


def _seen(folder: S3Folder, patterns: Patterns, searchers: Searchers) -> _Seen:
    """Everything in the folder, searched. What refuses is told, and what was found until then counts."""
    seen = _Seen()
    try:
        for version, scan in searchers.search(VersionLook(folder), folder.versions(), patterns):
            seen.take(version, scan)
    except _REFUSALS as error:
        seen.refused.append(f"{folder.place}: it cannot be listed ({error_code(error)})")
    try:
        seen.uploads = sum(1 for _ in folder.uploads())
    except _REFUSALS as error:
        seen.refused.append(f"{folder.place}: unfinished uploads cannot be listed ({error_code(error)})")
    return seen


@dataclass(frozen=True)
class VersionLook(KnownByStore):
    """How a version in the folder is searched (`pii_tracer.scan.search_workers.Look`)."""

    folder: S3Folder
    keeper: Keeper | None = None
    at_once: int = 4
    only_here: ClassVar = False

    def __call__(self, thing: ObjectVersion, patterns: Patterns) -> FileScan:
        """Search the version, its name, what S3 keeps beside it, and its tags."""
        name = self.folder.relative(thing.key)
        if thing.delete_marker:
            return scan_bytes(name, b"", patterns).model_copy(update={"decoded_as": "delete marker"})
        answer: Mapping[str, Any] = {}
        kept, told, text = None, self.told(thing), self.folder.text(thing)
        parts = VersionParts(self.folder.client, self.folder.place.bucket, thing, told or "")
        try:
            scan = kept = search_in_parts(thing.key, parts, patterns, text, self.keeper) if told else None
            answer = parts.answer
            if scan is None:
                data, answer = fetch(self.folder.client, self.folder.place.bucket, thing)
                same = is_that(thing, answer, len(data))
                scan = search_whole(thing.key, data, told if same else None, patterns, text, self.keeper)
                kept = scan if same else None
        except EstateError as error:  # its name and what stands beside it can tell of the person all the same
            scan = FileScan(path="", size=thing.size, sha256="", decoded_as="", unread=(error.what,))
        return self._with_beside(thing, scan, answer, patterns).model_copy(update={"of_bytes": kept})

    def stamp(self, thing: ObjectVersion) -> Stamp:
        """As it was listed; that the very version is read, by its ETag, `fetch` sees to."""
        return thing.size, thing.etag or ""

    def place(self, thing: ObjectVersion) -> str | None:
        """The bucket, the key, and how its text is read."""
        return place_in_store(object_uri(self.folder.place.bucket, ""), thing.key, self.folder.text(thing))

    def identity(self, thing: ObjectVersion) -> str | None:
        """As S3 lists it."""
        return identity_of(self.folder.client, thing)

    def again(self, thing: ObjectVersion, known: FileScan, patterns: Patterns) -> FileScan | None:
        """With the name, and what S3 keeps beside the version now."""
        answer = first_byte(self.folder.client, self.folder.place.bucket, thing)
        return None if answer is None else self._with_beside(thing, known, answer, patterns)

    def keeping(self, keeper: Keeper) -> VersionLook:
        """As `Look.keeping`."""
        return replace(self, keeper=keeper)

    def _with_beside(
        self, version: ObjectVersion, alone: FileScan, answer: Mapping[str, Any], patterns: Patterns
    ) -> FileScan:
        scan = with_name(alone, self.folder.relative(version.key), patterns)
        tags, refused = self._tags(version)
        hits, unread = search_beside(answer, tags, patterns)
        return scan.model_copy(update={"hits": (*scan.hits, *hits), "unread": (*scan.unread, *unread, *refused)})

    def _tags(self, version: ObjectVersion) -> tuple[Mapping[str, str], tuple[str, ...]]:
        try:
            return tags_of(self.folder.client, self.folder.place.bucket, version.key, version.version_id), ()
        except _REFUSALS as error:
            return {}, (f"its tags cannot be read: {error_code(error)}",)
