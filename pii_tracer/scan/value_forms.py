"""Patterns for the persons' values: every form in which a file can hold them, and the search for all of them at once.

Strong values are searched anywhere. Weak ones (short digits, see `KeySet.weak`) are searched as typed cells equal to
the value, or in text between boundaries; never inside longer digit runs, base64 or raw binary. Only values of key sets
count: nothing is derived from them but encodings and plain digests.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from ahocorasick_rs import BytesAhoCorasick

from pii_tracer.model.datasets import KeySet
from pii_tracer.model.errors import ScanError
from pii_tracer.model.number_keys import without_fraction
from pii_tracer.scan.email_boundaries import RUN, of_another
from pii_tracer.scan.hits import Form
from pii_tracer.scan.key_boundaries import (
    KeyColumns,
    Whole,
    goes_on,
    may_be_cut,
)
from pii_tracer.scan.parquet_decryption_keys import FileKeys
from pii_tracer.scan.pattern_prefilter import Places, Sieve
from pii_tracer.scan.value_encodings import (
    SEALED,
    base64_alone,
    base64_cores,
    digests,
    html_escaped,
    json_escaped,
    scientific,
    spellings,
    url_escaped,
    utf16,
    uuid_of,
)

Term = tuple[str, Form]
PLAIN = frozenset({Form.TEXT, Form.URL, Form.JSON})
"""Forms in which the end of a value can be seen in the text."""

Found = Counter[Term]

SHORT_TEXT = 6
"""A shorter text value would be found in binary by chance: it counts only between word boundaries."""

TINY_DIGITS = 5
"""A weak number of fewer digits counts only as a whole cell: `decimal(12,2)` is full of twelves."""

SMALL = 4096
"""Fewer bytes are searched as they are: a sieve would take longer."""

_INTEGER = re.compile(r"-?(0|[1-9]\d{0,37})\Z")
_OPAQUE_RUN = 20


@dataclass(frozen=True)
class WeakMatch:
    """A bounded match in text: who, and where it starts and ends in the searched bytes."""

    key_set: str
    form: Form
    start: int
    end: int


class _Automaton:
    """Byte patterns with the terms each stands for; empty automata find nothing."""

    def __init__(self, table: dict[bytes, list[Term]]) -> None:
        self._terms = list(table.values())
        self._search = BytesAhoCorasick(list(table)) if table else None
        self.longest = max(map(len, table), default=0)

    def matches(self, data: bytes) -> Iterator[tuple[list[Term], int, int]]:
        if self._search is not None:
            for index, start, end in self._search.find_matches_as_indexes(data, overlapping=True):
                yield self._terms[index], start, end


def _add(table: dict[bytes, list[Term]], pattern: bytes, term: Term) -> None:
    terms = table.setdefault(pattern, [])
    if all(name != term[0] for name, _ in terms):  # the plainest form of a key set is added first and names the pattern
        terms.append(term)


@dataclass
class _Tables:
    folded: dict[bytes, list[Term]] = field(default_factory=dict)
    exact: dict[bytes, list[Term]] = field(default_factory=dict)
    bounded: dict[bytes, list[Term]] = field(default_factory=dict)
    tiny: dict[bytes, list[Term]] = field(default_factory=dict)
    digests: dict[bytes, list[Term]] = field(default_factory=dict)
    ints: dict[int, list[str]] = field(default_factory=dict)
    cells: dict[str, list[str]] = field(default_factory=dict)

    def add(self, key_set: KeySet, value: str) -> None:
        name = key_set.name
        if name not in self.cells.setdefault(value, []):
            self.cells[value].append(name)
        if _INTEGER.match(value) and name not in self.ints.setdefault(int(value), []):
            self.ints[int(value)].append(name)
        for digest, form in digests(value):
            _add(self.digests, digest.hex().encode(), (name, form))
            for pattern in (digest, *base64_alone(digest)) if form in SEALED else ():
                _add(self.exact, pattern, (name, form))
        if key_set.weak or len(value) < SHORT_TEXT:
            table = self.bounded if len(value) >= TINY_DIGITS or not value.isdigit() else self.tiny
            for spelling in spellings(value):
                _add(table, spelling.encode().lower(), (name, Form.TEXT))
            if _INTEGER.match(value) and len(value) > 1:
                _add(table, scientific(value).encode(), (name, Form.NUMBER))
        else:
            self._strong(name, value)

    def _strong(self, name: str, value: str) -> None:
        written = spellings(value)
        for spelling in written:
            _add(self.folded, spelling.encode().lower(), (name, Form.TEXT))
        for spelling in written:
            for escaped in url_escaped(spelling):
                _add(self.folded, escaped.encode().lower(), (name, Form.URL))
            for escaped in json_escaped(spelling):
                _add(self.folded, escaped.encode().lower(), (name, Form.JSON))
            for escaped in html_escaped(spelling):
                _add(self.folded, escaped.encode().lower(), (name, Form.HTML))
            for wide in utf16(spelling):
                _add(self.folded, wide.lower(), (name, Form.UTF16))
            _add(self.folded, spelling.encode().hex().encode(), (name, Form.HEX))
            for core in base64_cores(spelling.encode()):
                _add(self.exact, core, (name, Form.BASE64))
        if (number := uuid_of(value)) is not None:
            for text in (str(number), number.hex):
                _add(self.folded, text.encode(), (name, Form.UUID))
            for data in (number.bytes, number.bytes_le):  # the latter as .NET and SQL Server write it
                _add(self.exact, data, (name, Form.UUID))
                for core in base64_cores(data):
                    _add(self.exact, core, (name, Form.UUID))
        if _INTEGER.match(value) and len(value) > 1:
            _add(self.bounded, scientific(value).encode(), (name, Form.NUMBER))


class Patterns:
    """Everything to search for, built once for the key sets of a plan. Holds values: never printed, never stored."""

    def __init__(self, key_sets: Iterable[KeySet], file_keys: FileKeys | None = None) -> None:
        """file_keys: open encrypted files.

        Raises `ScanError` when there is nothing to search for: an empty search would find everything clean.
        """
        self.file_keys = file_keys
        self.key_columns = KeyColumns()
        sets = tuple(key_sets)
        tables = _Tables()
        for key_set in sets:
            for _, value in key_set.values:
                if value:
                    tables.add(key_set, value)
        if not tables.cells:
            raise ScanError("there are no values to search for", todo="resolve the persons' keys before scanning")
        self.key_sets = sets
        self._weak = frozenset(k.name for k in sets if k.weak)
        self._others = {k.name: frozenset(map(str.encode, k.others)) for k in sets if k.others}
        self._size = sum(len(k.values) for k in sets)
        for digest, terms in tables.digests.items():
            for term in terms:
                _add(tables.folded, digest, term)
        self._folded = _Automaton(tables.folded)
        self._exact = _Automaton(tables.exact)
        self._bounded = _Automaton(tables.bounded)
        self._tiny = _Automaton(tables.bounded | tables.tiny)
        self.has_tiny = bool(tables.tiny)
        self.ints = {value: tuple(names) for value, names in tables.ints.items()}
        self.cells = {value: tuple(names) for value, names in tables.cells.items()}
        self._cut = _cut_values(self.cells, self._weak)
        self._sieve = Sieve([*tables.folded, *tables.exact, *tables.bounded])
        self.overlap = max(self._folded.longest, self._exact.longest, self._bounded.longest) + 1

    def __repr__(self) -> str:
        return f"Patterns({self._size} values)"

    def comparing(self, keys: KeyColumns) -> Patterns:
        """The same patterns for a place of which the columns are known in which a cell is compared as a whole."""
        same = copy.copy(self)
        same.key_columns = keys.knowing(self._others)
        return same

    def of_cell(self, text: str) -> tuple[str, ...]:
        """The key sets of which a whole cell is a value, a whole number also where it has a fraction of zeros."""
        return self.cells.get(text) or self.cells.get(without_fraction(text), ())

    def is_weak(self, key_set: str) -> bool:
        """Whether the key set of this name is weak."""
        return key_set in self._weak

    def spots(self, data: bytes | memoryview, label: str | None = None) -> Places:
        """Sorted positions in a buffer: one or more inside every occurrence of anything but tiny numbers, and others.

        label: what kind of data it is, e.g. the column's name; the search is tuned for each.
        """
        if not self._sieve.blind and len(data) >= SMALL:
            return self._sieve.places(data, label)
        found = [start for _, start, _ in self._in(bytes(data), self._folded, self._exact, self._bounded)]
        return np.unique(np.array(found, np.int64))

    def quiet(self, data: bytes | memoryview, label: str | None = None) -> bool:
        """Whether the data surely holds nothing but, perhaps, tiny numbers."""
        automata = (self._folded, self._exact, self._bounded)
        parts = self._around(self.spots(data, label), len(data))
        return not any(True for low, high in parts for _ in self._in(bytes(data[low:high]), *automata))

    def raw(self, data: bytes | memoryview) -> Found:
        """Occurrences in any bytes: strong values and digests, in all their encodings."""
        found: Found = Counter()
        for terms, _, _ in self.occurrences(data):
            found.update(terms)
        return found

    def occurrences(self, data: bytes | memoryview) -> Iterator[tuple[list[Term], int, int]]:
        """As `raw`, one by one: the terms that a match stands for, where it starts and ends."""
        for low, high in self._parts(data):
            for terms, start, end in self._in(bytes(data[low:high]), self._folded, self._exact):
                yield terms, low + start, low + end

    def _in(self, data: bytes, *automata: _Automaton) -> Iterator[tuple[list[Term], int, int]]:
        lower = data.lower()
        for automaton in automata:
            yield from automaton.matches(data if automaton is self._exact else lower)

    def _parts(self, data: bytes | memoryview) -> Iterator[tuple[int, int]]:
        """Parts of the data that together hold every occurrence, none of which is cut."""
        if len(data) < SMALL or self._sieve.blind:
            yield 0, len(data)
            return
        yield from self._around(self._sieve.places(data), len(data))

    def _around(self, spots: Places, size: int) -> Iterator[tuple[int, int]]:
        """The longest pattern's reach around some places; parts that touch are one."""
        low = high = 0
        for spot in spots.tolist():
            if spot - self.overlap > high:
                if high:
                    yield low, high
                low = max(0, spot - self.overlap)
            high = min(size, spot + self.overlap)
        if high:
            yield low, high

    def ended(
        self, data: bytes, *, text: bool = True, whole: Whole | None = None, cut: bool = False
    ) -> tuple[Found, dict[str, list[int]]]:
        """As `raw`, in decoded text, where a longer key can be told from a value and what stands beside it.

        text: False where the text may be a packed record, whose lengths can look like letters. whole: tells longer
        keys where the text is known to be a cell of a key column, or to hold such cells. cut: it is a bound, which a
        format may have cut: where only that speaks for the person, it is the form of a prefix.

        Returns what was found, and by key set where only a longer key was seen (`P-551020` for `P-55102`,
        `asha.rao@x.example` and `rao@x.example.br` for `rao@x.example`).
        """
        found: Found = Counter()
        longer: dict[str, list[int]] = {}
        cut = cut and may_be_cut(data)
        for terms, start, end in self.occurrences(data):
            plain = [t for t in terms if t[1] in PLAIN]
            another = goes_on(data, start, end) or (text and of_another(data, start, end, cut=cut))
            if plain and not another and whole is not None:
                known = whole(data, start, end)
                another = any(name in known for name, _ in plain)
            if plain and not another and text and cut and of_another(data, start, end):
                found.update((name, Form.PREFIX) for name, _ in plain)
                terms = [t for t in terms if t not in plain]
            plain = plain if another else []
            for name, _ in plain:
                longer.setdefault(name, []).append(start)
            found.update(t for t in terms if t not in plain)
        return found, longer

    def bounded(self, data: bytes, *, tiny: bool = False) -> Iterator[WeakMatch]:
        """Matches of weak and very short values in text, between boundaries; with `tiny`, of tiny numbers too."""
        automaton = self._tiny if tiny else self._bounded
        folded = b""
        for low, high in ((0, len(data)),) if tiny else self._parts(data):
            folded = folded or data.lower()
            for terms, start, end in automaton.matches(folded[low:high]):
                if _stands_alone(folded, low + start, low + end):
                    for name, form in terms:
                        yield WeakMatch(name, form, low + start, low + end)

    def prefixes(self, bound: str) -> Iterator[str]:
        """Key sets of which `bound` is a cut value, as table formats cut text bounds.

        Iceberg `truncate(16)` (https://iceberg.apache.org/docs/latest/configuration/,
        `write.metadata.metrics.default`): lower = first 16 characters, upper = first 15 and the 16th raised by
        one. Delta cuts text at 32 characters, with a tie-breaker behind the maximum
        (https://github.com/delta-io/delta/blob/master/PROTOCOL.md#per-file-statistics).
        """
        yield from self._cut.get(bound, ())
        if len(bound) in (32, 33, 34):
            yield from self._cut.get(bound[:32] + "\0", ())

    def mask(self, text: str) -> str:
        """The text with every value in it replaced by the name of its key set, e.g. for paths in reports."""
        data = text.encode("utf-8", "surrogateescape")
        spans = [(start, end, terms[0][0]) for terms, start, end in self.occurrences(data)]
        spans += [(m.start, m.end, m.key_set) for m in self.bounded(data, tiny=True) if _whole_segment(data, m)]
        out, position = b"", 0
        for start, end, name in sorted(spans):
            if start >= position:
                out += data[position:start] + f"[{name}]".encode()
            position = max(position, end)
        return (out + data[position:]).decode("utf-8", "replace")


