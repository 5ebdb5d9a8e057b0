"""The columns of a table of delimited text, by their positions and the types that are told of them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pii_tracer.model.hive_text.layout import Serde, TextColumn

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "integer": 32, "bigint": 64}
_ALIASES = {"byte": "tinyint", "short": "smallint", "long": "bigint", "real": "float"}
"""Other names in Spark SQL: https://spark.apache.org/docs/3.5.6/sql-ref-datatypes.html."""
_ALIAS = re.compile(r"(?:dec|numeric|character)\b")
_FULL = {"dec": "decimal", "numeric": "decimal", "character": "char"}
_KNOWN = re.compile(
    r"string|(?:varchar|char)\(\d+\)|(?:tiny|small|big)?int|integer|float|double|decimal(?:\(\d+(?:,\d+)?\))?|boolean"
    r"|date|timestamp(?:_ntz|_ltz)?|binary"
)
_TEXT = re.compile(r"string|(?:varchar|char)\((\d+)\)")

_CORRUPT = "_corrupt_record"
"""Spark's own name (`spark.sql.columnNameOfCorruptRecord`)."""


class UnreadText(Exception):
    """Why the text of a table is not read. Its message names no value of a property."""


def columns_of(fields: Iterable[tuple[str, str]], serde: Serde) -> tuple[TextColumn, ...]:
    """The columns of a table by their positions. fields: names and types.

    Raises:
        UnreadText: there are none, two of one name, or one for Spark of a type that is not known here.
    """
    columns = tuple(_column(name, kind or "string", serde) for name, kind in fields)
    if not columns or len({column.name.lower() for column in columns}) != len(columns):
        raise UnreadText("it has no columns, or two of one name")
    if serde is Serde.SPARK and any(column.name.lower() == _CORRUPT for column in columns):
        raise UnreadText(f"a column is called `{_CORRUPT}`, in which Spark puts lines that it cannot read")
    return columns


def _column(name: str, kind: str, serde: Serde) -> TextColumn:
    plain = kind.lower().replace(" ", "")
    if serde is Serde.QUOTED:
        return TextColumn(name=name, type="string")
    if serde is Serde.SPARK:
        plain = _ALIAS.sub(lambda found: _FULL[found[0]], _ALIASES.get(plain, plain))
        if not _KNOWN.fullmatch(plain):
            raise UnreadText("a column has a type that is not known here, or that CSV cannot have")
        kind = plain
    if plain in _BITS:
        return TextColumn(name=name, type="string", whole=_BITS[plain])
    text = _TEXT.fullmatch(plain)
    if text and not (serde is Serde.SPARK and plain.startswith("char")):  # which Spark pads as it reads
        return TextColumn(name=name, type="string", most=int(text[1]) if text[1] else None)
    return TextColumn(name=name, type=kind)
