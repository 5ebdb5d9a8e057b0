"""Verification by bytes: every file of a copy is decoded and searched, whatever the executors said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pii_tracer.common.plurals import counted
from pii_tracer.model.errors import EstateError
from pii_tracer.model.hive_text.layout import FileText, searched_text_of
from pii_tracer.model.hive_text.text_reading_rules import NO_TEXTS, TextPlaces
from pii_tracer.model.locations import object_prefix, object_uri
from pii_tracer.model.plan import NUMBERED, Copy, Mask
from pii_tracer.scan.folder_scan import scan_object, scan_tree, with_name
from pii_tracer.scan.hits import FileScan, Hit, column_of, key_set_in, person_in
from pii_tracer.scan.known_columns import key_columns, with_columns_made
from pii_tracer.scan.object_metadata import search_beside
from pii_tracer.scan.search_workers import THREADS, KnownByStore, Searchers, Stamp, place_in_store
from pii_tracer.scan.value_forms import Patterns
from pii_tracer.verify.hold_allowances import (
    excused,
    held_values,
    rows_with_more,
    with_names,
)
from pii_tracer.verify.short_numbers import ShortNumbersThen, unjudged
from pii_tracer.verify.verdicts import (
    ByteVerdict,
    NoKeys,
    Residue,
    SameDigits,
    ScannedFile,
)
from pii_tracer.verify.waived_files import NOTHING_WAIVED, WaivedFiles


class ObjectVersionBytes(Protocol):
    """One version of one object, as far as its bytes can be had (`stores.s3.version_readability.VersionBytes`)."""

    @property
    def key(self) -> str:
        """Object key."""

    @property
    def version_id(self) -> str:
        """Version id."""

    @property
    def evidence(self) -> str:
        """`bytes`, `known`, `marker` or `unreadable`."""

    @property
    def reason(self) -> str | None:
        """Why it is unreadable."""

    @property
    def sha256(self) -> str | None:
        """Hex digest of a known version."""

    @property
    def size(self) -> int:
        """Size in bytes."""

    @property
    def answer(self) -> Mapping[str, Any]:
        """HeadObject's, empty where there is none."""

    @property
    def identity(self) -> str | None:
        """What is another as soon as the bytes are others; None where nothing tells."""

    def read(self) -> tuple[bytes, Mapping[str, Any], bool]:
        """The bytes, what stands beside them, and whether they are those of `identity`. Raises `EstateError`."""

    def answer_now(self) -> Mapping[str, Any] | None:
        """What stands beside the version's bytes now; None where it cannot be read, or is not that of `identity`."""

    def tags(self) -> Mapping[str, str]:
        """The tags. Raises `EstateError` when they may not be read."""


def verify_bytes(
    copy: Copy,
    patterns: Patterns,
    root: Path,
    searchers: Searchers = THREADS,
) -> ByteVerdict:
    """Search every file under `root`, the folder that holds everything of the copy.

    Weak numbers in columns that lineage proves to mean something else (`copy.other_keys`) are reported apart, and so is
    what a hold keeps (`copy.mask`), in rows that hold nothing else. Cells of the columns by which the plan deletes or
    clears here (`copy.places`) are compared as a whole.

    Raises:
        ScanError: the folder is missing or cannot be listed.
    """
    patterns = patterns.comparing(key_columns(copy.places, root))
    texts = TextPlaces.of_table(root.resolve().as_posix(), searched_text_of(copy.facts))
    scanned = scan_tree(root, patterns, searchers=searchers, texts=texts)
    others = with_columns_made(copy.other_keys, root)
    if copy.mask is None:
        verdict = judge(copy, str(root), scanned.files, others)
    else:
        verdict = _without_held(copy, copy.mask, scanned.files, others, patterns, root)
    return verdict.model_copy(update={"compared": patterns.key_columns.labels})


def _without_held(
    copy: Copy, mask: Mask, files: tuple[FileScan, ...], others: frozenset[str], patterns: Patterns, root: Path
) -> ByteVerdict:
    """The verdict where a hold keeps columns: what stands in them is told apart, unless its row holds more."""
    kept, files = with_columns_made(mask.kept, root), with_names(copy, files, mask, root)
    more, unread = rows_with_more(copy, mask, files, kept, root.__truediv__, patterns)
    return judge_held(copy, mask, judge(copy, str(root), files, others, kept), files, kept, more, unread)


def judge_held(
    copy: Copy,
    mask: Mask,
    rest: ByteVerdict,
    files: Iterable[FileScan],
    kept: frozenset[str],
    more: Iterable[str],
    unread: Iterable[str],
) -> ByteVerdict:
    """The verdict on files with columns that a hold keeps. rest: what `judge` says of them; more, unread: as
    `rows_with_more`.
    """
    rows = tuple(
        Residue(copy_id=copy.id, file=path, where="data: rows with values that are not held", form="row")
        for path in sorted(more)
    )
    return rest.model_copy(
        update={
            "residue": (*rest.residue, *rows),
            "unverified": (*rest.unverified, *unread),
            "held": held_values(copy, mask, files, kept),
        }
    )


