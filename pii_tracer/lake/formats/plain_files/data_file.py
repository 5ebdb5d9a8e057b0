"""One data file of a folder without a table format: Parquet, ORC, Avro, CSV and JSON, plain or compressed."""

from __future__ import annotations

import codecs
import csv
import hashlib
import io
import re
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO
from urllib.parse import unquote

from pii_tracer.config.catalogs import TextEncoding
from pii_tracer.lake.formats.plain_files.json_types import Shape, line_count
from pii_tracer.lake.spark_types import arrow_type, avro_type, padded_columns, spark_columns
from pii_tracer.lake.stores.remote_path import RemoteFile
from pii_tracer.lake.stores.s3.s3_path import PART, S3Path
from pii_tracer.model.datasets import Column, Format
from pii_tracer.model.errors import EstateError
from pii_tracer.model.hive_text.layout import HEAD, FileText, codec_by_name
from pii_tracer.scan.decode.compression import unpack
from pii_tracer.scan.decode.text import as_single_bytes, as_text
from pii_tracer.scan.rows.text_records import UnclearLineError, checked

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
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
_ZSTD = b"\x28\xb5\x2f\xfd"
_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_BLOCK = 1 << 25
PARTITION = re.compile(r"^([^=]+)=(.*)$")
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
# a header names columns; digits, addresses and blanks are a first row of data, which must not become names
_NAME = re.compile(r"^[^\W\d][\w .:/()#-]{0,127}$")

AnyFile = Path | S3Path | RemoteFile


@dataclass(frozen=True)
class StoredFile:
    """One data file: where it is, and how it is encoded. `codec` is that of the whole file, None inside Parquet etc.

    encoding: of the text in CSV, where the estate file declares it; UTF-8 otherwise. text: how a file of a Hive table's
    text is read, whatever its name ends in.
    """

    path: AnyFile
    format: Format
    codec: str | None
    encoding: str | None = None
    text: FileText | None = None

    @property
    def source(self) -> Path | BinaryIO:
        """For readers that take either, and little of a large file: what lies elsewhere is fetched as it is read."""
        return self.path if isinstance(self.path, Path) else self.path.seekable()


@dataclass(frozen=True)
class DataFile(StoredFile):
    """One that lies on this machine."""

    path: Path


def data_file(path: Path) -> DataFile | None:
    """What kind of data file this is, by name, else by its first bytes; None when it is none that is known."""
    kind = _kind(path)
    return DataFile(path, *kind) if kind else None


def text_file(path: Path, text: FileText) -> DataFile:
    """A file of a table of text. Raises as `stored_text`."""
    return DataFile(path, Format.CSV, _text_codec(path), text=text)


def stored_text(path: S3Path | RemoteFile, text: FileText) -> StoredFile:
    """As `text_file`, of what lies in a store.

    Raises:
        EstateError: its codec is not read here, or it is no text.
        OSError: S3 refuses. StoreError: another store does.
    """
    return StoredFile(path, Format.CSV, _text_codec(path), text=text)


def _text_codec(path: AnyFile) -> str | None:
    try:
        return codec_by_name(path.name, _head(path, HEAD))
    except ValueError as error:
        raise EstateError(
            str(error), where=str(path), todo="let the job use a different codec, then plan again"
        ) from None


def stored_file(path: S3Path | RemoteFile) -> StoredFile | None:
    """As `data_file`, of what lies in a store. Raises `OSError` when S3 refuses, `StoreError` when others do."""
    kind = _kind(path)
    return StoredFile(path, *kind) if kind else None


def _begun(path: AnyFile) -> BinaryIO:
    """A file of which the beginning is read: what lies elsewhere is fetched as it is read."""
    return path.open("rb") if isinstance(path, Path) else path.seekable()


def _kind(path: AnyFile) -> tuple[Format, str | None] | None:
    suffixes = [s.lower() for s in path.suffixes]
    codec = _COMPRESSED.get(suffixes[-1]) if suffixes else None
    suffix = suffixes[-2] if codec and len(suffixes) > 1 else suffixes[-1] if suffixes else ""
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix], codec
    start = _head(path, 4)
    return next(((kind, None) for magic, kind in _MAGIC if start.startswith(magic)), None)


def _head(path: AnyFile, size: int) -> bytes:
    with _begun(path) as stream:
        return stream.read(size)


