"""Folders of data files without a table format: Parquet, ORC, Avro, CSV and JSON, plain or compressed."""

from __future__ import annotations

import codecs
import csv
import hashlib
import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote

from pii_tracer.config_catalogs import TextEncoding
from pii_tracer.errors import EstateError
from pii_tracer.estate.column_order import table_order
from pii_tracer.estate.found import Found, gap
from pii_tracer.estate.json_lines import Shape
from pii_tracer.estate.paths import EstatePaths
from pii_tracer.estate.streams import SINK_LOG
from pii_tracer.estate.types import arrow_type, avro_type, padded_columns, partition_type, spark_columns
from pii_tracer.gap_kinds import GapKind
from pii_tracer.inventory import ENCODING, TableState
from pii_tracer.model import Column, Format
from pii_tracer.scan.decode.packed import unpack

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow.parquet as pq

_SUFFIXES = {
    ".parquet": Format.PARQUET,
    ".orc": Format.ORC,
    ".avro": Format.AVRO,
    ".csv": Format.CSV,
    ".json": Format.JSON,
    ".jsonl": Format.JSON,
    ".ndjson": Format.JSON,
}
_COMPRESSED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".snappy": "snappy", ".deflate": "deflate"}
_HADOOP = frozenset({"snappy", "deflate"})
_MAGIC = ((b"PAR1", Format.PARQUET), (b"ORC", Format.ORC), (b"Obj\x01", Format.AVRO))
_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
PARTITION = re.compile(r"^([^=]+)=(.*)$")
SUMMARY = "_metadata"
"""A file that repeats the footers of all files of a Parquet folder, with their smallest and largest values."""
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
# a header names columns; digits, addresses and blanks are a first row of data, which must not become names
_NAME = re.compile(r"^[^\W\d][\w .:/()#-]{0,127}$")


@dataclass(frozen=True)
class DataFile:
    """One data file: where it is, and how it is encoded. `codec` is that of the whole file, None inside Parquet etc.

    encoding: of the text in CSV, where the estate file declares it; UTF-8 otherwise.
    """

    path: Path
    format: Format
    codec: str | None
    encoding: str | None = None


def data_file(path: Path) -> DataFile | None:
    """What kind of data file this is, by name, else by its first bytes; None when it is none that is known."""
    suffixes = [s.lower() for s in path.suffixes]
    codec = _COMPRESSED.get(suffixes[-1]) if suffixes else None
    suffix = suffixes[-2] if codec and len(suffixes) > 1 else suffixes[-1] if suffixes else ""
    if suffix in _SUFFIXES:
        return DataFile(path, _SUFFIXES[suffix], codec)
    with path.open("rb") as stream:
        start = stream.read(4)
    for magic, kind in _MAGIC:
        if start.startswith(magic):
            return DataFile(path, kind, None)
    return None


def partition_values(folder: Path, path: Path) -> dict[str, str | None]:
    """`k=v` folders between a folder and a file, unescaped; None for Hive's default partition."""
    found: dict[str, str | None] = {}
    for part in path.relative_to(folder).parts[:-1]:
        if match := PARTITION.match(part):
            found[unquote(match[1])] = None if match[2] == _NULL_PARTITION else unquote(match[2])
    return found


def file_sha256(path: Path) -> str:
    """Hex SHA-256 of a file's bytes, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def folder_digest(folder: Path, paths: Iterable[Path]) -> str:
    """`sha256:…` over the sorted (relative path, size, SHA-256) of files: changes when any of them does."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        name = path.relative_to(folder).as_posix()
        digest.update(f"{name}\0{path.stat().st_size}\0{file_sha256(path)}\n".encode("utf-8", "surrogateescape"))
    return "sha256:" + digest.hexdigest()


def folder_state(folder: Path, files: tuple[DataFile, ...], paths: EstatePaths) -> Found:
    """State of a bare folder that holds these data files (at least one).

    Files of more than one format are a gap: the state then speaks of the most frequent one.

    Raises:
        EstateError: a file cannot be read; it names the file.
    """
    formats = Counter(f.format for f in files)
    kind = min(formats, key=lambda f: (-formats[f], f.value))
    encoding = paths.encoding_at(folder) if kind is Format.CSV else None
    mine = tuple(sorted((replace(f, encoding=encoding) for f in files if f.format is kind), key=lambda f: str(f.path)))
    dataset = paths.dataset_of(folder)
    partitions = _partition_columns(folder, mine)
    names = {c.name for c in partitions}
    columns, rows, common, ordered, mixed = _columns_and_rows(mine)
    state = TableState(
        dataset=dataset,
        table=paths.table_at(folder),
        location=str(folder),
        format=kind,
        snapshot=folder_digest(folder, (f.path for f in files)),
        columns=(*(c for c in columns if c.name not in names), *partitions),
        partition_columns=tuple(c.name for c in partitions),
        codec=_codec(mine),
        rows=rows,
        files=len(mine),
        bytes=sum(f.path.stat().st_size for f in mine),
        uneven=tuple(sorted({c.name for c in columns} - common)) if common and kind is not Format.JSON else (),
        loose=not ordered,
        mixed=mixed,
        padded=tuple(sorted({name for file in mine for name in _padded(file)})),
        fixed=dict.fromkeys((name for file in mine for name in _required(file)), "NOT NULL"),
        properties=({SINK_LOG: "streaming file sink"} if (folder / SINK_LOG).is_dir() else {})
        | ({ENCODING: encoding} if encoding else {})
        | ({SUMMARY: "Parquet summary"} if _summarised(folder, mine) else {}),
    )
    gaps = []
    others = sorted(str(f.path) for f in files if f.format is not kind)
    if others:
        reason = f"the folder holds files of {len(formats)} formats ({', '.join(sorted(formats))}): not one table"
        gaps.append(gap(dataset, GapKind.MIXED_FORMATS, reason, others[0]))
    if columns and not common:
        reason = "files of this folder have no column in common: not one table, so that no step can rewrite it as one"
        gaps.append(gap(dataset, GapKind.MIXED_COLUMNS, reason, str(mine[0].path)))
    return Found(state, tuple(gaps))


