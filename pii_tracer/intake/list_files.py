"""Lists of requests as files: CSV, Parquet, or one request as YAML; read row by row, whatever their size.

Nothing that stands in a file is ever told, not even its header: in a list without one, the first line is a person's.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from pii_tracer.common.plurals import counted
from pii_tracer.common.str_enum import StrEnum
from pii_tracer.config.estate_file import load_request
from pii_tracer.intake.row_rules import FIELDS
from pii_tracer.model.errors import RequestError, UsageError

_CHUNK = 1 << 20
_MOST_LINE = 1 << 16
"""Characters of a line. A longer one is no row: the file is of another kind, or has no line ends."""
_BATCH = 10_000


class ListKind(StrEnum):
    """What a file is."""

    YAML = "yaml"
    CSV = "csv"
    PARQUET = "parquet"


_ENDINGS = {".yaml": ListKind.YAML, ".yml": ListKind.YAML, ".parquet": ListKind.PARQUET}


@dataclass(frozen=True)
class Form:
    """How a list is written. columns: what a field's column is called, where it has not the field's name.

    ignore_others: whether columns may be there that are no field's; without it they are an error, as one can be a field
    written wrongly.
    """

    delimiter: str = ","
    encoding: str = "utf-8"
    columns: Mapping[str, str] = field(default_factory=dict)
    ignore_others: bool = False

    def __post_init__(self) -> None:
        """Raises `UsageError` where it cannot be."""
        if len(self.delimiter) != 1 or self.delimiter in '"\r\n\\':
            raise UsageError("the delimiter must be one character", where="--delimiter", todo="e.g. `;` or a tab")
        try:
            if not codecs.lookup(self.encoding)._is_text_encoding:
                raise LookupError
        except LookupError:
            raise UsageError("the encoding is unknown", where="--encoding", todo="e.g. utf-8, cp1252") from None
        unknown = sorted(self.columns.keys() - set(FIELDS))
        if unknown:
            raise UsageError(
                f"a row has no field `{unknown[0]}`", where="--column", todo=f"use one of: {', '.join(FIELDS)}"
            )


@dataclass(frozen=True)
class Row:
    """A row by its fields; or, where it cannot be read as one, why not (`wrong`)."""

    line: int
    told: Mapping[str, str | None]
    wrong: str | None = None

    def __repr__(self) -> str:
        return f"Row(line {self.line})"


def kind_of(path: Path) -> ListKind:
    """By the name's ending; what has another one is CSV."""
    return _ENDINGS.get(path.suffix.lower(), ListKind.CSV)


def feed(path: Path, digest: Any) -> None:
    """Feed a file to a digest, a piece at a time.

    Raises:
        RequestError: it cannot be read, or is no file.
    """
    try:
        if not path.is_file():
            raise RequestError(
                "the list is not a regular file",
                where=str(path),
                todo="name a regular file, because the list is read twice",
            )
        with path.open("rb") as stream:
            while piece := stream.read(_CHUNK):
                digest.update(piece)
    except OSError as error:
        raise _unread(path, error) from None


def rows(path: Path, form: Form) -> Iterator[Row]:
    """The rows of a list in order, each with its line (of Parquet: its number, from 1).

    Raises:
        RequestError: it cannot be read, or its header is wrong.
        ConfigError: it is a YAML file, and no request.
    """
    kind = kind_of(path)
    try:
        if kind is ListKind.YAML:
            yield _of_yaml(path)
        elif kind is ListKind.PARQUET:
            yield from _of_parquet(path, form)
        else:
            with path.open(encoding=_with_bom(form.encoding), errors="replace") as stream:
                yield from _of_csv(stream, form, str(path))
    except OSError as error:
        raise _unread(path, error) from None


def _of_yaml(path: Path) -> Row:
    asked = load_request(path)
    if not isinstance(asked.subject.key, str):
        raise RequestError(
            "the request store takes only keys of one column, and the key of this request has several",
            where=str(path),
            todo="plan the request from its file: `pii-tracer plan FILE`",
        )
    told = {"id": asked.id, "law": asked.law, "received": asked.received.isoformat()}
    told["ground"] = asked.ground
    if asked.noticed:
        told["noticed"] = asked.noticed.isoformat()
    return Row(1, {**told, "subject": asked.subject.type, "key": asked.subject.key})


def _with_bom(encoding: str) -> str:
    return "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding


# -- CSV -----------------------------------------------------------------------------------------------------------


