"""Collects the hits of one file while decoders feed it text, numbers, bounds and raw bytes. Keeps no value."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from pii_tracer.model.hive_text.layout import FileText
from pii_tracer.scan.cells_left_out import NOTHING, Apart, LeftCells, beyond, outside
from pii_tracer.scan.decode.cells import binary_text_cells, cell_search, variant
from pii_tracer.scan.decode.cells.json_members import json_leaves, member
from pii_tracer.scan.false_cell_hits import WINDOW, between, explained
from pii_tracer.scan.forms.pattern_automaton import Term
from pii_tracer.scan.forms.weak_boundaries import WeakMatch
from pii_tracer.scan.hits import Described, Form, Hit, without_short
from pii_tracer.scan.key_boundaries import Whole
from pii_tracer.scan.value_forms import PLAIN, Parts, Patterns

_NAMED = re.compile(rb"([\w.`]{1,128}?)`?(?:#\d+L?)?\s*=\s*\"?'?\Z")
_CELL = 65_536
_CELLS = 20_000
_DIGITS = 40


class Collector:
    """Hits and unread reasons of one file."""

    def __init__(self, patterns: Patterns, describing: Described | None = None) -> None:
        """describing: the data file that what is fed describes, where it is an engine's note of one."""
        self.patterns = patterns
        self._describing = describing
        self.counts: Counter[tuple[str, Form, str, str | None, Described | None]] = Counter()
        self._reasons: dict[str, None] = {}
        # decoded cells in which only a longer key was seen, by key set and by (where in the cell, length of the cell)
        self.longer: dict[str, dict[tuple[int, int], set[bytes]]] = {}
        self._cells = 0
        self.left = LeftCells(patterns)
        self.search_file: Callable[[Collector, bytes], bool] | None = None
        """Searches a cell that is a whole file and says whether it is one. None in a collector for a part of what
        another searches, which looks for files, streams, and bytes written as text."""
        self.columns: FileText | None = None
        """The columns of the text in the file, where a catalog says them."""
        self._depth = 0

    def add(self, key_set: str, form: Form, where: str, column: str | None, count: int = 1) -> None:
        """Count a hit. The column's label may come from data: a value in it is masked."""
        label = self.patterns.label(column) if column else None
        of = self._describing if form is Form.PREFIX else None
        self.counts[(key_set, form, where, label, of)] += count

    @contextmanager
    def describing(self, path: Any, size: Any) -> Iterator[None]:
        """What is fed meanwhile describes a data file. A path that holds a value is not kept."""
        before = self._describing
        if isinstance(path, str) and isinstance(size, int) and self.patterns.mask(path) == path:
            self._describing = Described(path=path, size=size)
        else:
            self._describing = None
        try:
            yield
        finally:
            self._describing = before

    @contextmanager
    def deeper(self) -> Iterator[bool]:
        """One layer deeper in a cell. Gives whether it may be searched; else it is unread."""
        self._depth += 1
        try:
            if self._depth > cell_search.DEPTH:
                self.unread("a cell nested in too many archives")
            yield self._depth <= cell_search.DEPTH
        finally:
            self._depth -= 1

    def written(self, text: bytes, where: str, column: str | None = None) -> None:
        """What a text writes down as base64, hex or escapes, and what marks of a document part in it."""
        if self.search_file is not None:
            cell_search.search_written(text, where, column, self)

    def inner(self) -> Collector:
        """An empty one for a part of the same."""
        made = Collector(self.patterns, self._describing)
        made.search_file = self.search_file
        return made

    def unread(self, reason: str) -> None:
        """Note that a part of the file could not be searched. Never with content of the file in the reason."""
        self._reasons[reason] = None

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the file is not wholly searched."""
        return tuple(self._reasons)

    def hits(self) -> tuple[Hit, ...]:
        """The hits, sorted."""
        items = sorted(self.counts.items(), key=lambda item: _order(*item[0]))
        weak = self.patterns.is_weak
        return tuple(
            Hit(key_set=without_short(name), form=form, where=where, column=column, weak=weak(name), count=count, of=of)
            for (name, form, where, column, of), count in items
        )

    def raw(self, data: bytes | memoryview, where: str, column: str | None = None, *, lines: bool = False) -> None:
        """Search any bytes for strong values, in windows that overlap by the longest pattern. lines: they are text."""
        view, position = memoryview(data), 0
        overlap = self.patterns.over_lines if lines else self.patterns.overlap
        while position < len(view):
            window = bytes(view[position : position + WINDOW + overlap])
            for (name, form), count in self.patterns.raw(window, lines=lines).items():
                self.add(name, form, where, column, count)
            position += WINDOW

    def seam(self, text: bytes, border: int, where: str) -> None:
        """What goes on over a place at which text was cut to be searched in parts: values, and over ends of lines."""
        for terms, start, end in self.patterns.occurrences(text, lines=True):
            for name, form in terms if start < border < end else ():
                self.add(name, form, where, None)

    def rest(
        self,
        data: memoryview,
        where: str,
        *,
        gone: Sequence[range] = (),
        packed: Sequence[range] = (),
        read: Sequence[range] = (),
        apart: Apart = (),
    ) -> None:
        """As `raw`, after the file was decoded: what is known to be another's longer key is left out.

        gone: parts, in order, that need no search: compressed, and all that they hold was given by a reader.
        A longer key is known only where a decoded cell of this file holds it, and: in `packed` parts (compressed and
        wholly read, so that their own bytes say nothing more) anything; in `read` parts (wholly read as they stand)
        the very bytes of such a cell; elsewhere these with their length in front.
        """
        view = memoryview(data)
        for position, stop in between(gone, len(view)):
            window = view[position : min(len(view), stop + self.patterns.overlap)]
            for terms, start, end in self.patterns.occurrences(window):
                at = position + start
                for name, form in outside(terms, at, position + end, apart) if at < stop else ():
                    known = self.longer.get(name) if form in PLAIN else None
                    if not known or not (
                        any(at in p for p in packed) or explained(view, at, position + end, known, read)
                    ):
                        self.add(name, form, where, None)

    def _ended(
        self,
        text: bytes,
        *,
        packed: bool = False,
        whole: Whole | None = None,
        cut: bool = False,
        parts: Parts | None = None,
    ) -> Counter[Term]:
        """Strong values in decoded text; cells that only hold longer keys are remembered."""
        found, longer = self.patterns.ended(text, text=not packed, whole=whole, cut=cut, parts=parts)
        for name, starts in longer.items():
            for start in starts:
                self._remember(name, text, start)
        return found

    def _remember(self, key_set: str, text: bytes, start: int) -> None:
        if len(text) <= _CELL and self._cells < _CELLS:
            known = self.longer.setdefault(key_set, {}).setdefault((start, len(text)), set())
            self._cells += text not in known
            known.add(text)

    def _bounded(
        self, text: bytes, *, tiny: bool, whole: Whole | None, parts: Parts | None = None
    ) -> Iterator[WeakMatch]:
        """Weak and short values in decoded text that are not known to be somebody else's."""
        for match in self.patterns.bounded(text, tiny=tiny, parts=parts):
            if whole is not None and match.form in PLAIN and match.key_set in whole(text, match.start, match.end):
                self._remember(match.key_set, text, match.start)
            else:
                yield match

    def quoted(self, text: bytes, start: int, end: int, ends: bytes = b'"') -> Collection[str]:
        """Of which key sets a match in a document's text is a longer key: it fills a cell that was decoded here.

        ends: the bytes that part cells. In JSON that is itself the text of a cell, the quotes are escaped.
        """
        low = max(text.rfind(bytes([byte]), max(0, start - _CELL), start) for byte in ends) + 1
        found = (text.find(bytes([byte]), end, end + _CELL) for byte in ends)
        high = min((at for at in found if at >= 0), default=len(text))
        cell = text[low:high].rstrip(b"\\")
        return [name for name, cells in self.longer.items() if cell in cells.get((start - low, len(cell)), ())]

    def decoded(self, text: bytes, start: int, end: int) -> Collection[str]:
        """Of which key sets a match in a text is a longer key: the very text is a cell that was decoded here."""
        return [name for name, cells in self.longer.items() if text in cells.get((start, len(text)), ())]

    def begun(self, cut: str) -> Counter[str]:
        """How often a cut document, its last character raised, may show keys: as one that was decoded and explained."""
        if not self.patterns.key_columns.not_keys:
            return Counter()
        start = cut[:-1].encode("utf-8", "surrogateescape")
        known = {name: {t for texts in cells.values() for t in texts} for name, cells in self.longer.items()}
        return Counter({name: len(start) for name, texts in known.items() if any(t.startswith(start) for t in texts)})

    def prose(
        self,
        text: str | bytes,
        where: str,
        column: str | None = None,
        *,
        packed: bool = False,
        whole: Whole | None = None,
        left: Mapping[str, int] = NOTHING,
    ) -> None:
        """Search decoded text for strong values only. packed: it may be a record whose bytes all look like text.

        whole: as in `Patterns.ended`. left: as of `LeftCells.shown_in`, where the text's cells were read.
        """
        data = _encode(text)
        self.written(data, where, column)
        found = beyond(self._ended(data, packed=packed, whole=whole), left)
        for (name, form), count in found.items():
            self.add(name, form, where, column, count)
        for terms, start, _ in self.patterns.occurrences(data) if left and not found else ():
            for name, _ in terms:  # the whole text names the columns: it says the same wherever it stands again
                self._remember(name, data, start)

    def terms(self, text: bytes, *, whole: Whole | None = None, cut: bool = False) -> Counter[Term]:
        """What stands in a piece of decoded text, weak values included."""
        parts = self.patterns.parts(text)
        found = self._ended(text, whole=whole, cut=cut, parts=parts)
        found.update((m.key_set, m.form) for m in self._bounded(text, tiny=False, whole=whole, parts=parts))
        return found

    def text(
        self,
        text: str | bytes,
        where: str,
        column: str | None = None,
        *,
        tiny: bool = False,
        strong: bool = True,
        whole: Whole | None = None,
        left: Mapping[str, int] = NOTHING,
    ) -> None:
        """Search text. A weak number behind `name=` is taken to belong to that column when no other is known."""
        data, spare = _encode(text), Counter(left)
        if strong:
            self.prose(data, where, column, whole=whole, left=left)
        for match in self._bounded(data, tiny=tiny, whole=whole):
            if match.form in PLAIN and spare[match.key_set] > 0:
                spare[match.key_set] -= 1
                continue
            owner = column
            if owner is None and (named := _NAMED.search(data[max(0, match.start - 160) : match.start])):
                owner = named.group(1).decode("utf-8", "replace").strip("`")
            self.add(match.key_set, match.form, where, owner)

    def number(self, value: int | float | Decimal, where: str, column: str | None) -> None:
        """Compare a typed number with the key values that are whole numbers."""
        if isinstance(value, float) and not (math.isfinite(value) and value.is_integer()):
            return
        if isinstance(value, Decimal) and not (_is_short(value) and value == value.to_integral_value()):
            return
        for name in self.patterns.ints.get(int(value), ()):
            if not self.left.number(name, value, where, column):
                self.add(name, Form.NUMBER, where, column)

    def strings(self, cells: Sequence[bytes], where: str, column: str | None) -> None:
        """Search text cells of a column, looked at together first. Nothing is kept of large ones."""
        others = self.patterns.value_cells.count(cells, self, where, column)
        self.patterns.expect([cell for cell in others if len(cell) <= _CELL])
        for cell in others:
            self.string(cell.decode("utf-8", "surrogateescape"), where, column)
        self.patterns.expect(())

    def string(self, value: str, where: str, column: str | None, *, cut: bool = False, known: bool = True) -> None:
        """Search a text cell: as JSON where it holds JSON, so that hits get the member's name, and as text.

        cut: it may be a cut one; known: it is surely one of the column.
        """
        text, keys = value.encode("utf-8", "surrogateescape"), self.patterns.key_columns
        self.written(text, where, column)
        cell = value.strip()
        no_keys = self.left.text(cell, where, column) if known else frozenset()
        found = self.terms(text, whole=keys.of_cell(column, cut=cut) if known else None, cut=cut)
        if no_keys:
            found = Counter({t: count for t, count in found.items() if t[0] not in no_keys or t[1] not in PLAIN})
        for name in keys.of_others(column, text) if cut else ():  # what is left of them is so because it may be cut
            for form in PLAIN:
                found[(name, Form.PREFIX)] += found.pop((name, form), 0)
            found = +found
        for name in self.patterns.of_cell(cell):
            if name not in no_keys and all(name != seen for seen, _ in found):
                found[(name, Form.TEXT)] += 1
        if found or self.patterns.has_tiny:
            inner: Collector | None = None
            for label, leaf in json_leaves(value):
                inner = inner or Collector(self.patterns)
                inner.leaf(leaf, where, f"{column or ''}.{label}" if label != "$" else column)
            if inner is not None:
                self.merge(inner)
                found = beyond(found, inner.left.shown_in(value))
            for (name, form), count in found.items():
                if inner is None or name not in inner.seen:
                    self.add(name, form, where, column, count)

    def leaf(self, value: Any, where: str, column: str | None) -> None:
        """One scalar of any type."""
        if value is None or isinstance(value, bool):
            return
        if isinstance(value, str):
            self.string(value, where, column)
        elif isinstance(value, (int, float, Decimal)):
            self.number(value, where, column)
        elif isinstance(value, (bytes, bytearray, memoryview)):
            self.binary(bytes(value), where, column)
        else:
            self.string(str(value), where, column)

    def binary(self, value: bytes, where: str, column: str | None, *, fixed: bool = False) -> None:
        """A binary cell: strong values anywhere in it, weak ones where it is text, or nothing but the number.

        One that is a compressed stream, or a whole file, is searched as what it holds, too. fixed: as of `search_cell`.
        """
        cell_search.search_cell(value, where, column, self, fixed=fixed)
        self.packed_number(value, where, column)
        binary_text_cells.search_message(value, where, column, self)
        try:
            text = value.decode()
        except UnicodeDecodeError:
            self.raw(value, where, column)
            return
        if text.isprintable():
            self.prose(value, where, column, packed=True)
        else:  # lengths of a packed record can look like digits
            self.raw(value, where, column, lines=True)

    def packed_number(self, value: bytes, where: str, column: str | None) -> None:
        """Count a cell that is nothing but the bytes of a number."""
        for number in self.patterns.packed.in_cell(value):
            self.number(number, where, column)

    def cell(self, value: Any, where: str, column: str | None) -> None:
        """A value of any shape: structs, maps and lists are walked; map keys count as data."""
        if isinstance(value, dict) and column and variant.is_row(value):
            variant.search_row(value, where, column, self)
        elif isinstance(value, dict):
            for key, item in value.items():
                self.leaf(key, where, f"{column}.key" if column else None)
                self.cell(item, where, f"{column}.{member(key)}" if column else member(key))
        elif isinstance(value, (list, tuple, set, frozenset)):
            for item in value:
                self.cell(item, where, column)
            if value and all(type(item) is int and -128 <= item <= 255 for item in value):
                self.binary(bytes(item & 255 for item in value), where, column)
        else:
            self.leaf(value, where, column)

    def bound(self, value: Any, where: str, column: str | None) -> None:
        """A minimum or maximum, which a format may have cut."""
        if not isinstance(value, str):
            self.leaf(value, where, column)
        else:
            self.string(value, where, column, cut=True)
            for name in self.patterns.prefixes(value):
                self.add(name, Form.PREFIX, where, column)

    @property
    def seen(self) -> frozenset[str]:
        """Key sets with a hit."""
        return frozenset(key[0] for key in self.counts)

    def merge(self, other: Collector, *, unless_seen_in: Collector | None = None) -> None:
        """Take over another's hits; those of key sets that a third has seen already are left out."""
        known = unless_seen_in.seen if unless_seen_in else frozenset()
        self.counts.update({key: count for key, count in other.counts.items() if key[0] not in known})
        self._reasons.update(other._reasons)
        for name, cells in other.longer.items():
            for place, texts in cells.items():
                self.longer.setdefault(name, {}).setdefault(place, set()).update(texts)
        self._cells += other._cells
        self.left.merge(other.left)


def _is_short(value: Decimal) -> bool:
    """Whether it can be made a whole number: `1e999999999` would be one of a gigabyte, and is no key."""
    return value.is_finite() and value.adjusted() < _DIGITS


def _order(name: str, form: Form, where: str, column: str | None, of: Described | None) -> tuple[str, ...]:
    return name, where, column or "", form, of.path if of else ""


def _encode(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
