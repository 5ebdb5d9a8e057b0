"""Patterns for the persons' values: every form in which a file can hold them, and the search for all of them at once.

Strong values are searched anywhere. Weak ones (short digits, see `KeySet.weak`) are searched as typed cells equal to
the value, or in text between boundaries; never inside longer digit runs, base64 or raw binary. Only values of key sets
count: nothing is derived from them but encodings and plain digests.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from weakref import WeakValueDictionary

import numpy as np

from pii_tracer.model.datasets import KeySet
from pii_tracer.model.errors import ScanError
from pii_tracer.model.number_keys import spelled, without_fraction
from pii_tracer.scan.email_boundaries import of_another
from pii_tracer.scan.forms import (
    escape_free_text,
    escape_views,
    escaped_letters,
    escaped_punctuation,
    invisible_characters,
    line_wraps,
    text_bytes_decoding,
    values_in_pieces,
)
from pii_tracer.scan.forms.altered_value_anchors import Anchors
from pii_tracer.scan.forms.binary_number_cells import PackedNumbers
from pii_tracer.scan.forms.pattern_automaton import Automaton, Search, Term, is_pattern
from pii_tracer.scan.forms.short_number_split import named_parts, parts_of
from pii_tracer.scan.forms.spaced_numbers import Endings, SpacedNumbers
from pii_tracer.scan.forms.weak_boundaries import WeakMatch, stands_alone, whole_segment, with_exponent
from pii_tracer.scan.hits import Form, name_for_short, without_short
from pii_tracer.scan.key_boundaries import KeyColumns, Whole, goes_on, may_be_cut
from pii_tracer.scan.many_values.exact_value_cells import ValueCells
from pii_tracer.scan.many_values.search import search_of
from pii_tracer.scan.parquet_decryption_keys import FileKeys
from pii_tracer.scan.pattern_prefilter import Places, around
from pii_tracer.scan.shapes.chunk_skipping import Sought
from pii_tracer.scan.value_encodings import cut_values

PLAIN = frozenset({Form.TEXT, Form.URL, Form.JSON, Form.ESCAPED})
"""Forms in which the end of a value can be seen in the text."""

_WORDS = PLAIN | {Form.HTML}
"""Forms that are text: where a line's end parts one, it may be two words."""

Found = Counter[Term]

SMALL = 4096
"""Fewer bytes are searched as they are: a sieve would take longer."""

_LABELS, _CELL, _CELLS = 4096, 256, 1 << 17
"""How many labels are kept, the longest text whose matches are kept, and how many: copies have the same cells."""

Parts = list[tuple[int, int]]
Match = tuple[tuple[Term, ...], int, int]
"""The terms that a match stands for, where it starts and ends."""


