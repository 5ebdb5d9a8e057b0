"""What scans found, kept so that the same bytes are not decoded twice for the same values.

An entry says what one search found in the bytes of one file. It holds for the same path, the same bytes (SHA-256), the
same values, key columns and scanner, and for nothing else: each of these is part of the entry's name, an HMAC under a
key of the estate. An entry carries an HMAC of its own. Who does not have the key can remove entries, which costs time,
and cannot make one. Entries are independent of each other, so that no chain is needed.

Never kept: what could not be read, and encrypted files, whose keys may be gone the next time.
"""

from __future__ import annotations

import hmac
import json
import os
import random
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TypeVar

from pii_tracer.common.parallel_map import several
from pii_tracer.model.canonical_json import iso, parse_time
from pii_tracer.model.errors import ScanError
from pii_tracer.scan.hits import FileScan, Reading
from pii_tracer.scan.key_boundaries import KeyColumns
from pii_tracer.scan.scanner_version import scanner_version
from pii_tracer.scan.search_workers import Look, Searchers
from pii_tracer.scan.value_forms import Patterns

T = TypeVar("T")

KEPT = timedelta(days=90)
"""An entry that is older is forgotten."""
READ_AGAIN = 50
"""Of so many files that are not decoded one is, chosen by chance, and at least one of each place."""
_PART = 1_000
_TABLE = "CREATE TABLE IF NOT EXISTS scans (name BLOB PRIMARY KEY, at TEXT, scan TEXT, mac BLOB) WITHOUT ROWID"


@dataclass(frozen=True)
class Entry:
    """What an earlier search found, and when."""

    scan: FileScan
    at: datetime


class ScanLedger:
    """The ledger's file (SQLite, mode 0600). A file that is damaged or forged is emptied: it only costs time."""

    def __init__(self, file: Path, secret: bytes, now: Callable[[], datetime], warn: Callable[[str], None]) -> None:
        self.file = file
        self._secret = secret
        self._now = now
        self._warn = warn
        self._lock = threading.Lock()

    def search_name(self, patterns: Patterns, *, columns: bool) -> str:
        """What stands for a search in the names of its entries. columns: with the key columns that it compares by."""
        sets = [key_set.model_dump() for key_set in patterns.key_sets]
        compared = patterns.key_columns if columns else KeyColumns()
        return self._mac("search", json.dumps([sets, compared.described]), scanner_version()).hex()

    def name(self, place: str, digest: str, search: str) -> bytes:
        """The name of the entry about the bytes of a file. search: as `search_name`."""
        return self._mac("name", place, digest, search)

    def of(self, names: Sequence[bytes]) -> dict[bytes, Entry]:
        """The entries of these names that are there and whole."""
        if not names or not self.file.exists():
            return {}
        found: dict[bytes, Entry] = {}
        with self._lock:
            try:
                with closing(self._opened()) as store:
                    for name in names:
                        row = store.execute("SELECT at, scan, mac FROM scans WHERE name = ?", (name,)).fetchone()
                        if row is not None:
                            found[name] = self._entry(name, *row)
            except (sqlite3.Error, OSError, ValueError, TypeError):
                self._empty("it is damaged, or somebody else wrote in it")
                return {}
        oldest = self._now() - KEPT
        return {name: entry for name, entry in found.items() if entry.at >= oldest}

    def keep(self, scans: Sequence[tuple[bytes, FileScan]]) -> None:
        """Write down what was found now; entries that are too old go. A disk that is full costs the entries only."""
        if not scans:
            return
        at = iso(self._now())
        rows = [(name, at, text, self._mac("scan", name.hex(), at, text)) for name, text in map(_written, scans)]
        with self._lock:
            try:
                with closing(self._opened()) as store, store:
                    store.executemany("INSERT OR REPLACE INTO scans VALUES (?, ?, ?, ?)", rows)
                    store.execute("DELETE FROM scans WHERE at < ?", (iso(self._now() - KEPT),))
            except (sqlite3.Error, OSError):
                self._empty("it cannot be written")

    def distrust(self) -> None:
        """Forget everything: a file read again did not show what the ledger says."""
        with self._lock:
            self._empty("a file that was read again holds something else than it says")

    def _opened(self) -> sqlite3.Connection:
        self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self.file.exists():
            os.close(os.open(self.file, os.O_WRONLY | os.O_CREAT, 0o600))
        store = sqlite3.connect(self.file, timeout=30)
        store.execute(_TABLE)
        return store

    def _entry(self, name: bytes, at: str, scan: str, mac: bytes) -> Entry:
        if not hmac.compare_digest(bytes(mac), self._mac("scan", name.hex(), at, scan)):
            raise ValueError("an entry of another hand")
        return Entry(FileScan.model_validate_json(scan), parse_time(at))

    def _mac(self, *parts: str) -> bytes:
        return hmac.new(self._secret, "\0".join(parts).encode("utf-8", "surrogatepass"), sha256).digest()

    def _empty(self, why: str) -> None:
        self._warn(f"everything is read, and the scan ledger {self.file} is made anew: {why}")
        for part in (self.file, *(self.file.with_name(self.file.name + end) for end in ("-journal", "-wal", "-shm"))):
            with suppress(OSError):  # whatever stands there is of no use; the next to open it says so again
                part.unlink()


