"""What scans found, kept so that the same bytes are not decoded twice for the same values.

An entry says what one search found in the bytes of one file, or of one version of an object. It holds for the same
path, the same bytes, the same values, key columns and scanner, and for nothing else: each of these is part of the
entry's name, an HMAC under a key of the estate. The same bytes are told by their SHA-256, or by what the store says of
a version (`pii_tracer.scan.search_workers.Look.identity`). An entry carries an HMAC of its own. Who does not have the
key can remove entries, which costs time, and cannot make one. Entries are independent of each other, so that no chain
is needed.

Beside them stand the shapes of column chunks (`pii_tracer.scan.shapes`), which hold for the same bytes and scanner, and
for any values. They are sealed with a key that is made of the estate's and of the file's own bytes: nobody opens the
shapes of a file that is gone.

Never kept: what could not be read, and encrypted files, whose keys may be gone the next time.
"""

from __future__ import annotations

import hmac
import json
import os
import sqlite3
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pii_tracer.model.canonical_json import iso, parse_time
from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.key_boundaries import KeyColumns
from pii_tracer.scan.scanner_version import scanner_version
from pii_tracer.scan.value_forms import Patterns

T = TypeVar("T")

KEPT = timedelta(days=90)
"""An entry that is older is forgotten."""
MOST = 2_000_000
"""So many entries are kept at most, the newest: about half a gigabyte."""
MOST_BYTES = 8 << 30
"""So many bytes of shapes are kept at most, the newest."""
LARGEST = 256 << 20
"""Shapes of one file that take more bytes are not kept: SQLite keeps no value of 10^9 bytes."""
_SWEPT_AFTER = 100_000
"""A process that writes so many entries looks at all of them again, for those that are too old or too many."""
_SWEPT_AFTER_BYTES = 512 << 20
"""The same after so many bytes of shapes."""
_TABLES = (
    "CREATE TABLE IF NOT EXISTS scans (name BLOB PRIMARY KEY, at TEXT, scan TEXT, mac BLOB) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS shapes (name BLOB PRIMARY KEY, at TEXT, sealed BLOB)",
)
_NONCE = 12
_IN_PARTS = "in parts "
"""Begins the entry about an object of which a part was read."""
END = 1 << 16
"""So many bytes at the end of a file are part of the key to its shapes."""


@dataclass(frozen=True)
class Entry:
    """What an earlier search found. at: when all the bytes had been read. in_parts: that was before this search, which
    read only those that could hold a value."""

    scan: FileScan
    at: datetime
    in_parts: bool = False