def parts_below(folder: AnyFile, path: AnyFile) -> tuple[str, ...]:
    """The names of the folders between a folder and what lies in it, and its own."""
    if isinstance(path, Path) and isinstance(folder, Path):
        return path.relative_to(folder).parts
    return tuple(str(path).removeprefix(f"{str(folder).rstrip('/')}/").split("/"))


def partition_values(folder: AnyFile, path: AnyFile) -> dict[str, str | None]:
    """`k=v` folders between a folder and a file, unescaped; None for Hive's default partition."""
    found: dict[str, str | None] = {}
    for part in parts_below(folder, path)[:-1]:
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


def spark_schema(footer: pq.FileMetaData) -> bytes | None:
    """The schema that Spark notes in files that it writes, as JSON."""
    return (footer.metadata or {}).get(_SPARK_SCHEMA)


def file_columns(file: StoredFile) -> tuple[tuple[Column, ...], int | None]:
    """Columns of one file, and its rows where the format counts them."""
    if file.format is Format.PARQUET:
        return _parquet(file.source)
    if file.format is Format.ORC:
        from pyarrow import orc

        opened = orc.ORCFile(file.source)
        return _arrow_columns(opened.schema), int(opened.nrows)
    if file.format is Format.AVRO:
        return tuple(Column(name=f["name"], type=avro_type(f["type"])) for f in _avro_fields(file)), None
    if file.text is not None:
        _refuse_unclear_lines(file, file.text)
        return tuple(Column(name=column.name, type=column.type) for column in file.text.columns), None
    if file.format is Format.CSV:
        if file.encoding is None:
            _refuse_other_encodings(file)
        return tuple(Column(name=name, type="string") for name in csv_header(file)[0]), None
    shape = Shape()
    shape_of(file, shape)
    return columns_of(shape), None


def shape_of(file: StoredFile, shape: Shape) -> tuple[str, ...]:
    """Put a file of JSON to what others are like; its columns."""
    with decompressed(file) as stream:
        if not stream.read(1):
            return ()
    mine = Shape()
    if (table := json_lines(file)) is not None:
        mine.add((field.name, field.type) for field in table.schema)
    else:
        with decompressed(file) as stream:
            mine.read(stream)
    shape.add(mine.types.items())
    shape.mixed |= mine.mixed
    shape.unlike |= mine.unlike
    return tuple(mine.types)


def json_lines(file: StoredFile) -> pa.Table | None:
    """The rows of a file of JSON as Arrow has them, where each line is an object and all have the same types.

    Arrow also takes several objects of a line, or objects over several lines, of which Spark reads the first alone.
    """
    import pyarrow as pa
    from pyarrow import json

    try:
        with decompressed(file) as stream:
            table = json.read_json(stream)
    except pa.ArrowInvalid:
        return None
    with decompressed(file) as stream:
        return table if line_count(stream) == table.num_rows else None


def columns_of(shape: Shape) -> tuple[Column, ...]:
    return tuple(Column(name=name, type=arrow_type(kind)) for name, kind in shape.types.items())


def _parquet(source: Path | BinaryIO) -> tuple[tuple[Column, ...], int]:
    import json

    import pyarrow.parquet as pq

    with pq.ParquetFile(source) as file:
        written = spark_schema(file.metadata)
        columns = spark_columns(json.loads(written)) if written else _arrow_columns(file.schema_arrow)
        return columns, int(file.metadata.num_rows)


def required(file: StoredFile) -> tuple[str, ...]:
    """Columns of a file that cannot hold NULL."""
    if file.format is Format.PARQUET:
        import pyarrow.parquet as pq

        return tuple(field.name for field in pq.read_schema(file.source) if not field.nullable)
    if file.format is Format.AVRO:
        fields = _avro_fields(file)
        return tuple(f["name"] for f in fields if not (isinstance(f["type"], list) and "null" in f["type"]))
    return ()


def _avro_fields(file: StoredFile) -> Any:
    import fastavro

    with _begun(file.path) as stream:
        schema: Any = fastavro.reader(stream).writer_schema
    return schema["fields"]


def padded(file: StoredFile) -> tuple[str, ...]:
    """Columns of CHAR(n), as far as the file tells: ORC files of Spark have no word of it."""
    if file.format is not Format.PARQUET:
        return ()
    import json

    import pyarrow.parquet as pq

    written = spark_schema(pq.read_metadata(file.source))
    return padded_columns(json.loads(written)) if written else ()


