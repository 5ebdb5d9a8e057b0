"""Persons with a key of several columns, in the rows of a file: no bytes show them, since each column's values are
other people's, too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from pii_tracer.model.datasets import PLAIN, ElementAccess, FieldAccess, Format, KeyPart, Match, MatchTerm
from pii_tracer.model.hive_text.layout import FileText
from pii_tracer.model.keys_as_text import joined
from pii_tracer.model.number_keys import plain
from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.hits import Form
from pii_tracer.scan.rows.file_rows import Row, rows_of

_ALONE = PLAIN | {Format.KAFKA}
"""Formats in which each row that lies there counts."""

Values = Mapping[str, frozenset[str]]
"""The texts of persons' keys (`pii_tracer.model.keys_as_text`) in all spellings, by key set."""


class UnknownRowsError(Exception):
    """Whose the rows of a file are cannot be said. The text holds nothing of the file but names of columns."""


@dataclass(frozen=True)
class RowKeys:
    """Where the rows of a place's files have keys of several columns. format: of all its files."""

    format: Format
    terms: tuple[MatchTerm, ...]

    @classmethod
    def of(cls, match: Match | None, kind: Format) -> RowKeys | None:
        """Of a place whose rows are found so; None where no key has several columns, or a log says what counts."""
        terms = tuple(term for term in match.terms if term.beside) if match else ()
        return cls(kind, terms) if terms and kind in _ALONE else None

    @property
    def described(self) -> list[Any]:
        """What is compared, in a form that does not change."""
        return [str(self.format), *(term.model_dump(mode="json") for term in self.terms)]

    def found_in(self, row: Row, values: Values) -> tuple[MatchTerm, ...]:
        """The terms by which a row is one of the persons'. NULL in a column is nobody.

        Raises:
            UnknownRowsError: a value cannot be compared.
        """
        return tuple(
            term
            for term in self.terms
            for texts in [[_text_at(row, part) for part in term.parts]]
            if not values[term.key_set].isdisjoint(filter(None, map(joined, _readings(texts))))
        )

    def count(
        self, name: str, data: bytes | memoryview, values: Values, text: FileText | None = None
    ) -> Counter[MatchTerm]:
        """How many rows of a file are the persons', by term. text: as of `rows_of`.

        Raises:
            UnknownRowsError: a column of a key is not there, or a value cannot be compared.
            Exception: as `rows_of`.
        """
        found: Counter[MatchTerm] = Counter()
        columns: set[str] = set()
        total = 0
        for row in rows_of(self.format, name, data, self._columns, text):
            total += 1
            columns.update(row)
            found.update(self.found_in(row, values))
        if total:
            self._refuse_parts(columns)
        return found

    def _columns(self, names: Sequence[str]) -> list[str]:
        wanted = {column.lower() for term in self.terms for column in term.columns}
        return [name for name in names if name.lower() in wanted]

    def _refuse_parts(self, columns: Iterable[str]) -> None:
        known = {name.lower() for name in columns}
        missing = dict.fromkeys(c for term in self.terms for c in term.columns if c.lower() not in known)
        if missing:
            raise UnknownRowsError(f"it has no {', '.join(missing)}, so nobody knows whose its rows are")


def search_rows(name: str, data: bytes | memoryview, collector: Collector) -> None:
    """Compare the rows of a file of a place whose columns of keys are known. What cannot be compared is unread."""
    keys = collector.patterns.key_columns.rows
    if keys is None or not len(data):
        return
    try:
        found = _count(keys, name, data, collector)
    except UnknownRowsError as error:
        collector.unread(str(error))
        return
    except Exception as error:  # decoders of many families
        collector.unread(f"its rows cannot be compared with keys of several columns ({type(error).__name__})")
        return
    for term, rows in found.items():
        collector.add(term.key_set, Form.TEXT, "data", term.label(), rows)


def _count(keys: RowKeys, name: str, data: bytes | memoryview, collector: Collector) -> Counter[MatchTerm]:
    """Raises as `RowKeys.count`: of a file that only may be one of a table of text, where it can be read as neither."""
    text, values = collector.columns, collector.patterns.whole_keys
    if text is None or not text.guessed:
        return keys.count(name, data, values, text)
    found: Counter[MatchTerm] = Counter()
    with suppress(Exception):  # decoders of many families
        found = keys.count(name, data, values, text)
        with suppress(Exception):
            found |= keys.count(name, data, values)
        return found
    return keys.count(name, data, values)


def _readings(texts: list[str | None]) -> Iterator[list[str | None]]:
    """What the cells of a row say: as they are, and where their bytes are no UTF-8, in other encodings of CSV."""
    yield texts
    if any("\udc80" <= sign <= "\udcff" for text in texts if text for sign in text):
        for encoding in ("cp1252", "latin-1"):
            yield [text and text.encode("utf-8", "surrogateescape").decode(encoding, "replace") for text in texts]


def _text_at(row: Row, part: KeyPart) -> str | None:
    value = _member(row, part.column)
    for access in part.access:
        if isinstance(access, FieldAccess):
            value = _field(value, access.name)
            continue
        if isinstance(access, ElementAccess):
            raise UnknownRowsError("a key column is in a list in this file")
        value = _parsed(value) if isinstance(value, str) else value  # a record is parsed already
        for name in access.path:
            value = value.get(name) if isinstance(value, Mapping) else None
    return _text(value)


def _field(value: Any, name: str) -> Any:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise UnknownRowsError("a key column is not a struct in this file")
    return _member(value, name)


def _member(row: Row, name: str) -> Any:
    """A member by its name in any case, as Spark resolves it."""
    fits = [n for n in row if n == name] or [n for n in row if n.lower() == name.lower()]
    if len(fits) > 1:
        raise UnknownRowsError("it has a column of the key twice")
    return row[fits[0]] if fits else None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _text(value: Any) -> str | None:
    """As Spark casts it to a string; numbers that are whole have no fraction."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float, Decimal)):
        return plain(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (UUID, date)) and not isinstance(value, datetime):
        return str(value)
    raise UnknownRowsError(f"a column of the key has values that cannot be compared ({type(value).__name__})")
