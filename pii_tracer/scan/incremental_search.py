"""Searches only what earlier searches do not tell: files and objects that the ledger does not know, column chunks that
may hold a value by their shape, and a sample of the others.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import TypeVar

from pii_tracer.common.parallel_map import several
from pii_tracer.model.errors import ScanError
from pii_tracer.scan.hits import FileScan, Reading
from pii_tracer.scan.scan_ledger import LARGEST, Entry, ScanLedger
from pii_tracer.scan.search_workers import THREADS, Look, OfBytes, Searchers, Threads, told_by
from pii_tracer.scan.shapes.chunk_skipping import Shape
from pii_tracer.scan.shapes.chunk_value_tables import Place, read, written
from pii_tracer.scan.shapes.file_shapes import FileShapes
from pii_tracer.scan.shapes.objects_read_before import Outline
from pii_tracer.scan.value_forms import Patterns

T = TypeVar("T")

READ_AGAIN = 50
"""Of so many files that are not decoded one is, chosen by chance, and at least one of each place; so of the column
chunks that are left out."""
_MORE = 3
"""So many known files are read again, one after the other, where none of the sample could be compared."""
_PART = 1_000
_WHOLE = "\0whole"
"""Behind what tells an object of which no part is ever read: nobody asks for its end to learn that."""
_ASKED_AT_ONCE = 8
"""So many questions about objects that are known."""


@dataclass
class KeptShapes:
    """The shapes in a ledger, for the files of one place (`pii_tracer.scan.shapes.file_shapes.ShapeKeeper`).

    whole: SHA-256 of files that are decoded whatever is known of them. The others by what tells a file (its SHA-256) or
    a version of an object (place and identity): again: column chunks that are decoded whatever is known. left: those
    that were left out; unfetched: of these, those that were not even read; since: then, when they were.
    """

    ledger: ScanLedger
    whole: Collection[str] = ()
    again: Mapping[str, Collection[Place]] = field(default_factory=dict)
    left: dict[str, frozenset[Place]] = field(default_factory=dict)
    unfetched: dict[str, frozenset[Place]] = field(default_factory=dict)
    since: dict[str, datetime] = field(default_factory=dict)
    reading: Reading = field(default_factory=Reading)
    _outlined: dict[str, datetime] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def shapes_of(self, data: memoryview, digest: str, patterns: Patterns) -> FileShapes:
        """As `ShapeKeeper.shapes_of`."""
        return FileShapes(data, patterns.sought, lambda: self._known(data, digest), self.again.get(digest, ()))

    def keep(self, shapes: FileShapes, scan: FileScan) -> None:
        """As `ShapeKeeper.keep`. Of a file that was not read to its end nothing is kept."""
        if shapes.made and not scan.unread:
            self.ledger.keep_shapes(shapes.data, scan.sha256, written(shapes.made))
        self.count(shapes, scan.sha256)

    def has_outline(self, told: str) -> bool:
        """As `ObjectKeeper.has_outline`."""
        return self.ledger.has_shapes(told)

    def outline_of(self, told: str, end: memoryview) -> Outline | None:
        """As `ObjectKeeper.outline_of`."""
        kept = self.ledger.shapes(end, told) or self.ledger.shapes(end, told + _WHOLE)
        if kept is None:
            return None
        outline, self._outlined[told] = Outline.read(kept[0]), kept[1]
        return None if outline.sha256 in self.whole else outline

    def read_again(self, told: str) -> Collection[Place]:
        """As `ObjectKeeper.read_again`."""
        return self.again.get(told, ())

    def keep_outline(self, told: str, end: memoryview, outline: Outline) -> None:
        """As `ObjectKeeper.keep_outline`."""
        content = outline.written()
        if len(content) > LARGEST:
            outline = replace(outline, hollow={}, digests={}, shapes={})
            content = outline.written()
        self.ledger.keep_shapes(end, told if outline.hollow else told + _WHOLE, content)

    def count(self, shapes: FileShapes, told: str, unfetched: Collection[Place] = ()) -> None:
        """As `ObjectKeeper.count`."""
        here = Reading(shaped=bool(shapes.left), chunks=shapes.decoded, left=len(shapes.left))
        with self._lock:
            if shapes.left:
                self.left[told] = shapes.left
            if unfetched:
                self.unfetched[told], self.since[told] = frozenset(unfetched), self._outlined[told]
                parts = Reading(in_parts=1, unfetched=len(unfetched), oldest=self.since[told])
                here = here.and_(parts)
            self.reading = self.reading.and_(here)

    def _known(self, data: memoryview, digest: str) -> dict[Place, Shape] | None:
        kept = self.ledger.shapes(data, digest) if digest not in self.whole else None
        return read(kept[0]) if kept is not None else None


@dataclass
class LedgerSearchers:
    """Searches what the ledger does not know, and a sample of what it knows (see `Searchers`).

    ledger: None where everything is to be read; shapes are only kept where this process searches files. inner: who
    decodes and searches. reading: what was read, what was not.
    """

    ledger: ScanLedger | None
    inner: Searchers
    reading: Reading = field(default_factory=Reading)
    draw: random.Random = field(default_factory=random.SystemRandom)

    def search(self, look: Look[T], things: Iterable[T], patterns: Patterns) -> Iterator[tuple[T, FileScan]]:
        """As `Searchers.search`.

        Raises:
            ScanError: a file of the sample does not hold what the ledger says.
        """
        if self.ledger is None or patterns.file_keys is not None:
            for thing, scan in self.inner.search(look, things, patterns):
                self.reading = self.reading.and_(Reading(now=1))
                yield thing, scan
            return
        searches = self.ledger.search_names(patterns)
        waiting, begun = iter(things), None
        while part := list(islice(waiting, _PART)):
            identities: Iterable[str | None]
            if look.by_store:
                identities = map(look.identity, part)
            else:
                begun = _begun(self.ledger, look, part[0], searches) if begun is None else begun
                identities = several(look.identity, part, look.at_once) if begun else [None] * len(part)
            yield from self._part(self.ledger, look, list(zip(part, identities, strict=True)), patterns, searches)

    def take_reading(self) -> Reading:
        """What was read since this was last asked."""
        taken, self.reading = self.reading, Reading()
        return taken

    def _part(
        self,
        ledger: ScanLedger,
        look: Look[T],
        part: Sequence[tuple[T, str | None]],
        patterns: Patterns,
        searches: Sequence[str],
    ) -> Iterator[tuple[T, FileScan]]:
        things = [thing for thing, _ in part]
        names = [_names(ledger, look.place(thing), identity, searches) for thing, identity in part]
        entries = ledger.of([name for both in names for name in both])
        known = {n: entry for n, both in enumerate(names) if (entry := _known(both, entries)) is not None}
        again = set(self.draw.sample(sorted(known), -(-len(known) // READ_AGAIN)))
        taken = _taken(look, {n: (things[n], known[n].scan) for n in known if n not in again}, patterns)
        left = [n for n in range(len(things)) if n not in taken]
        kept = KeptShapes(ledger, whole={known[n].scan.sha256 for n in again})
        found = self.inner.search(self._shaped(look, kept), [things[n] for n in left], patterns)
        new: list[tuple[bytes, FileScan]] = []
        since: dict[bytes, datetime] = {}
        shaped: list[tuple[T, FileScan, str]] = []
        compared = 0
        for number, thing in enumerate(things):
            if number in taken:
                yield thing, taken[number]
                continue
            scan = next(found)[1]
            searched = look.of_bytes(thing, scan)
            if number in known:
                compared += _compared(ledger, searched, part[number][1], known[number].scan, scan)
            told = (told_by(look.place(thing), part[number][1]) or "") if look.by_store else scan.sha256
            if searched is not None and not searched[1].unread:  # under the identity of the bytes that were searched
                identity, alone = searched
                here = _names(ledger, look.place(thing), identity, searches[:1])
                new += [(name, alone) for name in here if name not in entries]
                since |= {name: kept.since[told] for name in here if told in kept.since}
            if told in kept.left:
                shaped.append((thing, scan, told))
            yield thing, scan
        if again and not compared:
            compared = self._another(ledger, look, part, {n: known[n].scan for n in taken}, patterns)
        drawn, refetched = self._look_again(look, shaped, kept, patterns)
        if new and not look.by_store and (place := look.place(things[0])) is not None:
            new.append((ledger.folder_name(place, searches[0]), _NOTHING))
        ledger.keep(new, since)
        reading = Reading(
            now=len(left),
            before=len(taken),
            by_store=len(taken) if look.by_store else 0,
            again=compared,
            oldest=min((known[number].at for number in taken), default=None),
            drawn=drawn,
            in_parts=sum(known[number].in_parts for number in taken),
            refetched=refetched,
        )
        self.reading = self.reading.and_(reading).and_(kept.reading)

    def _another(
        self,
        ledger: ScanLedger,
        look: Look[T],
        part: Sequence[tuple[T, str | None]],
        known: Mapping[int, FileScan],
        patterns: Patterns,
    ) -> int:
        """Read one more known thing again, or the next few, until one is compared; returns how many were.

        Raises:
            ScanError: as `_compared`.
        """
        for number in self.draw.sample(sorted(known), min(_MORE, len(known))):
            thing, identity = part[number]
            scan = look(thing, patterns)
            if _compared(ledger, look.of_bytes(thing, scan), identity, known[number], scan):
                return 1
        return 0

    def _shaped(self, look: Look[T], kept: KeptShapes) -> Look[T]:
        """The same look, which keeps shapes, where this process searches."""
        return look.keeping(kept) if kept.ledger.with_shapes and isinstance(self.inner, Threads) else look

    def _look_again(
        self, look: Look[T], shaped: Sequence[tuple[T, FileScan, str]], kept: KeptShapes, patterns: Patterns
    ) -> tuple[int, int]:
        """Decode a sample of the column chunks that were left out, and one of those that were not even read.

        Returns how many were compared in all, and how many of the second sample. shaped: with what tells each file in
        `kept`.

        Raises:
            ScanError: one of them shows something.
        """
        unread = [kept.unfetched.get(told, frozenset()) for _, _, told in shaped]
        places = [kept.left[told] for _, _, told in shaped]
        fetched = [(n, place) for n, here in enumerate(places) for place in sorted(here - unread[n])]
        unfetched = [(n, place) for n, here in enumerate(unread) for place in sorted(here)]
        drawn = [self.draw.sample(chunks, -(-len(chunks) // READ_AGAIN)) for chunks in (fetched, unfetched)]
        done = self._decoded_again(look, shaped, kept.ledger, [*drawn[0], *drawn[1]], patterns)
        counts = []
        for chunks, sample in zip((fetched, unfetched), drawn, strict=True):
            compared = sum(n in done for n, _ in sample)
            tried = {n for n, _ in sample}
            others = [chunk for chunk in chunks if chunk[0] not in tried] if sample and not compared else []
            for chunk in self.draw.sample(others, min(_MORE, len(others))):
                if self._decoded_again(look, shaped, kept.ledger, [chunk], patterns):
                    compared = 1
                    break
            counts.append(compared)
        return sum(counts), counts[1]

    def _decoded_again(
        self,
        look: Look[T],
        shaped: Sequence[tuple[T, FileScan, str]],
        ledger: ScanLedger,
        chunks: Sequence[tuple[int, Place]],
        patterns: Patterns,
    ) -> set[int]:
        """Decode column chunks, by the number of their file; returns the files that were compared.

        Raises:
            ScanError: as `_compared`.
        """
        places: dict[str, set[Place]] = {}
        for n, place in chunks:
            places.setdefault(shaped[n][2], set()).add(place)
        files = sorted({n for n, _ in chunks})
        kept = KeptShapes(ledger, again=places)
        scans = THREADS.search(self._shaped(look, kept), [shaped[n][0] for n in files], patterns)
        done = set()
        for n, (_, scan) in zip(files, scans, strict=True):
            # a file that somebody wrote meanwhile is another
            thing, known, _ = shaped[n]
            before = look.of_bytes(thing, known)
            if before is not None and _compared(ledger, look.of_bytes(thing, scan), *before, scan):
                done.add(n)
        return done


_NOTHING = FileScan(path="", size=0, sha256="", decoded_as="")


def _begun(ledger: ScanLedger, look: Look[T], thing: T, searches: Sequence[str]) -> bool:
    """Whether the folder has entries of these searches: else no file has to be read for its digest alone."""
    place = look.place(thing)
    return place is not None and bool(ledger.of([ledger.folder_name(place, search) for search in searches]))


def _names(ledger: ScanLedger, place: str | None, identity: str | None, searches: Sequence[str]) -> tuple[bytes, ...]:
    """The names of a file's entries, one for each search; none where nothing may be remembered."""
    if place is None or identity is None:
        return ()
    return tuple(ledger.name(place, identity, search) for search in searches)


