"""The persons' rows of one file, read again: those in which anything is left that nothing keeps.

With code of its own: nothing is shared with what writes the files. Columns are found in any case, as Spark finds them.
"""

from __future__ import annotations

import csv
import io
import json
import mmap
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from pii_tracer.model.datasets import JsonAccess, MatchTerm
from pii_tracer.model.hive_text.layout import text_of
from pii_tracer.model.number_keys import plain, plain_texts
from pii_tracer.model.plan import Copy, Mask
from pii_tracer.scan.decode.avro_container import open_container
from pii_tracer.scan.decode.compression import opened
from pii_tracer.scan.rows.json_documents import json_values
from pii_tracer.scan.rows.text_records import rows_of as text_rows
from pii_tracer.scan.rows.text_search import READ_AS
from pii_tracer.scan.value_forms import Patterns

if TYPE_CHECKING:
    import pyarrow as pa

_PIECE = 1 << 20
_ORC = "orc"
_AVRO = "avro"

PARQUET = "parquet"

Source = Path | BinaryIO
"""What a file is read from; rows of lake tables' formats also from a stream."""

Row = Iterable[tuple[str, Any]]
"""Names, in lower case, with their values; a name may stand twice."""


def rows_with_more(
    source: Source, kind: str, copy: Copy, mask: Mask, patterns: Patterns, shown: set[str]
) -> int | None:
    """Rows of the persons in which anything is left that nothing keeps; None where no column tells whose a row is.

    kind: as the scan names what a file is, of `READABLE`. shown: key columns in which the scan saw the person. Where no
    row has that key, it is written otherwise than the values are, and nobody knows whose the rows are.

    Raises:
        Exception: of many kinds, whatever the format's reader meets.
    """
    if kind == PARQUET:
        return _in_tables(*_parquet(source), copy, mask, patterns, shown)
    if kind == _ORC:
        return _in_tables(*_orc(source), copy, mask, patterns, shown)
    if kind == _AVRO:
        return _in_records(_avro(source), copy, mask, patterns, shown)
    if not isinstance(source, Path):
        raise ValueError("text must be read from a file, not from a stream")
    return _rows_of_text(source, kind, copy, mask, patterns, shown)


def _rows_of_text(path: Path, kind: str, copy: Copy, mask: Mask, patterns: Patterns, shown: set[str]) -> int | None:
    if kind == READ_AS:
        return _in_records(_by_columns(path, copy), copy, mask, patterns, shown)
    if kind != "csv":
        return _in_records(_RECORDS[kind](path), copy, mask, patterns, shown)
    try:
        return _in_records(_csv(path, encoding_of(copy), None), copy, mask, patterns, shown)
    except csv.Error:  # not RFC 4180: Spark escapes a quote with a backslash
        return _in_records(_csv(path, encoding_of(copy), "\\"), copy, mask, patterns, shown)


def encoding_of(copy: Copy) -> str:
    """How a copy's text is declared to be read."""
    return str(copy.facts.get("encoding", "utf-8"))


def _in_tables(
    names: list[str],
    batches: Callable[[list[str]], Iterator[pa.RecordBatch]],
    copy: Copy,
    mask: Mask,
    patterns: Patterns,
    shown: set[str],
) -> int | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    spelled = {name.lower(): name for name in names}
    masked = [spelled[c.lower()] for c in mask.columns if c.lower() in spelled]
    terms = [t for t in (copy.match.terms if copy.match else ()) if t.column.lower() in spelled]
    if not masked:
        return 0
    if not terms:
        return None
    total, missed = 0, set(shown)
    for batch in batches(sorted({*masked, *(spelled[t.column.lower()] for t in terms)})):
        mine = pa.array([False] * batch.num_rows)
        for term in terms:
            found = _mine(batch.column(spelled[term.column.lower()]), term, patterns)
            missed -= {term.label()} if found.true_count else set()
            mine = pc.or_(mine, found)
        if not mine.true_count:
            continue
        rest = pa.array([False] * batch.num_rows)
        for name in masked:
            rest = pc.or_(rest, pc.is_valid(batch.column(name)))
        total += pc.and_(mine, rest).true_count
    return None if missed else total