def verify_objects(
    copy: Copy,
    patterns: Patterns,
    versions: Iterable[ObjectVersionBytes],
    searchers: Searchers = THREADS,
    texts: TextPlaces = NO_TEXTS,
) -> ByteVerdict:
    """Search every version of every object of a copy. What cannot be read is unverified, never clean.

    What stands beside the bytes (user metadata, content headers, tags) is searched as well, of archived versions, too.
    A version that is archived but known by S3's own SHA-256 to be bytes this run wrote counts as searched: those bytes
    were searched before they were written. texts: by what rules text is read, where the plan does not say it.

    Raises:
        EstateError: reading a version was refused.
        ScanError: as `LedgerSearchers.search`.
    """
    patterns = patterns.comparing(key_columns(copy.match, kind=copy.format))
    own = searched_text_of(copy.facts)
    look = _ObjectLook(copy.location, TextPlaces.of_table(copy.location, own) if own else texts)
    files = [scan for _, scan in searchers.search(look, versions, patterns)]
    verdict = judge(copy, copy.location, tuple(files), frozenset(copy.other_keys))
    return verdict.model_copy(update={"compared": patterns.key_columns.labels})


@dataclass(frozen=True)
class _ObjectLook(KnownByStore):
    """How a version of an object of a copy is searched (`pii_tracer.scan.search_workers.Look`), one after the other.

    location: of the copy. texts: by what rules text is read.
    """

    location: str
    texts: TextPlaces
    at_once: int = 1
    only_here: ClassVar = True

    def __call__(self, thing: ObjectVersionBytes, patterns: Patterns) -> FileScan:
        """Search the version, its name, what the store keeps beside it, and its tags."""
        if thing.evidence == "marker":
            found = with_name(scan_object("", b"", patterns), thing.key, patterns)
            return found.model_copy(update={"decoded_as": "delete marker", "path": _named(thing, patterns)})
        kept, answer = None, thing.answer
        if thing.evidence == "bytes":
            data, answer, same = thing.read()
            alone = scan_object(thing.key, data, patterns, self._text(thing))
            kept = alone if same else None
            found = with_name(alone, thing.key, patterns)
        elif thing.evidence == "known" and thing.sha256:
            known = with_name(scan_object("", b"", patterns), thing.key, patterns)
            told = {"sha256": thing.sha256, "size": thing.size, "decoded_as": "known by its SHA-256"}
            found = known.model_copy(update=told)
        else:
            reason = thing.reason or "its bytes cannot be read"
            found = FileScan(path="", size=thing.size, sha256="", decoded_as="", unread=(reason,))
        return _with_beside(found, thing, answer, patterns).model_copy(update={"of_bytes": kept})

    def stamp(self, thing: ObjectVersionBytes) -> Stamp:
        """As the store tells it."""
        return thing.size, thing.identity or ""

    def place(self, thing: ObjectVersionBytes) -> str | None:
        """The bucket, the key, and how its text is read."""
        place = object_prefix(self.location)
        return place and place_in_store(object_uri(place.bucket, ""), thing.key, self._text(thing))

    def identity(self, thing: ObjectVersionBytes) -> str | None:
        """As the store tells it now."""
        return thing.identity

    def again(self, thing: ObjectVersionBytes, known: FileScan, patterns: Patterns) -> FileScan | None:
        """With the name, and what the store keeps beside the version now."""
        answer = thing.answer_now()
        return None if answer is None else _with_beside(with_name(known, thing.key, patterns), thing, answer, patterns)

    def _text(self, version: ObjectVersionBytes) -> FileText | None:
        place = object_prefix(self.location)
        return place and self.texts.of(object_uri(place.bucket, version.key))


def _named(version: ObjectVersionBytes, patterns: Patterns) -> str:
    return f"{patterns.mask(version.key)}?versionId={version.version_id}"


def _with_beside(
    result: FileScan, version: ObjectVersionBytes, answer: Mapping[str, Any], patterns: Patterns
) -> FileScan:
    """Tags that may not be read are unverified: they can say anything."""
    tags: Mapping[str, str] = {}
    refused: tuple[str, ...] = ()
    try:
        tags = version.tags()
    except EstateError as error:
        refused = (error.what,)
    hits, unread = search_beside(answer, tags, patterns)
    more = {"hits": (*result.hits, *hits), "unread": (*result.unread, *unread, *refused)}
    return result.model_copy(update=more | {"path": _named(version, patterns)})