def _cut_values(cells: dict[str, tuple[str, ...]], weak: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """Cut forms of long values: 16 characters and their upper bound (Iceberg), 32 marked by a final NUL (Delta)."""
    cut: dict[str, set[str]] = {}
    for value, names in cells.items():
        strong = [name for name in names if name not in weak]
        if len(value) > 16:
            cut.setdefault(value[:16], set()).update(strong)
            raised = chr(min(ord(value[15]) + 1, 0x10FFFF))
            cut.setdefault(value[:15] + raised, set()).update(strong)
        if len(value) > 32:
            cut.setdefault(value[:32] + "\0", set()).update(strong)
    return {bound: tuple(sorted(names)) for bound, names in cut.items() if names}


def _whole_segment(path: bytes, match: WeakMatch) -> bool:
    """A tiny number in a path counts as a whole segment or as `name=number`; file names are full of numbers."""
    before, after = path[: match.start], path[match.end :]
    return (not before or before[-1:] in b"/=") and (not after or after[:1] == b"/")


def _stands_alone(data: bytes, start: int, end: int) -> bool:
    before = data[start - 1] if start else 32
    after = data[end] if end < len(data) else 32
    if not 48 <= data[start] <= 57:  # a short word: no letter or digit may touch it
        return not (chr(before).isalnum() or chr(after).isalnum() or before > 127 or after > 127)
    if 48 <= before <= 57 or 48 <= after <= 57:
        return False
    if before == 46 and start > 1 and 48 <= data[start - 2] <= 57:  # the fraction of another number
        return False
    if after == 46 and end + 1 < len(data) and 48 <= data[end + 1] <= 57 and not _zero_fraction(data, end + 1):
        return False
    return not _in_opaque_run(data, start, end)


def _zero_fraction(data: bytes, position: int) -> bool:
    """`8841302.0` is the same number; `8841302.5` is not."""
    while position < len(data) and 48 <= data[position] <= 57:
        if data[position] != 48:
            return False
        position += 1
    return True


def _in_opaque_run(data: bytes, start: int, end: int) -> bool:
    """Inside a long run of letters and digits (base64, hex, a token) digits mean nothing by themselves."""
    left, right = start, end
    while left > 0 and data[left - 1] in RUN and end - left <= _OPAQUE_RUN:
        left -= 1
    while right < len(data) and data[right] in RUN and right - start <= _OPAQUE_RUN:
        right += 1
    return right - left >= _OPAQUE_RUN


def build_patterns(key_sets: Iterable[KeySet], file_keys: FileKeys | None = None) -> Patterns:
    """Patterns for the key sets of a plan. Raises `ScanError` when there is nothing to search for."""
    return Patterns(key_sets, file_keys)