def _arrow_columns(schema: Any) -> tuple[Column, ...]:
    return tuple(Column(name=f.name, type=arrow_type(f.type)) for f in schema)


def _refuse_other_encodings(file: StoredFile) -> None:
    """Raise `EstateError` for CSV that is not UTF-8 from end to end: its text would be read as another one."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with decompressed(file) as stream:
            if (start := stream.read(2)) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                raise EstateError(
                    "a csv file is UTF-16, which no step writes",
                    where=str(file.path),
                    todo="let the job write the file as UTF-8, then plan again",
                )
            decoder.decode(start)
            while piece := stream.read(1 << 20):
                decoder.decode(piece)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise EstateError(
            "a csv file is not UTF-8: declare its folder as a table of the format csv with its `encoding`"
            f" ({' or '.join(TextEncoding)}), under a catalog of the type declared",
            where=str(file.path),
            todo="write the declaration as docs/estate-file.md shows",
        ) from None


def _refuse_unclear_lines(file: StoredFile, text: FileText) -> None:
    """Raise `EstateError` for a line that readers understand differently, and for bytes that the search of bytes does
    not read as text: no step writes them again, or nothing could verify it."""
    with decompressed(file) as stream:
        for lines in _blocks_of_lines(stream):
            if b"\0" in lines or (as_text(memoryview(lines)) is None and as_single_bytes(lines) is None):
                raise EstateError(
                    "a text file contains bytes that are not text",
                    where=str(file.path),
                    todo="let the job write the file without such bytes, then plan again",
                )
    try:
        with decompressed(file) as stream:
            checked(stream, text)
    except UnclearLineError as error:
        raise EstateError(
            f"a text file has {error}",
            where=str(file.path),
            todo="let the job write quotes around whole cells, and no line ends inside cells, then plan again",
        ) from None


def _blocks_of_lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Whole lines together, a longer line alone."""
    carried = b""
    while piece := stream.read(_BLOCK):
        lines, newline, rest = (carried + piece).rpartition(b"\n")
        if newline:
            yield lines + newline
        carried = rest
    yield carried


def csv_header(file: StoredFile) -> tuple[tuple[str, ...], bool]:
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
def decompressed(file: StoredFile) -> Iterator[IO[bytes]]:
    """The file's content, decompressed. Raises `EstateError` where steps do not read it."""
    import pyarrow as pa

    if file.codec == "zstd" and _head(file.path, 4) not in (b"", _ZSTD):
        what = "a file of zstd does not begin with a frame that has content"
        raise EstateError(what, where=str(file.path), todo="let the job rewrite the file, then plan again")
    if file.codec in _HADOOP:  # Hadoop's own framing, which no library reads
        with file.path.open("rb") as stream:
            unpacked = unpack(file.path.name, memoryview(stream.read()))
        yield io.BytesIO(unpacked[2] if unpacked else b"")
        return
    source = str(file.path) if isinstance(file.path, Path) else file.path.open("rb")
    with pa.input_stream(source, compression=file.codec) as stream:
        yield stream


def _parquet_codec(source: Path | BinaryIO) -> str | None:
    import pyarrow.parquet as pq

    # of the first column no more is fetched than one piece, which is enough for its first page's header
    with pq.ParquetFile(source, pre_buffer=False, buffer_size=PART) as file:
        metadata = file.metadata
        if not metadata.num_row_groups or not metadata.num_columns:
            return None
        try:
            # pyarrow ends the process when it is asked for the metadata of an encrypted column, and raises for its rows
            next(file.iter_batches(1, row_groups=[0], columns=[metadata.schema.column(0).path]), None)
        except OSError:
            return None
        return str(metadata.row_group(0).column(0).compression).lower()


def codec_of(file: StoredFile) -> str | None:
    """The codec of the whole file, else the one inside; in lower case."""
    if file.codec:
        return file.codec
    if file.format is Format.PARQUET:
        return _parquet_codec(file.source)
    if file.format is Format.ORC:
        from pyarrow import orc

        return str(orc.ORCFile(file.source).compression).lower()
    if file.format is Format.AVRO:
        import fastavro

        with _begun(file.path) as stream:
            return str(fastavro.reader(stream).codec)
    return None