def _summarised(folder: Path, files: tuple[DataFile, ...]) -> bool:
    """Whether a Parquet folder, or a partition of it, has a summary."""
    if files[0].format is not Format.PARQUET:
        return False
    places = {place for file in files for place in file.path.parents if place.is_relative_to(folder)}
    return any((place / SUMMARY).is_file() for place in places)


def _columns_and_rows(
    files: tuple[DataFile, ...],
) -> tuple[tuple[Column, ...], int | None, frozenset[str], bool, tuple[str, ...]]:
    """Columns of all files, their rows where the format counts them, the columns of each, whether the files tell
    the table's order (where they do not, columns stand as they appear), and `TableState.mixed`.

    Files without any column (empty ones) say nothing of the last two.
    """
    columns: dict[str, Column] = {}
    orders: list[tuple[DataFile, tuple[str, ...]]] = []
    rows: int | None = 0
    common: frozenset[str] | None = None
    shape = Shape()
    for file in files:
        try:
            if file.format is Format.JSON:  # of what lines are alike, all files tell together
                there = frozenset(_shape(file, shape))
                found, count = tuple(c for c in _columns_of(shape) if c.name in there), None
            else:
                found, count = file_columns(file)
        except EstateError:
            raise
        except Exception as error:  # every format's parser has errors of its own
            raise EstateError(
                f"a {file.format} file cannot be read: {type(error).__name__}",
                where=str(file.path),
                todo="repair or remove the file; whether it holds a person cannot be told",
            ) from None
        for column in found:
            columns.setdefault(column.name, column)
        if found:
            orders.append((file, tuple(column.name for column in found)))
        names = frozenset(column.name for column in found)
        common = common if not names else names if common is None else common & names
        rows = None if rows is None or count is None else rows + count
    # a record of JSON lacks what is NULL, and readers sort what they infer
    order = None if files[0].format is Format.JSON else _order(orders)
    if order is not None:
        found_all = tuple(columns[name] for name in order)
    else:
        found_all = _columns_of(shape) or tuple(columns.values())
    return found_all, rows, common or frozenset(), order is not None, tuple(sorted(shape.mixed))


def _order(orders: Sequence[tuple[DataFile, tuple[str, ...]]]) -> tuple[str, ...] | None:
    return table_order([order for _, order in orders], lambda number: _by_spark(orders[number][0]))


def _by_spark(file: DataFile) -> bool:
    if file.format is not Format.PARQUET:
        return False
    import pyarrow.parquet as pq

    return _spark_schema(pq.read_metadata(file.path)) is not None


def _spark_schema(footer: pq.FileMetaData) -> bytes | None:
    """The schema that Spark notes in files that it writes, as JSON."""
    return (footer.metadata or {}).get(_SPARK_SCHEMA)


def file_columns(file: DataFile) -> tuple[tuple[Column, ...], int | None]:
    """Columns of one file, and its rows where the format counts them."""
    if file.format is Format.PARQUET:
        return _parquet(file.path)
    if file.format is Format.ORC:
        from pyarrow import orc

        opened = orc.ORCFile(file.path)
        return _arrow_columns(opened.schema), int(opened.nrows)
    if file.format is Format.AVRO:
        import fastavro

        with file.path.open("rb") as stream:
            schema: Any = fastavro.reader(stream).writer_schema
        return tuple(Column(name=f["name"], type=avro_type(f["type"])) for f in schema["fields"]), None
    if file.format is Format.CSV:
        if file.encoding is None:
            _refuse_other_encodings(file)
        return tuple(Column(name=name, type="string") for name in csv_header(file)[0]), None
    shape = Shape()
    _shape(file, shape)
    return _columns_of(shape), None


def _shape(file: DataFile, shape: Shape) -> tuple[str, ...]:
    """Put a file of JSON lines to what others are like; its columns."""
    import pyarrow as pa
    from pyarrow import json

    with decompressed(file) as stream:
        if not stream.read(1):
            return ()
    mine = Shape()
    try:
        with decompressed(file) as stream:
            mine.add((field.name, field.type) for field in json.read_json(stream).schema)
    except pa.ArrowInvalid:
        with decompressed(file) as stream:
            mine.read(stream)
    shape.add(mine.types.items())
    shape.mixed |= mine.mixed
    return tuple(mine.types)