def _taken(look: Look[T], known: Mapping[int, tuple[T, FileScan]], patterns: Patterns) -> dict[int, FileScan]:
    """What need not be searched, with what stands beside its bytes now. known: what earlier searches found."""

    def told(item: tuple[T, FileScan]) -> FileScan | None:
        return look.again(*item, patterns)

    scans = several(told, known.values(), _ASKED_AT_ONCE) if look.by_store else map(told, known.values())
    return {number: scan for number, scan in zip(known, scans, strict=True) if scan is not None}


def _compared(
    ledger: ScanLedger, searched: OfBytes | None, identity: str | None, known: FileScan, scan: FileScan
) -> bool:
    """Whether a file that was read again had the same bytes, which show what is known of them.

    Bytes that came since are others, and what cannot be read shows nothing.

    Raises:
        ScanError: the same bytes show something else.
    """
    if searched is None or searched[0] != identity:
        return False
    if searched[1] != known:
        ledger.distrust()
        raise disagreement(scan.path)
    return True


def disagreement(path: str) -> ScanError:
    """The error for a known file that was read again and shows something else. path: values in it are masked."""
    return ScanError(
        "a file that was read again differs from its entry in the scan ledger",
        where=path,
        todo="run the command again, which reads all files (the ledger was emptied)",
    )


def _known(names: Sequence[bytes], entries: dict[bytes, Entry]) -> Entry | None:
    """The entry of this very search, or of one without columns that found nothing (`ScanLedger.search_names`)."""
    exact, *plain = (entries.get(name) for name in names) if names else (None,)
    if exact is not None:
        return exact
    return next((entry for entry in plain if entry is not None and not entry.scan.hits), None)
