"""Somebody else's longer key, told from a value and what stands beside it, in decoded text."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pii_tracer.scan.email_boundaries import QUOTED_PRINTABLE
from pii_tracer.scan.forms.short_number_split import named_parts
from pii_tracer.scan.forms.weak_boundaries import is_behind_escape

if TYPE_CHECKING:
    from pii_tracer.scan.rows.composite_keys import RowKeys

LONGER = 5
"""Up to so many digits beside a value's own digits make it another's key; more are other data joined to it."""

_ESCAPE = re.compile(rb"[\\%&]|" + QUOTED_PRINTABLE.pattern, re.IGNORECASE)
_CALLING = re.compile(
    rb"1|7|20|27|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|(?:2[1-689]|3[578]|42|50|59|6[789]|8[0578]|9[679])\d"
)
"""Codes of countries (https://www.itu.int/pub/T-SP-E.164D)."""
_CUT_CHARACTERS = (16, 32, 33, 34)
_CUT_BYTES = (64,)
"""Lengths of bounds that Iceberg and Delta (characters) and parquet-mr (bytes) cut; see `Patterns.prefixes`."""


def goes_on(data: bytes, start: int, end: int) -> bool:
    """Whether the match is only a part of a longer number or key: digits behind it, before it, or both, and then
    nothing of a word.

    Never told of a side on which the value has a letter (names are inflected), that a word touches, or on which there
    are many digits (a date or an amount joined to it), nor of digits before it that may be no part of the number: zeros
    that pad it, a plus, what a phone's number has in front, a country's code, and the end of an escape (`%22`). These
    count as the person.
    """
    first, behind = start, end
    while _is_digit(data, behind) and behind - end <= LONGER:
        behind += 1
    while _is_digit(data, first - 1) and start - first <= LONGER and not is_behind_escape(data, first):
        first -= 1
    if behind > end and not (_is_digit(data, end - 1) and behind - end <= LONGER):
        return False
    if first < start and not (_is_digit(data, start) and start - first <= LONGER):
        return False
    if first and _of_word(data[first - 1]) and not is_behind_escape(data, first):
        return False
    if behind < len(data) and _of_word(data[behind]):
        return False
    return behind > end or (first < start and not _may_precede(data, first, start))


def _is_digit(data: bytes, at: int) -> bool:
    return 0 <= at < len(data) and 48 <= data[at] <= 57


def _may_precede(data: bytes, first: int, start: int) -> bool:
    """Whether digits before a number can be what is dialled before it."""
    code = data[first:start].lstrip(b"0")
    return data[first - 1 : first] == b"+" or not code or _CALLING.fullmatch(code) is not None


def may_be_cut(bound: bytes) -> bool:
    """Whether a bound has one of the lengths to which formats cut."""
    return len(bound) in _CUT_BYTES or len(bound.decode("utf-8", "replace")) in _CUT_CHARACTERS


def _of_word(byte: int) -> bool:
    return byte > 127 or chr(byte).isalnum()


_NOBODYS = frozenset[str]()

Whole = Callable[[bytes, int, int], Collection[str]]
"""Told a match in decoded text (where it starts and ends), the key sets of which it is somebody else's longer key."""


class KeyColumns:
    """The columns of a place in which the plan deletes by `column = key`, so that a cell is compared as a whole.

    There a match that a letter or digit touches stands in a longer word, which is another's key. Nothing is said of
    other columns, nor of cells in which the touching letter may be no text of its own (the end of an escape) or the
    value no word (digits: `+91 98450 12345` with an extension behind).

    Case and words beside the value make no difference, but where a cell is exactly the key of another person.

    Besides, columns of which the owner says that they hold another system's numbers: a cell of one that is nothing but
    a key is not the person's. Whatever else stands there counts.

    rows: where rows have keys of several columns, which are compared row by row.
    """

    def __init__(
        self, columns: Mapping[str, Collection[str]] = MappingProxyType({}), rows: RowKeys | None = None
    ) -> None:
        """columns: names of key sets by the column's label. Case makes no difference in labels, as in Spark."""
        self.labels = tuple(sorted(columns))
        self.rows = rows
        self._others: Mapping[str, Collection[bytes]] = {}
        self.not_keys: Mapping[str, frozenset[str]] = {}
        self._columns: dict[str, frozenset[str]] = {}
        for label, names in columns.items():
            self._columns[label.lower()] = self._columns.get(label.lower(), frozenset()) | frozenset(names)

    @property
    def described(self) -> list[list[Any]]:
        """The columns, with the names of their key sets, sorted: those of keys, and those that hold other numbers; and
        what is compared row by row.
        """
        both = (self._columns, self.not_keys)
        columns = [sorted((label, sorted(names)) for label, names in columns.items()) for columns in both]
        return [*columns, self.rows.described if self.rows else []]

    @property
    def only_leave_out(self) -> bool:
        """Whether the columns can only take hits away. Keys of several columns stand in rows, and in no bytes: they are
        found by the columns alone.
        """
        return self.rows is None

    def __contains__(self, column: str | None) -> bool:
        return column is not None and (column.lower() in self._columns or column.lower() in self.not_keys)

    def leaving_out(self, not_keys: Mapping[str, Collection[str]]) -> KeyColumns:
        """The same columns. not_keys: by label, the key sets of which a cell there is nobody's key."""
        same = copy.copy(self)
        same.not_keys = {label.lower(): frozenset(names) for label, names in not_keys.items()}
        return same

    def naming(self, parts: Mapping[str, Collection[str]]) -> KeyColumns:
        """The same columns, where key sets are searched for in parts. parts: the names of these, by key set."""
        same = copy.copy(self)
        same._columns = named_parts(self._columns, parts)
        return same

    def no_keys_in(self, column: str | None) -> frozenset[str]:
        """The key sets of which a whole cell of a column is not the person's key; none where no column is known."""
        return self.not_keys.get(column.lower(), _NOBODYS) if column is not None and self.not_keys else _NOBODYS

    def knowing(self, others: Mapping[str, Collection[bytes]]) -> KeyColumns:
        """The same columns. others: by key set, other people's keys that look like the persons' (`KeySet.others`)."""
        same = copy.copy(self)
        same._others = others
        return same

    def of_others(self, column: str | None, cell: bytes) -> Collection[str]:
        """The key sets of a column in which the cell is exactly the key of somebody else."""
        names = self._columns.get(column.lower(), ()) if column is not None and self._others else ()
        return [name for name in names if cell in self._others.get(name, ())]

    def of_cell(self, column: str | None, *, cut: bool = False) -> Whole | None:
        """For the text of one cell of a column; None where nothing is known. cut: a format may have cut the text."""
        names = self._columns.get(column.lower()) if column is not None and self._columns else None
        if names is None:
            return None

        def told(text: bytes, start: int, end: int) -> Collection[str]:
            if _in_longer_word(text, start, end, cut=cut):
                return names
            return () if cut and may_be_cut(text) else self.of_others(column, text)

        return told

    @property
    def of_path(self) -> Whole | None:
        """For a path: its partition folders, `column=value`, are cells."""
        return self._of_folder if self._columns else None

    def _of_folder(self, path: bytes, start: int, end: int) -> Collection[str]:
        first, last = path.rfind(b"/", 0, start) + 1, path.find(b"/", end)
        column, equals, _ = path[first:last].partition(b"=")
        value = first + len(column) + 1
        whole = self.of_cell(column.decode("utf-8", "replace"))
        if whole is None or not equals or last < 0 or start < value:
            return ()
        return whole(path[value:last], start - value, end - value)


def _in_longer_word(cell: bytes, start: int, end: int, *, cut: bool) -> bool:
    """Whether a letter or digit, of any script, stands directly before or behind the match in a whole cell.

    Where the cell is a bound that may be cut, its last character may be a raised one: `ashaA` stands for `asha@…`.
    """
    before = cell[max(0, start - 4) : start].decode("utf-8", "replace")[-1:]
    behind = cell[end : end + 4].decode("utf-8", "replace")[:1]
    if cut and end + len(behind.encode()) == len(cell) and _raised(cell, behind):
        behind = ""
    if not (before.isalnum() or behind.isalnum()) or _ESCAPE.search(cell):
        return False
    return any(char.isalpha() for char in cell[start:end].decode("utf-8", "replace"))


def _raised(bound: bytes, last: str) -> bool:
    """Whether the last character of a bound may stand for the one before it in the alphabet, which is no letter."""
    return may_be_cut(bound) and bool(last) and not chr(max(0, ord(last) - 1)).isalnum()
