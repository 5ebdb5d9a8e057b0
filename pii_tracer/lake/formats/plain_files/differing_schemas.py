"""Files of one folder whose columns differ in case or in how text is stored: they are one table, as for Spark.

Spark finds columns in any case (`spark.sql.caseSensitive` is false by default), and reads text alike whether a file
has it as string, large string, dictionary (a category of pandas) or bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from pii_tracer.lake.formats.plain_files.data_file import StoredFile
from pii_tracer.lake.formats.plain_files.json_types import TwiceError
from pii_tracer.lake.spark_types import arrow_type, without_views
from pii_tracer.model.column_paths import Fields, leaves, struct_fields
from pii_tracer.model.datasets import Column, Format
from pii_tracer.model.errors import EstateError

if TYPE_CHECKING:
    import pyarrow as pa

    Cells = TypeVar("Cells", pa.Array, pa.ChunkedArray)

Way = tuple[str, ...]
"""A column's name, and those of fields inside its structs."""

TEXT, BYTES = "string", "binary"
_WHOLE = ("tinyint", "smallint", "int", "bigint")
"""Whole numbers, the narrowest first: every reader sees the same number in each."""
_NOTHING = frozenset({"null", "void"})
"""What Arrow and Spark call a column that holds NULL alone."""
_PLAIN = frozenset({*_WHOLE, TEXT, "boolean", "float", "double", "date", "timestamp", "timestamp_ntz"})
_DECIMAL = re.compile(r"decimal\(\d+,(?P<scale>-?\d+)\)")
_SIGNS = re.compile(r"[`:,<>()]")
"""What would be read as part of a type."""
_LIST = re.compile(r"array<(.*)>", re.DOTALL)


def spelled(names: Sequence[str], first: dict[str, str]) -> tuple[str, ...]:
    """The names of a file's columns as the table has them: as the first file does that has them in any case.

    first: by name in lower case, what files before this one call them; is added to. Names that the file itself tells
    apart by case stay apart.
    """
    folded = [name.lower() for name in names]
    return tuple(
        name if folded.count(low) > 1 else first.setdefault(low, name) for name, low in zip(names, folded, strict=True)
    )


def named_here(there: Sequence[str], wanted: Iterable[str]) -> dict[str, str]:
    """By column of the table: what a file calls it. Columns that the file does not have are not in it.

    Raises:
        ValueError: two columns of one name in any case, on either side: nobody can tell which is meant.
    """
    folded: dict[str, list[str]] = {}
    for name in there:
        folded.setdefault(name.lower(), []).append(name)
    asked = list(dict.fromkeys(wanted))
    found = {name: name for name in asked if name in there}
    for name in (name for name in asked if name not in found):
        fits = [here for here in folded.get(name.lower(), []) if found.get(here) != here]
        if len(fits) > 1 or set(fits) & set(found.values()):
            raise ValueError("columns that differ only in case")
        if fits:
            found[name] = fits[0]
    return found


def alike_but_for_case(columns: Iterable[Column]) -> frozenset[Way]:
    """Columns that another one is called like but for the case, and those with such fields in their structs."""
    ways = {way[:end] for c in columns for way in leaves(c.name, c.type) for end in range(1, len(way) + 1)}
    folded = Counter(tuple(name.lower() for name in way) for way in ways)
    return frozenset(way[:1] for way in ways if folded[tuple(name.lower() for name in way)] > 1)


def as_table_has(cells: Cells, kind: str) -> Cells:
    """Cells of a file, in the way that those of other files can stand beside. kind: of the column in the table.

    Raises:
        pa.ArrowInvalid: bytes are no text, and the column is.
    """
    import pyarrow as pa

    plain = without_views(cells.type)
    if kind == TEXT and (pa.types.is_binary(plain) or pa.types.is_large_binary(plain)):
        plain = pa.large_string()
    return cells if plain == cells.type else cells.cast(plain)


def fields_as_text(cells: Cells, kind: str) -> Cells:
    """Cells of a file, with text in those fields of structs in which the table has text. kind: of the column there."""
    plain = _with_text(cells.type, kind) if struct_fields(kind) is not None else cells.type
    return cells if plain == cells.type else cells.cast(plain)


def _with_text(here: pa.DataType, table: str) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_struct(here):
        kinds = {name.lower(): kind for name, kind in struct_fields(table) or ()}
        return pa.struct([f.with_type(_with_text(f.type, kinds.get(f.name.lower(), ""))) for f in here])
    if _is_list(here) and (inner := _LIST.fullmatch(table)):
        return pa.list_(_with_text(here.value_type, inner[1]))
    return pa.large_string() if table == TEXT and _has_text(arrow_type(here)) else here


def _is_list(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return any(fits(kind) for fits in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list))


def kind_of_both(one: str, other: str) -> str:
    """The type of a column that two files have: text where one has it as bytes, and the wider of numbers alike.

    Structs have the fields of both, as the first spells them. Where a struct's field is text in one way or another,
    it is text.
    """
    return _both(one, other, False)


def _both(one: str, other: str, inside: bool) -> str:
    if one == other or other in _NOTHING:
        return one
    if one in _NOTHING:
        return other
    mine, others = struct_fields(one), struct_fields(other)
    if mine is not None and others is not None:
        return _struct(mine, others)
    lists = _LIST.fullmatch(one), _LIST.fullmatch(other)
    if lists[0] and lists[1]:
        return f"array<{_both(lists[0][1], lists[1][1], inside)}>"
    if {one, other} == {TEXT, BYTES}:
        return TEXT
    if (wide := _wider(one, other)) is not None:
        return wide
    return TEXT if inside and _has_text(one) and _has_text(other) else one