def _written(item: tuple[bytes, FileScan]) -> tuple[bytes, str]:
    return item[0], item[1].model_dump_json(exclude_defaults=True)


@dataclass
class LedgerSearchers:
    """Searches what the ledger does not know, and a sample of what it knows (see `Searchers`).

    ledger: None where everything is to be read. inner: who decodes and searches. reading: what was read, what was not.
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
        # with the patterns' key columns, and without: what is clean without them is clean with them
        searches = [self.ledger.search_name(patterns, columns=columns) for columns in (True, False)]
        waiting = iter(things)
        while part := list(islice(waiting, _PART)):
            yield from self._part(self.ledger, look, part, patterns, searches)

    def take_reading(self) -> Reading:
        """What was read since this was last asked."""
        taken, self.reading = self.reading, Reading()
        return taken

    def _part(
        self, ledger: ScanLedger, look: Look[T], things: Sequence[T], patterns: Patterns, searches: Sequence[str]
    ) -> Iterator[tuple[T, FileScan]]:
        digests = several(look.digest, things, look.at_once)
        names = [_names(ledger, look.place(t), d, searches) for t, d in zip(things, digests, strict=True)]
        entries = ledger.of([name for both in names for name in both])
        known = {n: entry for n, both in enumerate(names) if (entry := _known(both, entries)) is not None}
        again = set(self.draw.sample(sorted(known), -(-len(known) // READ_AGAIN)))
        left = [n for n in range(len(things)) if n not in known or n in again]
        found = self.inner.search(look, [things[n] for n in left], patterns)
        new: list[tuple[bytes, FileScan]] = []
        for number, thing in enumerate(things):
            if number in known and number not in again:
                yield thing, known[number].scan
                continue
            scan = next(found)[1]
            if number in known and scan != known[number].scan:
                ledger.distrust()
                raise _disagreement(scan)
            if scan.sha256 and not scan.unread:  # under the digest of the bytes that were searched
                new += [(name, scan) for name in _names(ledger, look.place(thing), scan.sha256, searches[:1])]
            yield thing, scan
        ledger.keep(new)
        times = [entry.at for number, entry in known.items() if number not in again]
        here = Reading(now=len(left), before=len(times), again=len(again), oldest=min(times, default=None))
        self.reading = self.reading.and_(here)


def _names(ledger: ScanLedger, place: str | None, digest: str | None, searches: Sequence[str]) -> tuple[bytes, ...]:
    """The names of a file's entries, one for each search; none where nothing may be remembered."""
    if place is None or digest is None:
        return ()
    return tuple(ledger.name(place, digest, search) for search in searches)


def _disagreement(scan: FileScan) -> ScanError:
    return ScanError(
        "a file that was read again does not hold what the scan ledger says of it",
        where=scan.path,
        todo="the ledger was emptied: run the command again, and everything is read",
    )


def _known(names: Sequence[bytes], entries: dict[bytes, Entry]) -> Entry | None:
    exact, plain = (entries.get(name) for name in names) if names else (None, None)
    if exact is not None:
        return exact
    return plain if plain is not None and not plain.scan.hits else None