def _of_csv(stream: IO[str], form: Form, where: str) -> Iterator[Row]:
    lines = _lines(stream)
    first = next(lines, (1, "", None))[1]
    if "\0" in first:  # letters of UTF-16 and UTF-32 are letters and zeros in UTF-8
        raise RequestError(
            "the list is not in the encoding given in `--encoding`",
            where=where,
            todo="give the correct encoding with `--encoding`",
        )
    header = _fields(first, form)
    if header is None:
        raise RequestError(
            "the header of the list cannot be read", where=f"{where}, line 1", todo="correct the quotes in this line"
        )
    places = _places([name.strip() for name in header], form, f"{where}, line 1")
    for number, line, wrong in lines:
        values = None if wrong else _fields(line, form)
        if not wrong and not line.strip():
            continue
        if values is None:
            yield Row(number, {}, wrong or "its quotes do not end in the same line")
        elif len(values) != len(header):
            yield Row(number, {}, f"it has {counted(len(values), 'field')}, and the header has {len(header)}")
        else:
            yield Row(number, {name: values[place] for name, place in places.items()})


def _lines(stream: IO[str]) -> Iterator[tuple[int, str, str | None]]:
    """(number, line without its end, what is wrong with it)"""
    number = 0
    while line := stream.readline(_MOST_LINE):
        number += 1
        if len(line) < _MOST_LINE or line.endswith("\n"):
            yield number, line.rstrip("\n"), None
            continue
        while line and not line.endswith("\n"):
            line = stream.readline(_MOST_LINE)
        yield number, "", f"it is longer than {_MOST_LINE} characters"


def _fields(line: str, form: Form) -> list[str] | None:
    """The fields of one line; None where quotes do not end in it. A stray quote must not swallow the lines after it."""
    if '"' not in line:
        return line.split(form.delimiter)
    try:
        return next(csv.reader(io.StringIO(line), delimiter=form.delimiter, strict=True))
    except (csv.Error, StopIteration):
        return None


def _places(header: Sequence[str], form: Form, where: str) -> dict[str, int]:
    """Where each field stands. Columns are told by number: in a list without a header their names are a person's."""
    names = {form.columns.get(name, name): name for name in FIELDS}
    found: dict[str, int] = {}
    for number, column in enumerate(header):
        name = names.get(column)
        if name is None and not form.ignore_others:
            raise RequestError(
                f"column {number + 1} of the header belongs to no field",
                where=where,
                todo=f"begin the list with a header of {', '.join(FIELDS)}; map other names with `--column "
                "FIELD=NAME`, and ignore further columns with `--ignore-other-columns`",
            )
        if name is not None and found.setdefault(name, number) != number:
            raise RequestError(
                f"columns {found[name] + 1} and {number + 1} of the header have the same name",
                where=where,
                todo="remove or rename one of these columns",
            )
    missing = [name for name in ("key", *form.columns) if name not in found]
    if missing:
        raise RequestError(
            f"the header has no column for `{missing[0]}`",
            where=where,
            todo="name the column with `--column FIELD=NAME`",
        )
    return found


# -- Parquet -------------------------------------------------------------------------------------------------------


def _of_parquet(path: Path, form: Form) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            places = _places(list(file.schema_arrow.names), form, str(path))
            columns = [file.schema_arrow.names[place] for place in places.values()]
            number = 0
            for batch in file.iter_batches(batch_size=_BATCH, columns=columns):
                found = [batch.column(name).to_pylist() for name in columns]
                for values in zip(*found, strict=True):
                    number += 1
                    yield _typed(number, dict(zip(places, values, strict=True)))
    except (pa.ArrowException, ValueError) as error:
        raise RequestError(
            f"the list cannot be read as Parquet: {type(error).__name__}", where=str(path), todo="write it again"
        ) from None


def _typed(number: int, values: Mapping[str, Any]) -> Row:
    told: dict[str, str | None] = {}
    for name, value in values.items():
        if value is None or isinstance(value, str):
            told[name] = value
        elif isinstance(value, datetime) and name in ("received", "noticed"):
            told[name] = value.isoformat()
        elif isinstance(value, int) and not isinstance(value, bool) and name in ("key", "id"):
            told[name] = str(value)
        else:
            return Row(number, {}, f"`{name}` is neither text nor, as a key, a whole number")
    return Row(number, told)


def _unread(path: Path, error: OSError) -> RequestError:
    return RequestError(
        f"the list cannot be read: {error.strerror or type(error).__name__}",
        where=str(path),
        todo="check the path and its permissions",
    )