class Patterns:
    """Everything to search for, built once for the key sets of a plan. Holds values: never printed, never stored."""

    def __init__(self, key_sets: Iterable[KeySet], file_keys: FileKeys | None = None, few: int | None = None) -> None:
        """file_keys: open encrypted files. few: as of `search_of`.

        Raises `ScanError` when there is nothing to search for: an empty search would find everything clean.
        """
        self.file_keys = file_keys
        self._prepared: Patterns | None = None
        """Kept, so that it is in use as long as a copy of it is."""
        self._labels: dict[str, str] = {}
        self._known: dict[tuple[bytes, bool], tuple[Match, ...]] = {}  # of cells in which something was found
        self.key_columns = KeyColumns()
        given = tuple(key_sets)
        sets = tuple(k for k in given if not k.columns)
        parts = [part for key_set in sets for part in parts_of(key_set)]
        values = [(part, value) for part in parts for _, value in part.values if value]
        if not values:
            raise ScanError("there are no values to search for", todo="resolve the persons' keys before scanning")
        self.key_sets = sets
        self.row_sets = tuple(k for k in given if k.columns)
        self._weak = frozenset(k.name for k in parts if k.weak)
        self._short = {k.name: (k.name, short) for k in sets if (short := name_for_short(k.name)) in self._weak}
        self._others = {k.name: frozenset(map(str.encode, k.others)) for k in parts if k.others}
        self.value_cells = ValueCells(self._others.values())
        self._size = sum(len(k.values) for k in sets)
        search = search_of(values, few)
        tables, self._sieve, self._borders = search.plain, search.sieve, search.borders
        self._folded, self._exact = search.folded, search.exact
        self._bounded = Automaton(tables.bounded)
        self._tiny = Automaton(tables.bounded | tables.tiny) if tables.tiny else self._bounded
        self._looks = Automaton(tables.looks)
        self._spaced = SpacedNumbers(list(tables.spaced))
        self._shown = Endings({value.strip().encode() for _, value in values if value.strip()})
        self._spaced_terms = list(tables.spaced.values())
        self.has_tiny = bool(tables.tiny)
        self.ints = {value: tuple(names) for value, names in tables.ints.items()}
        self.packed = PackedNumbers(self.ints)
        self.cells = {value: tuple(names) for value, names in tables.cells.items()}
        self._cut = cut_values(self.cells, self._weak)
        self._reach = max(map(escape_views.reach, tables.looks), default=0)
        self._signs = escaped_punctuation.SignEscapes(tables.signed)
        asked, everywhere = (search.patterns, search.lined, self.ints, self._signs.runs), search.many or self.has_tiny
        self.sought = Sought(*asked, everywhere=everywhere, spaced=bool(tables.spaced))
        self._anchors = Anchors(tables.anchors, self._reach)
        self.overlap = max(self._folded.longest, self._exact.longest, self._bounded.longest, self._reach) + 1
        self.over_lines = line_wraps.spread(self.overlap)

    def __repr__(self) -> str:
        return f"Patterns({self._size} values)"

    def opening(self, file_keys: FileKeys | None) -> Patterns:
        """The same patterns with which encrypted files are opened by other keys."""
        same = copy.copy(self)
        same.file_keys, same._prepared = file_keys, self
        return same

    def comparing(self, keys: KeyColumns) -> Patterns:
        """The same patterns for a place of which the columns are known in which a cell is compared as a whole.

        What they leave out already they still leave out.
        """
        same = copy.copy(self)
        keys = keys.naming(self._short).knowing(self._others)
        same.key_columns = keys.leaving_out(self.key_columns.not_keys)
        return same

    def leaving_out(self, not_keys: Mapping[str, Collection[str]]) -> Patterns:
        """The same patterns for a place with columns of another system's numbers (`KeyColumns.leaving_out`)."""
        same = copy.copy(self)
        same.key_columns = self.key_columns.leaving_out(named_parts(not_keys, self._short))
        return same

    @cached_property
    def whole_keys(self) -> Mapping[str, frozenset[str]]:
        """Keys of several columns, which no bytes show, by key set: the texts with which rows are compared."""
        return {found.name: spelled(found) for found in self.row_sets}

    def of_cell(self, text: str) -> tuple[str, ...]:
        """The key sets, or parts of them, of which a whole cell is a value, a whole number also where it has a
        fraction of zeros."""
        number = without_fraction(text)
        found = self.cells.get(text, ())
        return found if number == text else tuple(dict.fromkeys((*found, *self.cells.get(number, ()))))

    def key_sets_of_cell(self, text: str) -> frozenset[str]:
        """As `of_cell`, the names of whole key sets."""
        return frozenset(map(without_short, self.of_cell(text)))

    def is_weak(self, name: str) -> bool:
        """Whether the values of the key set, or of the part of one, are short numbers."""
        return name in self._weak

    def spots(self, data: bytes | memoryview, label: str | None = None) -> Places:
        """Sorted positions in a buffer: one or more inside every occurrence of anything but tiny numbers, and others.

        data: cells one behind the other, with a zero byte between them unless all their signs are plain.
        label: what kind of data it is, e.g. the column's name; the search is tuned for each.
        """
        across = [start for _, start, _ in self._parted(data, joined=True)]
        if not self._sieve.blind and len(data) >= SMALL:
            found = self._sieve.places(data, label)
            return np.union1d(found, across).astype(np.int64) if across else found
        text = bytes(data)
        found_here = [start for _, start, _ in (*self._in(text, self._bounded), *self._strong(text))]
        return np.unique(np.array(found_here + across, np.int64))

    def quiet(self, data: bytes | memoryview, label: str | None = None, *, text: bool = True) -> bool:
        """Whether the data surely holds nothing but, perhaps, tiny numbers. text: False where none is in it."""
        for low, high in self.parts(data, label):
            piece = bytes(data[low:high])
            if any(True for _ in self._in(piece, self._bounded)) or any(True for _ in self._strong(piece)):
                return False
        return not (text and (text_bytes_decoding.stand_in(data) or any(True for _ in self._parted(data, joined=True))))

    def expect(self, cells: Sequence[bytes]) -> None:
        """Look at short texts together, each of which this thread searches next. It changes nothing but the time."""
        self._folded.expect(cells)

    def raw(self, data: bytes | memoryview, *, lines: bool = False) -> Found:
        """Occurrences in any bytes: strong values and digests, in all their encodings.

        lines: the bytes are text, in which a value may go on in the next line.
        """
        found: Found = Counter()
        for terms, _, _ in self.occurrences(data, lines=lines):
            found.update(terms)
        return found

    def occurrences(
        self, data: bytes | memoryview, *, lines: bool = False, parts: Parts | None = None
    ) -> Iterator[Match]:
        """As `raw`, one by one: the terms that a match stands for, where it starts and ends.

        parts: what `self.parts(data)` gives, where it is known.
        """
        if len(data) > _CELL:
            yield from self._occurrences(data, lines, self.parts(data) if parts is None else parts)
            return
        cell = bytes(data), lines
        found = self._known.get(cell)
        if found is None:
            found = tuple(self._occurrences(cell[0], lines, [(0, len(data))]))
            if found and len(self._known) < _CELLS:
                self._known[cell] = found
        yield from found

    def _occurrences(self, data: bytes | memoryview, lines: bool, parts: Parts) -> Iterator[Match]:
        shown = set()
        for low, high in parts:
            for terms, start, end in self._strong(bytes(data[low:high])):
                if lines or terms[0][1] is not Form.WRAPPED:
                    shown.add((low + start, low + end))
                    yield terms, low + start, low + end
        if lines:
            yield from (match for match in self._parted(data) if match[1:] not in shown)

    def _strong(self, data: bytes) -> Iterator[Match]:
        """Strong values and digests, also those that are seen only in a view of the text."""
        yield from self._in(data, self._folded, self._exact)
        lower = data.lower()
        for seen in self._looks_like(lower):
            text = lower[seen.start : seen.end]
            if not is_pattern(self._folded, text):  # or the pattern of another form has met it
                wrapped = b"\n" in text or b"\r" in text
                yield tuple((n, Form.WRAPPED if wrapped else form) for n, form in seen.terms), seen.start, seen.end

    def _looks_like(self, lower: bytes) -> Iterator[escape_views.Seen]:
        return escape_views.search(lower, self._anchors.places(lower), self._looks.matches, self._reach)

    def _parted(self, data: bytes | memoryview, *, joined: bool = False) -> Iterator[Match]:
        """What stands in a text in no one piece: over ends of lines, with unseen signs in it, or other signs between
        the digits of a number. joined: it may be cells without anything between them, so what touches it says nothing.
        """
        text = bytes(data)
        if not (plain := escape_free_text.are_all(text)):
            yield from self._across(data, joined=joined)
            yield from self._hidden(text, joined=joined)
        for number, start, end in self._spaced.matches(text, joined=joined):
            if joined or not self._shown.end(text, max(0, start - 4), end):
                yield self._spaced_terms[number], start, end
        for bare in () if plain else invisible_characters.bare(text, 3 * self.overlap):
            for low, high in self.parts(bare.data):
                for terms, begin, stop in self._in(bare.data[low:high], self._folded, self._exact):
                    if bare.is_parted(low + begin, low + stop):
                        yield terms, int(bare.origins[low + begin]), int(bare.origins[low + stop - 1]) + 1

    def _hidden(self, text: bytes, *, joined: bool) -> Iterator[Match]:
        """What stands in a text with letters written as escapes, or with joints in it. joined: as in `_parted`."""
        done = set()
        escaped = (*escaped_letters.views(text, self.overlap), *self._signs.views(text), *self._spaced.views(text))
        for low, view in escaped:
            numbers = self._spaced.matches(view.data, joined=joined)
            spaced = ((self._spaced_terms[n], begin, stop) for n, begin, stop in numbers)
            for terms, begin, stop in (*self._folded.matches(view.data), *self._looks.matches(view.data), *spaced):
                start, end = low + view.origins[begin], low + view.origins[stop]
                if end - start > stop - begin and (start, end) not in done:
                    done.add((start, end))
                    yield tuple((name, Form.ESCAPED) for name, _ in terms), start, end
        for low, view in values_in_pieces.views(text, 2 * self.overlap):
            for terms, begin, stop in (*self._folded.matches(view.data), *self._looks.matches(view.data)):
                start, end = low + view.origins[begin], low + view.origins[stop - 1] + 1
                if end - start != stop - begin and (start, end) not in done:
                    done.add((start, end))
                    yield tuple((name, Form.ESCAPED) for name, _ in terms), start, end

    def _across(self, data: bytes | memoryview, *, joined: bool) -> Iterator[Match]:
        """What goes on in the next line of a text, broken anywhere; escaped, too. joined: as in `_parted`."""
        folds = line_wraps.Folds(data)
        for low, high in self._borders.windows(data):
            line = line_wraps.joined(bytes(data[low:high]))
            found = ((n, self._in(line.data[n:end], self._folded, self._exact)) for n, end in self.parts(line.data))
            whole = ((terms, n + start, n + end) for n, matches in found for terms, start, end in matches)
            altered = ((s.terms, s.start, s.end) for s in self._looks_like(line.data.lower()))
            for terms, start, end in (*whole, *altered, *self._hidden(line.data, joined=joined)):
                if not len(parts := line.breaks_in(start, end)):
                    continue
                places = low + line.origins[start:end]
                folded = not goes_on(line.data, start, end) and folds.join(places)
                if not (joined or folded or line_wraps.is_one(line, start, end, parts)):
                    terms = tuple(t for t in terms if t[1] not in _WORDS)
                if changed := tuple((n, Form.WRAPPED if form in _WORDS else form) for n, form in terms):
                    yield changed, int(places[0]), int(places[-1]) + 1

    def _in(self, data: bytes, *automata: Search) -> Iterator[Match]:
        lower = data.lower()
        for automaton in automata:
            yield from automaton.matches(data if automaton is self._exact else lower)

    def parts(self, data: bytes | memoryview, label: str | None = None) -> Parts:
        """Parts of the data that together hold every occurrence of anything but tiny numbers, none of which is cut."""
        if len(data) < SMALL or self._sieve.blind:
            return [(0, len(data))]
        return list(around(self._sieve.places(data, label), self.overlap, len(data)))

    def ended(
        self,
        data: bytes,
        *,
        text: bool = True,
        whole: Whole | None = None,
        cut: bool = False,
        parts: Parts | None = None,
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
        for terms, start, end in self.occurrences(data, lines=True, parts=parts):
            plain = [t for t in terms if t[1] in PLAIN]
            another = goes_on(data, start, end) or (text and of_another(data, start, end, cut=cut))
            if plain and not another and whole is not None:
                known = whole(data, start, end)
                another = any(name in known for name, _ in plain)
            if plain and not another and text and cut and of_another(data, start, end):
                found.update((name, Form.PREFIX) for name, _ in plain)
                terms = tuple(t for t in terms if t not in plain)
            plain = plain if another else []
            for name, _ in plain:
                longer.setdefault(name, []).append(start)
            found.update(t for t in terms if t not in plain)
        return found, longer

    def bounded(self, data: bytes, *, tiny: bool = False, parts: Parts | None = None) -> Iterator[WeakMatch]:
        """Matches of weak and very short values in text, between boundaries; with `tiny`, of tiny numbers too."""
        automaton = self._tiny if tiny else self._bounded
        folded = b""
        for low, high in ((0, len(data)),) if tiny else self.parts(data) if parts is None else parts:
            folded = folded or data.lower()
            for terms, start, end in automaton.matches(folded[low:high]):
                number, stop = with_exponent(folded, low + start, low + end) or (None, None)
                if stop is not None and stands_alone(folded, low + start, stop):
                    for name, form in terms:
                        if number is None or name in self.ints.get(number, ()):
                            yield WeakMatch(name, form, low + start, stop)

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

    def label(self, text: str) -> str:
        """A column's label, masked as any text. Those of all hits are few, and are remembered."""
        known = self._labels.get(text)
        if known is None:
            known = self.mask(text)
            if len(self._labels) < _LABELS:
                self._labels[text] = known
        return known

    def mask(self, text: str) -> str:
        """The text with every value in it replaced by the name of its key set, e.g. for paths in reports."""
        data = text.encode("utf-8", "surrogateescape")
        spans = [(start, end, terms[0][0]) for terms, start, end in self.occurrences(data)]
        spans += [
            (m.start, m.end, m.key_set) for m in self.bounded(data, tiny=True) if whole_segment(data, m.start, m.end)
        ]
        out, position = b"", 0
        for start, end, name in sorted(spans):
            if start >= position:
                out += data[position:start] + f"[{without_short(name)}]".encode()
            position = max(position, end)
        return (out + data[position:]).decode("utf-8", "replace")


_IN_USE: WeakValueDictionary[tuple[KeySet, ...], Patterns] = WeakValueDictionary()
"""Patterns that somebody in this process searches with: those of many persons take minutes to prepare."""


def build_patterns(key_sets: Iterable[KeySet], file_keys: FileKeys | None = None) -> Patterns:
    """Patterns for the key sets of a plan. Raises `ScanError` when there is nothing to search for."""
    given = tuple(key_sets)
    prepared = _IN_USE.get(given)
    if prepared is None:
        prepared = _IN_USE[given] = Patterns(given)
    return prepared.opening(file_keys)