def look_past(
    name: str,
    root: str,
    scanned: Iterable[FileScan],
    *,
    alone: bool = False,
    named: bool = False,
    short: ShortNumbersThen | None = None,
    waived: WaivedFiles = NOTHING_WAIVED,
) -> ByteVerdict:
    """The verdict on what is no copy: only values that cannot be mistaken count where no lineage leads. What could not
    be read is unverified here as everywhere.

    alone: there is no plan that knows lineage. Short numbers count, too, since whoever asks looks at their columns, and
    the files that were searched are named. named: they are, since the plan has no copy that could be the scope. short:
    how short numbers count. waived: files that a named person leaves as they were at planning, or that
    could not be read then either; other bytes count.
    """
    scans = tuple(scanned)
    counted = tuple(scan for scan in scans if not waived.may_hold(scan.sha256))
    since = short.since(counted) if short and not alone else frozenset()
    theirs = frozenset(at for at in since if short and short.residue(at))
    late = unjudged(since - theirs)
    residue = tuple(
        Residue(
            copy_id=name,
            file=scan.path,
            where=hit.column or hit.where,
            form=hit.form.value,
            person=person_in(hit.key_set),
        )
        for scan in counted
        for hit in scan.hits
        if alone or not hit.weak or (key_set_in(hit.key_set), hit.column or hit.where) in theirs
    )
    unread: list[str] = []
    as_waived: list[tuple[str, str]] = []
    for scan in scans:
        mark = waived.unread_mark(scan.sha256)
        for why in (f"{scan.path}: {one}" for one in scan.unread):
            if mark is None:
                unread.append(why)
            else:
                as_waived.append((why, mark))
    files = tuple(
        ScannedFile(path=scan.path, size=scan.size, sha256=scan.sha256, decoded_as=scan.decoded_as)
        for scan in (scans if alone or named else ())
        if scan.sha256
    )
    other = no_keys(name, scans)
    return ByteVerdict(
        copy_id=name,
        root=root,
        files=files,
        residue=residue,
        unverified=(*unread, *late),
        late=late,
        no_keys=other,
        unread_as_waived=tuple(why for why, _ in as_waived),
        marks_waived=tuple(mark for _, mark in as_waived),
    )


def no_keys(copy_id: str, scans: Iterable[FileScan]) -> tuple[NoKeys, ...]:
    """By column, the cells that the owner's word makes nobody's key."""
    found: dict[str, list[tuple[str, int]]] = {}
    for scan in scans:
        for cell in scan.left:
            found.setdefault(cell.column or cell.where, []).append((scan.path, cell.count))
    return tuple(
        NoKeys(copy_id=copy_id, column=c, files=len({path for path, _ in seen}), count=sum(n for _, n in seen))
        for c, seen in sorted(found.items())
    )


def with_uploads(verdict: ByteVerdict, uploads: int) -> ByteVerdict:
    """The verdict on a place with unfinished multipart uploads: their bytes cannot be read, so it is not clean."""
    if not uploads:
        return verdict
    return verdict.model_copy(update={"unverified": (*verdict.unverified, unread_uploads(verdict.root, uploads))})


def unread_uploads(place: str, number: int) -> str:
    """Why a place with so many unfinished multipart uploads is not clean."""
    return f"{place}: {counted(number, 'unfinished multipart upload')} with bytes that nobody can read"


def _numbered(copy: Copy, hit: Hit) -> str | None:
    """The hit's column, where its digits are the number of somebody else's row."""
    means = copy.facts.get(NUMBERED, {}).get(hit.column)
    return hit.column if means is not None and key_set_in(hit.key_set) not in means else None


def judge(
    copy: Copy, root: str, files: tuple[FileScan, ...], others: frozenset[str], kept: frozenset[str] = frozenset()
) -> ByteVerdict:
    """Sort hits into residue and same digits. others: columns in which a weak number means something else.

    kept: columns that a hold keeps: what stands in them is no residue.
    """
    residue: dict[tuple[str, str, str, str], Residue] = {}
    digits: dict[str, list[tuple[str, int]]] = {}
    for file in files:
        explained = excused(file, copy.mask, kept) if copy.mask else ()
        for hit in (h for h in file.hits if h not in explained):
            if hit.weak and (column := column_of(hit, others) or _numbered(copy, hit)):
                digits.setdefault(column, []).append((file.path, hit.count))
                continue
            where = f"{hit.where}: {hit.column}" if hit.column else hit.where
            person = person_in(hit.key_set)
            residue[(file.path, where, hit.form, person or "")] = Residue(
                copy_id=copy.id, file=file.path, where=where, form=hit.form.value, person=person
            )
    return ByteVerdict(
        copy_id=copy.id,
        root=root,
        files=tuple(
            ScannedFile(path=f.path, size=f.size, sha256=f.sha256, decoded_as=f.decoded_as) for f in files if f.sha256
        ),
        residue=tuple(residue[key] for key in sorted(residue)),
        unverified=tuple(f"{file.path}: {reason}" for file in files for reason in file.unread),
        same_digits=tuple(
            SameDigits(copy_id=copy.id, column=c, files=len({p for p, _ in seen}), count=sum(n for _, n in seen))
            for c, seen in sorted(digits.items())
        ),
        no_keys=no_keys(copy.id, files),
    )