def _struct(mine: Fields, others: Fields) -> str:
    kinds = dict(mine)
    here = {name.lower(): name for name in reversed(kinds)}
    there = Counter(name.lower() for name, _ in others)
    for name, kind in others:
        low = name.lower()
        own = name if name in kinds or there[low] > 1 else here.get(low, name)
        kinds[own] = _both(kinds.get(own, kind), kind, True)
    return "struct<" + ",".join(f"{_quoted(name)}:{kind}" for name, kind in kinds.items()) + ">"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`" if _SIGNS.search(name) else name


def _wider(one: str, other: str) -> str | None:
    """The type of two in which every reader sees the numbers of both; None where there is none."""
    if one in _WHOLE and other in _WHOLE:
        return max(one, other, key=_WHOLE.index)
    digits = _DECIMAL.fullmatch(one), _DECIMAL.fullmatch(other)
    if digits[0] and digits[1] and digits[0]["scale"] == digits[1]["scale"]:
        return max(one, other, key=lambda kind: int(kind[len("decimal(") : kind.index(",")]))
    return None


def _has_text(kind: str) -> bool:
    """Whether each value of a type can be written as text."""
    return kind in _PLAIN or _DECIMAL.fullmatch(kind) is not None


def ways_apart(way: Way, one: str, other: str) -> Iterator[Way]:
    """Where below a way readers differ in what the values are that two files have as these types: some take the type of
    the one for both, others that of the other, a wider one, or text, and some fail.

    Structs are compared by the fields that both have. The way is the whole column's where no text can be made of both,
    as the files' structs cannot be read as one then. What is in a list has the way of the list.
    """
    if one == other or not _NOTHING.isdisjoint((one, other)) or _wider(one, other) is not None:
        return
    mine, others = struct_fields(one), struct_fields(other)
    if mine is not None and others is not None:
        there = {name.lower(): kind for name, kind in others}
        for name, kind in mine:
            yield from ways_apart((*way, name), kind, there.get(name.lower(), kind))
        return
    lists = _LIST.fullmatch(one), _LIST.fullmatch(other)
    if lists[0] and lists[1]:
        yield from {inner[: len(way)] for inner in ways_apart((*way, ""), lists[0][1], lists[1][1])}
    elif {one, other} == {TEXT, BYTES}:
        if len(way) > 1:  # bytes are made text in columns alone
            yield way
    else:
        yield way if _has_text(one) and _has_text(other) else way[:1]


def ways_lacking(columns: Iterable[Column], files: Iterable[Iterable[Column]]) -> frozenset[Way]:
    """Ways to fields of structs that the table has, and some file's structs have not."""
    kinds = {column.name: column.type for column in columns}
    return frozenset(
        way
        for file in frozenset(map(tuple, files))
        for column in file
        for way in leaves(column.name, kinds.get(column.name, ""))
        if not _has(column.type, way[1:])
    )


def _has(kind: str, fields: Way) -> bool:
    """Whether a type has these fields, each in the one before. NULL alone has all; what is no struct is unlike."""
    inner = struct_fields(kind)
    if not fields or inner is None:
        return True
    return any(_has(kind, fields[1:]) for name, kind in inner if name.lower() == fields[0].lower())


def refuse_unlike(tables: Mapping[StoredFile, pa.Table]) -> None:
    """Raises EstateError: a column has types in two files that no table has at once."""
    import pyarrow as pa

    first: dict[str, tuple[pa.DataType, StoredFile]] = {}
    for file, table in tables.items():
        for field in table.schema:
            kind, _ = first.setdefault(field.name, (field.type, file))
            try:
                pa.unify_schemas(
                    [pa.schema([(field.name, kind)]), pa.schema([(field.name, field.type)])],
                    promote_options="permissive",
                )
            except pa.ArrowException:
                raise EstateError(
                    f"the folder's files cannot be read as one table: {field.name} is {field.type} in some files and "
                    f"{kind} in others",
                    where=str(file.path),
                    todo="let the job write all files with the same type, then plan again",
                ) from None


def unreadable(file: StoredFile, error: Exception) -> EstateError:
    """What to tell of a file that cannot be read: never the parser's own text, which may quote rows."""
    article = "an" if file.format.value[0] in "ao" else "a"
    return EstateError(
        f"{article} {file.format} file cannot be read: {_why(file, error)}",
        where=str(file.path),
        todo="repair or remove the file, which may contain a person, then plan again",
    )


_PARQUET, _ENCRYPTED = b"PAR1", b"PARE"
"""How Parquet files begin, the second where the footer is encrypted."""


def _why(file: StoredFile, error: Exception) -> str:
    """What is wrong with a file, as far as it shows; else the kind of the parser's error."""
    if isinstance(error, TwiceError):
        return "an object in it has the same member twice, and readers use different ones"
    if file.format is Format.JSON and isinstance(error, ValueError):
        return (
            "it is neither JSON lines nor one JSON document of objects (it may be truncated, or contain several "
            "documents)"
        )
    if file.format is Format.CSV and "CSV parse error: Expected" in str(error):
        return "the number of fields of a row differs from the header"
    if file.format is not Format.PARQUET:
        return type(error).__name__
    with file.path.open("rb") as stream:
        start = stream.read(4)
    if start == _ENCRYPTED:
        return "its footer is encrypted, so its columns are unknown"
    return type(error).__name__ if start == _PARQUET else "it is not a Parquet file, although its name says so"