def _columns_of(shape: Shape) -> tuple[Column, ...]:
    return tuple(Column(name=name, type=arrow_type(kind)) for name, kind in shape.types.items())


def _parquet(path: Path) -> tuple[tuple[Column, ...], int]:
    import json

    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        written = _spark_schema(file.metadata)
        columns = spark_columns(json.loads(written)) if written else _arrow_columns(file.schema_arrow)
        return columns, int(file.metadata.num_rows)


def _required(file: DataFile) -> tuple[str, ...]:
    """Columns of a file that cannot hold NULL."""
    if file.format is Format.PARQUET:
        import pyarrow.parquet as pq

        return tuple(field.name for field in pq.read_schema(file.path) if not field.nullable)
    if file.format is Format.AVRO:
        import fastavro

        with file.path.open("rb") as stream:
            schema: Any = fastavro.reader(stream).writer_schema
        return tuple(f["name"] for f in schema["fields"] if not (isinstance(f["type"], list) and "null" in f["type"]))
    return ()


def _padded(file: DataFile) -> tuple[str, ...]:
    """Columns of CHAR(n), as far as the file tells: ORC files of Spark have no word of it."""
    if file.format is not Format.PARQUET:
        return ()
    import json

    import pyarrow.parquet as pq

    written = _spark_schema(pq.read_metadata(file.path))
    return padded_columns(json.loads(written)) if written else ()


def _arrow_columns(schema: Any) -> tuple[Column, ...]:
    return tuple(Column(name=f.name, type=arrow_type(f.type)) for f in schema)


def _refuse_other_encodings(file: DataFile) -> None:
    """Raise `EstateError` for CSV that is not UTF-8 from end to end: its text would be read as another one."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with decompressed(file) as stream:
            while piece := stream.read(1 << 20):
                decoder.decode(piece)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise EstateError(
            "a csv file is not UTF-8: declare its folder as a table of the format csv with its `encoding`"
            f" ({' or '.join(TextEncoding)}), under a catalog of the type declared",
            where=str(file.path),
            todo="see docs/estate-file.md",
        ) from None


def csv_header(file: DataFile) -> tuple[tuple[str, ...], bool]:
    """Column names of a CSV file, and whether its first line is a header.

    A first line that does not look like names is data: it may hold a person, so the columns are then called
    `_c0`, `_c1`, … as Spark does.
    """
    with decompressed(file) as stream:
        # a declared encoding may lack a character for a byte further on: that is no matter of the header's
        strictness = "replace" if file.encoding else "strict"
        text = io.TextIOWrapper(stream, encoding=file.encoding or "utf-8-sig", errors=strictness, newline="")
        first = next(csv.reader(text), [])
    if first and len(set(first)) == len(first) and all(_NAME.match(name) for name in first):
        return tuple(first), True
    return tuple(f"_c{i}" for i in range(len(first))), False


@contextmanager
def decompressed(file: DataFile) -> Iterator[IO[bytes]]:
    """The file's content, decompressed."""
    import pyarrow as pa

    if file.codec in _HADOOP:  # Hadoop's own framing, which no library reads
        unpacked = unpack(file.path.name, memoryview(file.path.read_bytes()))
        yield io.BytesIO(unpacked[2] if unpacked else b"")
        return
    with pa.input_stream(str(file.path), compression=file.codec) as stream:
        yield stream


def _codec(files: tuple[DataFile, ...]) -> str | None:
    """The one codec of all files, in lower case; None when there is none or more than one."""
    codecs = {f.codec or _inner_codec(f) for f in files}
    return codecs.pop() if len(codecs) == 1 else None


def _parquet_codec(path: Path) -> str | None:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        metadata = file.metadata
        if not metadata.num_row_groups or not metadata.num_columns:
            return None
        try:
            # pyarrow ends the process when it is asked for the metadata of an encrypted column, and raises for its rows
            next(file.iter_batches(1, row_groups=[0], columns=[metadata.schema.column(0).path]), None)
        except OSError:
            return None
        return str(metadata.row_group(0).column(0).compression).lower()


def _inner_codec(file: DataFile) -> str | None:
    if file.format is Format.PARQUET:
        return _parquet_codec(file.path)
    if file.format is Format.ORC:
        from pyarrow import orc

        return str(orc.ORCFile(file.path).compression).lower()
    if file.format is Format.AVRO:
        import fastavro

        with file.path.open("rb") as stream:
            return str(fastavro.reader(stream).codec)
    return None


def _partition_columns(folder: Path, files: tuple[DataFile, ...]) -> tuple[Column, ...]:
    values: dict[str, list[str]] = {}
    for file in files:
        for name, value in partition_values(folder, file.path).items():
            values.setdefault(name, []).extend([] if value is None else [value])
    return tuple(Column(name=name, type=partition_type(found)) for name, found in values.items())