def _mine(column: pa.Array, term: MatchTerm, patterns: Patterns) -> Any:
    """Which rows a term finds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if term.access or pa.types.is_nested(column.type):
        cells = pa.array([_leaf(value, term) for value in column.to_pylist()], pa.string())
    else:
        found = plain_texts(column)
        cells = column.cast(pa.string()) if found is None else found
    wanted = [t for t in cells.unique().to_pylist() if t is not None and term.key_set in patterns.key_sets_of_cell(t)]
    return pc.is_in(cells, value_set=pa.array(wanted, pa.string()))


def _in_records(rows: Iterable[Row], copy: Copy, mask: Mask, patterns: Patterns, shown: set[str]) -> int | None:
    terms = [(t.column.lower(), t) for t in (copy.match.terms if copy.match else ())]
    gone, keys = {name.lower() for name in mask.columns}, {column for column, _ in terms}
    total, missed, names = 0, set(shown), set[str]()
    for row in rows:
        cells = list(row)
        names.update(name for name, _ in cells)
        found = {
            term.label()
            for column, term in terms
            for name, value in cells
            if name == column and term.key_set in patterns.key_sets_of_cell(_leaf(value, term) or "")
        }
        missed -= found
        total += bool(found) and any(name in gone and value is not None for name, value in cells)
    if names.isdisjoint(gone):
        return 0
    return None if missed or names.isdisjoint(keys) else total


def _leaf(value: Any, term: MatchTerm) -> str | None:
    for access in term.access:
        if not isinstance(access, JsonAccess):
            value = value.get(access.name) if isinstance(value, dict) else None
            continue
        try:
            value = json.loads(value) if isinstance(value, str) else value
        except ValueError:
            return None
        for name in access.path:
            value = value.get(name) if isinstance(value, dict) else None
    return None if value is None else plain(value)


def header_of(path: Path, encoding: str) -> list[str]:
    """The first record of a CSV file.

    Raises:
        Exception: of many kinds, where it is none.
    """
    return next(csv.reader(_lines(path, encoding)), [])


# --- formats


def _parquet(source: Source) -> tuple[list[str], Callable[[list[str]], Iterator[pa.RecordBatch]]]:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(source)
    return file.schema_arrow.names, lambda columns: file.iter_batches(columns=columns)


def _orc(source: Source) -> tuple[list[str], Callable[[list[str]], Iterator[pa.RecordBatch]]]:
    from pyarrow import orc

    file = orc.ORCFile(source)
    return file.schema.names, lambda columns: (file.read_stripe(n, columns=columns) for n in range(file.nstripes))


def _avro(source: Source) -> Iterator[Row]:
    data = source.read_bytes() if isinstance(source, Path) else source.read()
    for record in open_container(memoryview(data)).records():
        yield [(name.lower(), value) for name, value in record.items()]


def _csv(path: Path, encoding: str, escape: str | None) -> Iterator[Row]:
    """An empty field is NULL, as Spark reads it."""
    records = csv.reader(_lines(path, encoding), strict=True, escapechar=escape)
    header = [name.lower() for name in next(records, [])]
    for cells in records:
        if cells and len(cells) != len(header):
            raise ValueError("the number of fields of a record differs from the header")
        yield [(name, cell or None) for name, cell in zip(header, cells, strict=False)]


def _by_columns(path: Path, copy: Copy) -> Iterator[Row]:
    """A file of a table of text, as the plan says that its columns are."""
    table = text_of(copy.facts)
    text = table.of(path.parent.relative_to(copy.location)) if table else None
    if text is None:
        raise ValueError("the plan names no columns of this file")
    data = path.read_bytes()
    packed = opened(path.name, memoryview(data), _PIECE)
    content = io.BytesIO(b"".join(packed[2]) if packed else data)
    names = [column.name.lower() for column in text.columns]
    for row in text_rows(content, text):
        yield list(zip(names, row, strict=True))


def _json(path: Path) -> Iterator[Row]:
    decoder = json.JSONDecoder(parse_float=Decimal, object_pairs_hook=_Members)
    for members in json_values(_lines(path, "utf-8"), decoder):
        if not isinstance(members, _Members):
            raise ValueError("a row is not an object")
        yield [(name.lower(), value) for name, value in members.pairs]


class _Members(dict[str, Any]):
    """A JSON object that remembers members which stand twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def _lines(path: Path, encoding: str) -> Iterator[str]:
    """The content's lines with their ends; what is packed is unpacked a piece at a time."""
    with path.open("rb") as stream:
        # a read-only map: a large file does not fill the memory; it goes when its last reader lets go
        mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        packed = opened(path.name, memoryview(mapped), _PIECE)
        pieces = packed[2] if packed else iter(lambda: stream.read(_PIECE), b"")
        carried, mark = b"", "\ufeff"
        for piece in pieces:
            *lines, carried = (carried + piece).split(b"\n")
            for line in lines:
                yield (line + b"\n").decode(encoding, "surrogateescape").removeprefix(mark)
                mark = ""
        if carried:
            yield carried.decode(encoding, "surrogateescape").removeprefix(mark)


_RECORDS: Mapping[str, Callable[[Path], Iterator[Row]]] = {"json": _json, "json lines": _json}
IN_STREAMS = frozenset({PARQUET, _ORC, _AVRO})
READABLE = frozenset({*IN_STREAMS, *_RECORDS, "csv", READ_AS})
"""Kinds of files whose rows can be read again; of those in S3 the first ones."""
