"""Patterns for the persons' values: every form in which a file can hold them, and the search for all of them at once.

Strong values are searched anywhere. Weak ones (short digits, see `KeySet.weak`) are searched as typed cells equal to
the value, or in text between boundaries; never inside longer digit runs, base64 or raw binary. Only values of key sets
count: nothing is derived from them but encodings and plain digests.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from urllib.parse import quote, quote_plus

from ahocorasick_rs import BytesAhoCorasick

from pii_tracer.errors import ScanError
from pii_tracer.model import KeySet
from pii_tracer.scan.hits import Form

Term = tuple[str, Form]
Found = Counter[Term]

SHORT_TEXT = 6
"""A shorter text value would be found in binary by chance: it counts only between word boundaries."""

TINY_DIGITS = 5
"""A weak number of fewer digits counts only as a whole cell: `decimal(12,2)` is full of twelves."""

SHORT_BASE64 = 8
_INTEGER = re.compile(r"-?(0|[1-9]\d{0,37})\Z")
_OPAQUE_RUN = 20
_RUN = frozenset(b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+")


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


def _spellings(value: str) -> list[str]:
    """Case and Unicode variants; ASCII case is folded at search time."""
    variants = [value]
    if not value.isascii():
        cased = [value, value.lower(), value.upper(), value.casefold(), value.title()]
        variants += [unicodedata.normalize(form, v) for v in cased for form in ("NFC", "NFD")]
    return list(dict.fromkeys(variants))


def _utf16(value: str) -> list[bytes]:
    little = value.encode("utf-16-le")
    if value.isascii():
        return [little[:-1]]  # without its last zero the same bytes stand in big-endian text too
    return [little, value.encode("utf-16-be")]


def _base64(value: bytes) -> Iterator[bytes]:
    """The characters that stand for `value` wherever it lies in the encoded bytes (three alignments)."""
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + value)
        core = encoded[(0, 2, 3)[offset] : (offset + len(value)) * 8 // 6]
        if len(core) >= SHORT_BASE64:
            yield core
            yield core.replace(b"+", b"-").replace(b"/", b"_")


def _digests(value: str) -> Iterator[tuple[bytes, Form]]:
    for variant in dict.fromkeys((value, value.lower(), value.upper())):
        data = variant.encode()
        yield hashlib.md5(data, usedforsecurity=False).hexdigest().encode(), Form.MD5
        yield hashlib.sha1(data, usedforsecurity=False).hexdigest().encode(), Form.SHA1
        yield hashlib.sha256(data).hexdigest().encode(), Form.SHA256


def _scientific(digits: str) -> str:
    """As Java and Python print a double that holds a whole number: `8.841302E6`."""
    return f"{digits[0]}.{digits[1:].rstrip('0') or '0'}e{len(digits) - 1}"


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
        for digest, form in _digests(value):
            _add(self.digests, digest, (name, form))
        if key_set.weak or len(value) < SHORT_TEXT:
            table = self.bounded if len(value) >= TINY_DIGITS or not value.isdigit() else self.tiny
            for spelling in _spellings(value):
                _add(table, spelling.encode().lower(), (name, Form.TEXT))
            if _INTEGER.match(value) and len(value) > 1:
                _add(table, _scientific(value).encode(), (name, Form.NUMBER))
        else:
            self._strong(name, value)

    def _strong(self, name: str, value: str) -> None:
        spellings = _spellings(value)
        for spelling in spellings:
            _add(self.folded, spelling.encode().lower(), (name, Form.TEXT))
        for spelling in spellings:
            for escaped in (quote(spelling, safe=""), quote(spelling), quote_plus(spelling)):
                _add(self.folded, escaped.encode().lower(), (name, Form.URL))
            for escaped in (json.dumps(spelling)[1:-1], json.dumps(spelling)[1:-1].replace("/", "\\/")):
                _add(self.folded, escaped.encode().lower(), (name, Form.JSON))
            for wide in _utf16(spelling):
                _add(self.folded, wide.lower(), (name, Form.UTF16))
            _add(self.folded, spelling.encode().hex().encode(), (name, Form.HEX))
            for core in _base64(spelling.encode()):
                _add(self.exact, core, (name, Form.BASE64))
        if _INTEGER.match(value) and len(value) > 1:
            _add(self.bounded, _scientific(value).encode(), (name, Form.NUMBER))


class Patterns:
    """Everything to search for, built once for the key sets of a plan. Holds values: never printed, never stored."""

    def __init__(self, key_sets: Iterable[KeySet]) -> None:
        """Raises `ScanError` when there is nothing to search for: an empty search would find everything clean."""
        sets = tuple(key_sets)
        tables = _Tables()
        for key_set in sets:
            for _, value in key_set.values:
                if value:
                    tables.add(key_set, value)
        if not tables.cells:
            raise ScanError("there are no values to search for", todo="resolve the persons' keys before scanning")
        self._weak = frozenset(k.name for k in sets if k.weak)
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
        self.overlap = max(self._folded.longest, self._exact.longest, self._bounded.longest) + 1

    def __repr__(self) -> str:
        return f"Patterns({self._size} values)"

    def is_weak(self, key_set: str) -> bool:
        """Whether the key set of this name is weak."""
        return key_set in self._weak

    def raw(self, data: bytes) -> Found:
        """Occurrences in any bytes: strong values and digests, in all their encodings."""
        found: Found = Counter()
        for automaton, haystack in ((self._folded, data.lower()), (self._exact, data)):
            for terms, _, _ in automaton.matches(haystack):
                found.update(terms)
        return found

    def bounded(self, data: bytes, *, tiny: bool = False) -> Iterator[WeakMatch]:
        """Matches of weak and very short values in text, between boundaries; with `tiny`, of tiny numbers too."""
        folded = data.lower()
        for terms, start, end in (self._tiny if tiny else self._bounded).matches(folded):
            if _stands_alone(folded, start, end):
                for name, form in terms:
                    yield WeakMatch(name, form, start, end)

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
        spans: list[tuple[int, int, str]] = []
        for automaton, haystack in ((self._folded, data.lower()), (self._exact, data)):
            spans += [(start, end, terms[0][0]) for terms, start, end in automaton.matches(haystack)]
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
    while left > 0 and data[left - 1] in _RUN and end - left <= _OPAQUE_RUN:
        left -= 1
    while right < len(data) and data[right] in _RUN and right - start <= _OPAQUE_RUN:
        right += 1
    return right - left >= _OPAQUE_RUN


def build_patterns(key_sets: Iterable[KeySet]) -> Patterns:
    """Patterns for the key sets of a plan. Raises `ScanError` when there is nothing to search for."""
    return Patterns(key_sets)
