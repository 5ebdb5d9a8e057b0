"""Rows of the live objects of a place, which are counted when their bytes are read and known as long as the store says
that the bytes are the same.

What is known of an object is how many of its rows are the persons', and a sum over everybody else's: a footer would
tell only how many there are together. It holds for the same bytes, values, columns and copy (`scan_ledger`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Protocol

from pii_tracer.lake.stores.object_places.version_types import VersionState
from pii_tracer.model.hive_text.layout import FileText
from pii_tracer.model.plan import Copy
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.incremental_search import disagreement
from pii_tracer.scan.scan_ledger import ScanLedger
from pii_tracer.scan.value_forms import Patterns
from pii_tracer.verify.object_rows import Rows
from pii_tracer.verify.stores.stored_files import counts_rows_of, rows_in

_KEPT_AFTER = 1_000
"""So many objects are written down at once: what was counted is known though the search of the place stops."""


class Stored(Protocol):
    """A version of an object, or a file, as it was listed (`StoredVersion`)."""

    @property
    def key(self) -> str: ...

    @property
    def size(self) -> int: ...

    @property
    def state(self) -> VersionState: ...

    @property
    def identity(self) -> str | None: ...


class RowPlace(Protocol):
    """Where they lie (`ObjectPlace`)."""

    def rows_of(self, key: str, /) -> FileText | None: ...


@dataclass
class RowCounts:
    """The rows of a copy's objects. store: as the ledger calls it; live: what stands in the place now. ledger: None
    where everything is read. found: by key, of those that were counted or are known. new: the entries that are to be
    written down."""

    copy: Copy
    store: str
    place: RowPlace
    live: Sequence[Stored]
    patterns: Patterns
    ledger: ScanLedger | None = None
    found: dict[str, Rows] = field(default_factory=dict)
    new: list[tuple[bytes, str]] = field(default_factory=list)

    def counts(self, version: Stored) -> bool:
        """Whether the rows of a version are counted: old ones are nobody's rows any more."""
        live = version.state is VersionState.LIVE and version.size > 0
        return live and counts_rows_of(self.copy, self.place.rows_of(version.key))

    def knows(self, version: Stored) -> bool:
        """Whether the rows of a version need not be counted: they are not, or an earlier search counted them."""
        if not self.counts(version):
            return True
        if (rows := self._known.get(version.key)) is not None:
            self.found[version.key] = rows
        return rows is not None

    def take(self, version: Stored, data: memoryview) -> None:
        """Count the rows of a version that was read.

        Raises:
            ScanError: they cannot be read, or are others than the ledger says of the same bytes.
        """
        if not self.counts(version):
            return
        rows = rows_in(self.copy, version.key, data, self.patterns, self.place.rows_of(version.key))
        if rows is not None:
            self.found[version.key] = rows
            known = self._known.get(version.key)
            if self.ledger is not None and known is not None and known != rows:
                self.ledger.distrust()
                raise disagreement(self.patterns.mask(version.key))

    def of(self, version: Stored, scan: FileScan) -> Rows | None:
        """The rows of a version that was searched; None where they are not counted, or not all of it could be read."""
        if scan.unread or not scan.sha256 or not self.counts(version):
            return None
        key, rows = version.key, self.found.get(version.key)
        if rows is not None and key in self._names and key not in self._known:
            self.new.append((self._names[key], _written(rows)))
            if len(self.new) >= _KEPT_AFTER:
                self.keep()
        return rows

    def keep(self) -> None:
        """Write down what was counted since this was last done."""
        if self.ledger is not None:
            self.ledger.keep_rows(self.new)
            self.new.clear()

    @cached_property
    def _names(self) -> dict[str, bytes]:
        """The names of the entries, by key. `file_keys`: of encrypted files, which are never known."""
        if self.ledger is None or self.patterns.file_keys is not None:
            return {}
        search = self.ledger.search_names(self.patterns)[0]
        about = sha256(self.copy.model_dump_json().encode()).hexdigest()  # a copy of many files is long
        return {
            v.key: self.ledger.rows_name(f"{self.store}\0{v.key}", v.identity, search, self._read_as(v, about))
            for v in self.live
            if v.identity is not None and self.counts(v)
        }

    def _read_as(self, version: Stored, about: str) -> str:
        text = self.place.rows_of(version.key)
        return f"{about}\0{text.model_dump_json()}" if text else about

    @cached_property
    def _known(self) -> dict[str, Rows]:
        names = self._names
        told = self.ledger.rows_of(list(names.values())) if self.ledger is not None and names else {}
        return {key: Rows(*json.loads(told[name])) for key, name in names.items() if name in told}


def _written(rows: Rows) -> str:
    return json.dumps([rows.persons, rows.others, rows.sum])