class ScanLedger:
    """The ledger's file (SQLite, mode 0600). A file that is damaged or forged is emptied: it only costs time."""

    def __init__(
        self,
        file: Path,
        secret: bytes,
        now: Callable[[], datetime],
        warn: Callable[[str], None],
        *,
        with_shapes: bool = False,
    ) -> None:
        """with_shapes: whether shapes of column chunks are written down and asked."""
        self.file = file
        self.with_shapes = with_shapes
        self._secret = secret
        self._now = now
        self._warn = warn
        self._lock = threading.Lock()
        self._named: tuple[Sequence[KeySet], Sequence[KeySet], str] = ((), (), "")
        self._until_swept = self._bytes_until_swept = 0

    def search_names(self, patterns: Patterns) -> tuple[str, ...]:
        """What stands for a search in the names of its entries; then, for the same search without columns.

        The second only where columns can do nothing but take hits away: what is clean without them is clean with them.
        """
        ways = [patterns.key_columns, *([KeyColumns()] if patterns.key_columns.only_leave_out else [])]
        return tuple(self._search_name(patterns, columns) for columns in ways)

    def _search_name(self, patterns: Patterns, compared: KeyColumns) -> str:
        return self._mac("search", self._sets_of(patterns), json.dumps(compared.described), scanner_version()).hex()

    def _sets_of(self, patterns: Patterns) -> str:
        """What stands for all values that are searched for: the same for every place of a search, and they are many."""
        sets, rows, name = self._named
        if sets is not patterns.key_sets or rows is not patterns.row_sets:
            dumped = [key_set.model_dump() for key_set in (*patterns.key_sets, *patterns.row_sets)]
            name = self._mac("sets", json.dumps(dumped)).hex()
            self._named = patterns.key_sets, patterns.row_sets, name
        return name

    def name(self, place: str, identity: str, search: str) -> bytes:
        """The name of the entry about the bytes of a file. search: as of `search_names`."""
        return self._mac("name", place, identity, search)

    def rows_name(self, place: str, identity: str, search: str, about: str) -> bytes:
        """The name of the entry about the rows of a file. about: what decides whose a row is, beside the search."""
        return self._mac("rows", place, identity, search, about)

    def folder_name(self, place: str, search: str) -> bytes:
        """The name of the entry which says that the folder of a place has entries of a search."""
        return self._mac("folder", place.partition("\0")[0], search)

    def of(self, names: Sequence[bytes]) -> dict[bytes, Entry]:
        """The entries of these names that are there and whole."""

        def entry(at: datetime, text: str) -> Entry:
            alone = text.removeprefix(_IN_PARTS)
            return Entry(FileScan.model_validate_json(alone), at, in_parts=alone != text)

        return self._read(names, entry)

    def rows_of(self, names: Sequence[bytes]) -> dict[bytes, str]:
        """What was kept of rows under these names (`rows_name`)."""
        sealed, seal = self._read(names, lambda _, text: b64decode(text)), self._row_seal
        return {name: seal.decrypt(row[:_NONCE], row[_NONCE:], name).decode() for name, row in sealed.items()}

    def _read(self, names: Sequence[bytes], entry: Callable[[datetime, str], T]) -> dict[bytes, T]:
        if not names or not self.file.exists():
            return {}
        found: dict[bytes, T] = {}
        oldest = self._now() - KEPT
        with self._lock:
            try:
                with closing(self._opened()) as store:
                    for name in names:
                        row = store.execute("SELECT at, scan, mac FROM scans WHERE name = ?", (name,)).fetchone()
                        if row is not None and (at := self._time(name, *row)) >= oldest:
                            found[name] = entry(at, row[1])
            except (sqlite3.Error, OSError, ValueError, TypeError):
                self._empty("it is damaged, or a different program wrote to it")
                return {}
        return found

    def keep(self, scans: Sequence[tuple[bytes, FileScan]], since: Mapping[bytes, datetime] | None = None) -> None:
        """Write down what was found now; entries that are too old or too many go.

        since: of entries about objects of which a part was read now, when all their bytes were. A disk that is full
        costs the entries only.
        """
        since = since or {}
        whole = [(name, scan.model_dump_json(exclude_defaults=True)) for name, scan in scans]
        self._write([(name, since.get(name), _IN_PARTS + text if name in since else text) for name, text in whole])

    def keep_rows(self, entries: Sequence[tuple[bytes, str]]) -> None:
        """As `keep`, of what is known of rows. It is sealed: a sum over a few rows could be guessed."""
        nonces = [os.urandom(_NONCE) for _ in entries]
        sealed = [
            n + self._row_seal.encrypt(n, row.encode(), name) for n, (name, row) in zip(nonces, entries, strict=True)
        ]
        self._write([(name, None, b64encode(row).decode()) for (name, _), row in zip(entries, sealed, strict=True)])

    @cached_property
    def _row_seal(self) -> AESGCM:
        return AESGCM(self._mac("key of rows"))

    def _write(self, entries: Sequence[tuple[bytes, datetime | None, str]]) -> None:
        if not entries:
            return
        now = self._now()
        timed = [(name, iso(at or now), text) for name, at, text in entries]
        rows = [(name, at, text, self._mac("scan", name.hex(), at, text)) for name, at, text in timed]
        with self._lock:
            try:
                with closing(self._opened()) as store, store:
                    store.executemany("INSERT OR REPLACE INTO scans VALUES (?, ?, ?, ?)", rows)
                    self._until_swept -= len(rows)
                    if self._until_swept < 0:  # it looks at every entry
                        self._sweep(store)
                        self._until_swept = _SWEPT_AFTER
            except (sqlite3.Error, OSError):
                self._empty("it cannot be written")

    def has_shapes(self, told: str) -> bool:
        """Whether anything was kept of the column chunks of a file. told: as of `shapes`."""
        if not self.file.exists():
            return False
        with self._lock:
            try:
                with closing(self._opened()) as store:
                    asked = store.execute("SELECT 1 FROM shapes WHERE name = ?", (self._shapes_name(told),))
                    return asked.fetchone() is not None
            except (sqlite3.Error, OSError):
                self._empty("it is damaged, or a different program wrote to it")
                return False

    def shapes(self, data: memoryview, told: str) -> tuple[bytes, datetime] | None:
        """What was kept of the column chunks of a file (`pii_tracer.scan.shapes`), and when it was read.

        data: its bytes, or the last of them. told: SHA-256 of its bytes, or place and identity of an object. What other
        bytes do not open is forgotten, and nothing else.
        """
        if not self.file.exists():
            return None
        name, seal = self._seal(data, told)
        with self._lock:
            try:
                with closing(self._opened()) as store:
                    row = store.execute("SELECT at, sealed FROM shapes WHERE name = ?", (name,)).fetchone()
                    if row is None:
                        return None
                    at, sealed = str(row[0]), bytes(row[1])
                    try:
                        content = seal.decrypt(sealed[:_NONCE], sealed[_NONCE:], name + at.encode())
                    except InvalidTag:
                        with store:
                            store.execute("DELETE FROM shapes WHERE name = ?", (name,))
                        return None
                since = parse_time(at)
                return (content, since) if since >= self._now() - KEPT else None
            except (sqlite3.Error, OSError, ValueError, TypeError):
                self._empty("it is damaged, or a different program wrote to it")
                return None

    def keep_shapes(self, data: memoryview, told: str, content: bytes) -> None:
        """Write down what is known of the column chunks of a file. A disk that is full costs that only.

        Of more than `LARGEST` bytes nothing is kept.
        """
        if len(content) > LARGEST:
            return
        (name, seal), at, nonce = self._seal(data, told), iso(self._now()), os.urandom(_NONCE)
        sealed = nonce + seal.encrypt(nonce, content, name + at.encode())
        with self._lock:
            try:
                with closing(self._opened()) as store, store:
                    store.execute("INSERT OR REPLACE INTO shapes VALUES (?, ?, ?)", (name, at, sealed))
                    self._bytes_until_swept -= len(sealed)
                    if self._bytes_until_swept < 0:
                        self._sweep(store)
                        self._bytes_until_swept = _SWEPT_AFTER_BYTES
            except sqlite3.DataError:  # larger than this SQLite can keep: what is there stays
                return
            except (sqlite3.Error, OSError):
                self._empty("it cannot be written")

    def distrust(self) -> None:
        """Forget everything: a file read again did not show what the ledger says."""
        with self._lock:
            self._empty("a file that was read again differs from its entry")

    def _opened(self) -> sqlite3.Connection:
        self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self.file.exists():
            os.close(os.open(self.file, os.O_WRONLY | os.O_CREAT, 0o600))
        store = sqlite3.connect(self.file, timeout=30)
        store.execute("PRAGMA synchronous = OFF")  # what a power cut damages is made anew
        for table in _TABLES:
            store.execute(table)
        return store

    def _sweep(self, store: sqlite3.Connection) -> None:
        """Remove what is too old, and the oldest entries of too many. Who is still searched for is written anew."""
        for table in ("scans", "shapes"):
            store.execute(f"DELETE FROM {table} WHERE at < ?", (iso(self._now() - KEPT),))  # noqa: S608
        (total,) = store.execute("SELECT count(*) FROM scans").fetchone()
        if total > MOST:
            oldest = "SELECT at FROM scans ORDER BY at LIMIT 1 OFFSET ?"
            store.execute(f"DELETE FROM scans WHERE at <= ({oldest})", (total - MOST - 1,))  # noqa: S608
        sizes = "SELECT name, sum(length(sealed)) OVER (ORDER BY at DESC, name) AS total FROM shapes"
        store.execute(f"DELETE FROM shapes WHERE name IN (SELECT name FROM ({sizes}) WHERE total > ?)", (MOST_BYTES,))  # noqa: S608

    def _time(self, name: bytes, at: str, text: str, mac: bytes) -> datetime:
        if not hmac.compare_digest(bytes(mac), self._mac("scan", name.hex(), at, text)):
            raise ValueError("an entry of a different program")
        return parse_time(at)

    def _shapes_name(self, told: str) -> bytes:
        return self._mac("shapes", told, scanner_version())

    def _seal(self, data: memoryview, told: str) -> tuple[bytes, AESGCM]:
        """The name of a file's shapes, and what they are sealed with: nobody opens them without the file."""
        end = sha256(data[-END:]).hexdigest()
        return self._shapes_name(told), AESGCM(self._mac("key of shapes", told, end, scanner_version()))

    def _mac(self, *parts: str) -> bytes:
        return hmac.new(self._secret, "\0".join(parts).encode("utf-8", "surrogatepass"), sha256).digest()

    def _empty(self, why: str) -> None:
        self._warn(f"the search reads all files, and recreates the scan ledger {self.file}: {why}")
        for part in (self.file, *(self.file.with_name(self.file.name + end) for end in ("-journal", "-wal", "-shm"))):
            with suppress(OSError):  # whatever stands there is of no use; the next to open it says so again
                part.unlink()
