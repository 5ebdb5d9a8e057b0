"""Rows of bare folders, without Spark: whole files of Parquet, ORC, Avro, CSV or JSON."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.plain_files.data_file import (
    DataFile,
    StoredFile,
    csv_header,
    data_file,
    decompressed,
    json_lines,
    partition_values,
    text_file,
)
from pii_tracer.lake.formats.plain_files.differing_schemas import (
    as_table_has,
    fields_as_text,
    named_here,
    refuse_unlike,
    unreadable,
)
from pii_tracer.lake.formats.plain_files.json_types import Shape
from pii_tracer.lake.formats.plain_files.json_types import rows as json_rows
from pii_tracer.lake.formats.plain_files.rewritten_files import is_hidden_folder
from pii_tracer.lake.formats.plain_files.store_folder import data_files_of, objects_below
from pii_tracer.lake.inventory import ENCODING, TableState
from pii_tracer.lake.rows.row_batches import Batches, parquet_batches, with_columns
from pii_tracer.lake.stores.any_place import AnyPlace
from pii_tracer.lake.stores.hdfs.hdfs_path import HdfsPath
from pii_tracer.lake.stores.object_places.object_path import ObjectPath
from pii_tracer.lake.stores.remote_path import RemoteFile
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import EstateError
from pii_tracer.model.hive_text.layout import FileText, TextTable, text_of
from pii_tracer.model.locations import is_remote
from pii_tracer.scan.rows.text_records import UnclearLineError, rows_of

_BUFFER = 1 << 20
_T = TypeVar("_T")

if TYPE_CHECKING:
    import pyarrow as pa

    _Rows = TypeVar("_Rows", pa.Table, pa.RecordBatch)


def folder_files(state: TableState, paths: EstatePaths) -> Sequence[StoredFile]:
    """Data files of a bare folder as engines read it: hidden ones and tables of their own are left out.

    Raises:
        EstateError, OSError: it lies in a store, which refuses.
    """
    place, text = paths.place(state.location) if is_remote(state.location) else None, text_of(state.properties)
    found: Iterable[StoredFile]
    if isinstance(place, S3Path):
        found = objects_below(place, place.walk(), text)[0]
    elif isinstance(place, RemoteFile):
        found = data_files_of(place, ((place.placed(name), size) for name, size, _ in place.walk()), text)[0]
    else:
        found = _files_here(state) if text is None else _text_files(state, text)
    mine = (replace(f, encoding=state.properties.get(ENCODING)) for f in found if f.format is state.format)
    return sorted(mine, key=lambda f: str(f.path))


def _text_files(state: TableState, table: TextTable) -> list[DataFile]:
    """Files of a table of text, by their folders: none has a name that says what it is."""
    folder = Path(state.location)
    found = []
    for current, _, names in os.walk(folder):
        here = Path(current)
        text = table.of(here.relative_to(folder))
        for path in (here / name for name in names) if text else ():
            if text and not path.name.startswith((".", "_")) and path.is_file() and path.stat().st_size:
                found.append(text_file(path, text))
    return sorted(found, key=lambda f: str(f.path))


def _files_here(state: TableState) -> list[DataFile]:
    found = []
    for current, folders, names in os.walk(state.location):
        here = Path(current)
        deeper = here != Path(state.location)
        folders[:] = sorted(n for n in folders if not is_hidden_folder(n) and "=" in n)
        if deeper and "=" not in here.name:
            continue
        for name in sorted(names):
            path = here / name
            if name.startswith((".", "_")) or path.is_dir() or not path.stat().st_size:
                continue  # without a byte: what a writer leaves that dies at once
            if file := data_file(path):
                found.append(file)
    return found


def folder_of(state: TableState, file: StoredFile) -> AnyPlace:
    """The folder of a table of such files."""
    path = file.path
    return path.placed(state.location) if isinstance(path, S3Path | HdfsPath | ObjectPath) else Path(state.location)


def current_rows(state: TableState, columns: Sequence[str], paths: EstatePaths) -> pa.Table:
    """Some columns of all files.

    Raises:
        EstateError: a file cannot be read, or two of them have a column in types that do not go together; it is named.
    """
    files = folder_files(state, paths)
    if state.format is not Format.JSON:
        return _tables(state, files, columns, rows_of_file)
    with suppress(EstateError):
        return _tables(state, files, columns, rows_of_file)
    shape = Shape()  # a column has another type in another file
    for file in files:
        _read(file, partial(_shape, file, shape))
    return _tables(state, files, columns, partial(_json_rows, shape))


def _shape(file: StoredFile, shape: Shape) -> None:
    with decompressed(file) as stream:
        shape.read(stream)


def _json_rows(shape: Shape, file: StoredFile, columns: Sequence[str]) -> pa.Table:
    with decompressed(file) as stream:
        return json_rows(stream, columns, shape.types)


def _read(file: StoredFile, read: Callable[[], _T]) -> _T:
    """What reading a file gives; a parser's error as ours, which names the file."""
    try:
        return read()
    except EstateError:
        raise
    except Exception as error:
        raise unreadable(file, error) from None


def _tables(
    state: TableState,
    files: Sequence[StoredFile],
    columns: Sequence[str],
    read: Callable[[StoredFile, Sequence[str]], pa.Table],
) -> pa.Table:
    import pyarrow as pa

    kinds = {column.name: column.type for column in state.columns}
    inside = {} if state.format is Format.JSON else kinds  # lines of JSON are text as they are written
    tables = {}
    for file in files:
        partition = partition_values(folder_of(state, file), file.path)
        stored = [c for c in columns if c not in partition]
        table = _read(file, partial(_read_as_table, partial(read, file, stored), stored, kinds, inside))
        for name in columns:
            if name not in table.schema.names:  # a partition column, or one that came with later files
                value = partition.get(name)
                kind = pa.null() if value is None else pa.string()
                table = table.append_column(name, pa.array([value] * table.num_rows, kind))
        tables[file] = table.select(columns)
    if not tables:
        return pa.table({name: pa.array([], pa.string()) for name in columns})
    refuse_unlike(tables)
    return pa.concat_tables(tables.values(), promote_options="permissive")


def _read_as_table(
    read: Callable[[], pa.Table], columns: Sequence[str], kinds: Mapping[str, str], inside: Mapping[str, str]
) -> pa.Table:
    table = _as_table(read(), columns, kinds)
    for place, name in enumerate(table.schema.names):
        table = table.set_column(place, name, fields_as_text(table.column(place), inside.get(name, "")))
    return table


def _as_table(rows: _Rows, columns: Sequence[str], kinds: Mapping[str, str]) -> _Rows:
    """Rows of a file with the table's names and ways of storing, in all its columns that are asked for."""
    here = named_here(rows.schema.names, columns)
    renamed = {file_has: name for name, file_has in here.items()}
    rows = rows.rename_columns([renamed.get(name, name) for name in rows.schema.names])
    for name in here:
        place = rows.schema.get_field_index(name)
        cells = as_table_has(rows.column(place), kinds.get(name, ""))
        if cells.type != rows.schema.field(place).type:
            rows = rows.set_column(place, name, cells)
    return rows


def rows_of_file(file: StoredFile, columns: Sequence[str]) -> pa.Table:
    """The rows of one file of a bare folder, whole; only Parquet is read by columns, those of these that it has."""
    import pyarrow as pa

    if file.format is Format.PARQUET:
        import pyarrow.parquet as pq

        with pq.ParquetFile(file.source) as opened:
            table = opened.read(columns=list(named_here(opened.schema_arrow.names, columns).values()))
            # a table without columns has lost how many rows it had
            return table if table.num_columns else pa.table({"": pa.nulls(opened.metadata.num_rows)})
    if file.format is Format.ORC:
        from pyarrow import orc

        return orc.ORCFile(file.source).read()
    if file.format is Format.AVRO:
        import fastavro

        with file.path.open("rb") as stream:
            return pa.Table.from_pylist(list(fastavro.reader(stream)))
    if file.text is not None:
        return _text(file, file.text, columns)
    if file.format is Format.CSV:
        return _csv(file)
    return _json(file, columns)


def _json(file: StoredFile, columns: Sequence[str]) -> pa.Table:
    """By Arrow, where it can."""
    if (table := json_lines(file)) is not None:
        return table
    shape = Shape()
    with decompressed(file) as stream:
        shape.read(stream)
    with decompressed(file) as stream:
        return json_rows(stream, columns, shape.types)


def _text(file: StoredFile, text: FileText, columns: Sequence[str]) -> pa.Table:
    """Some columns of a table of text, as its reader takes them."""
    import pyarrow as pa

    here = list(named_here([column.name for column in text.columns], columns).values())
    with decompressed(file) as stream:
        try:
            rows = list(rows_of(stream, text, here))
        except UnclearLineError as error:
            raise EstateError(
                f"a text file has {error}" if "quote" in str(error) else f"of a text file, {error}",
                where=str(file.path),
                todo="let the job write the file without such lines, then plan again",
            ) from None
    if not here:
        return pa.table({"": pa.nulls(len(rows))})
    cells = zip(*rows, strict=True) if rows else [()] * len(here)
    return pa.table({name: pa.array(list(mine), pa.string()) for name, mine in zip(here, cells, strict=True)})


def _csv(file: StoredFile) -> pa.Table:
    """All columns as text, as Spark reads CSV without a schema; empty fields are null."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    names, header = csv_header(file)
    _refuse_stray_quotes(file)
    with decompressed(file) as stream:
        if not names:
            if stream.read().strip():
                raise EstateError(
                    "a csv file begins with an empty line, so its columns are unknown",
                    where=str(file.path),
                    todo="let the job write the file without that line, then plan again",
                )
            return pa.table({"": pa.nulls(0)})
        return arrow_csv.read_csv(
            stream,
            read_options=arrow_csv.ReadOptions(
                column_names=list(names), skip_rows=1 if header else 0, encoding=file.encoding or "utf8"
            ),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), null_values=[""], strings_can_be_null=True
            ),
        )


def _refuse_stray_quotes(file: StoredFile) -> None:
    """Raises EstateError: text follows a closing quote, or records end in several ways. Readers differ in such a file,
    and no step writes it again."""
    for escape in (None, "\\"):  # RFC 4180, and Spark
        with suppress(csv.Error), decompressed(file) as stream:
            text = io.TextIOWrapper(stream, encoding=file.encoding or "utf-8-sig", errors="replace", newline="")
            ends = _Ends(text)
            for _ in csv.reader(ends, strict=True, escapechar=escape):
                ends.take()
            ends.refuse_unclear(file)
            return
    raise EstateError(
        "a csv file has a quote that readers understand differently, such as a quote followed by text",
        where=str(file.path),
        todo="let the job write quotes around whole fields, then plan again",
    )


@dataclass
class _Ends:
    """Lines of a file, and how its records end. With `multiLine`, Spark takes the first end of a line, also one in
    quotes, for that of all records, if it stands among the first letters
    (`LineSeparatorDetector` of univocity-parsers 2.9.1)."""

    lines: Iterable[str]
    _kinds: set[str] = field(default_factory=set)
    _last: str = ""
    _far: bool = False

    def __iter__(self) -> Iterator[str]:
        for number, line in enumerate(self.lines):
            self._last = line[len(line.rstrip("\r\n")) :]
            if number == 0:
                self.take()
                self._far = self._last != "\n" and len(line.encode("utf-8", "replace")) > _BUFFER
            yield line

    def take(self) -> None:
        """A record ends with the last line."""
        self._kinds.add(self._last)

    def refuse_unclear(self, file: StoredFile) -> None:
        """Raises EstateError."""
        if len(self._kinds - {""}) > 1:
            what = "a csv file has different line endings"
        elif self._far and self._kinds != {""}:
            what = "the first line of a csv file is too long, so Spark cannot detect the line ending"
        else:
            return
        raise EstateError(what, where=str(file.path), todo="let the job write all line endings as \\n, then plan again")


def file_rows(state: TableState, columns: Sequence[str], files: Collection[AnyPlace], paths: EstatePaths) -> Batches:
    """The rows of some files."""
    kinds = {column.name: column.type for column in state.columns}
    for file in folder_files(state, paths):
        if file.path in files:
            partition = partition_values(folder_of(state, file), file.path)
            batches = _read(file, partial(_of_file, file, columns))
            while (batch := _read(file, partial(next, batches, None))) is not None:
                mine = _read(file, partial(_as_table, batch, columns, kinds))
                yield with_columns(mine, columns, partition)


def _of_file(file: StoredFile, columns: Sequence[str]) -> Batches:
    if file.format is not Format.PARQUET:
        return iter(rows_of_file(file, columns).to_batches())
    import pyarrow.parquet as pq

    with file.path.open("rb") as stream:
        names = pq.read_schema(stream).names
    return parquet_batches(file.path, list(named_here(names, columns).values()))


def footer_texts(state: TableState, paths: EstatePaths) -> list[str]:
    """`key_value_metadata` of Parquet footers (https://parquet.apache.org/docs/file-format/metadata/).

    Files that cannot be read tell nothing here.
    """
    return [told for file in folder_files(state, paths) for told in _key_values(file)]


def _key_values(file: StoredFile) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        told = pq.read_metadata(file.source).metadata or {}
    except (OSError, ValueError, pa.ArrowException):
        return []
    return [text.decode("utf-8", "replace") for pair in told.items() for text in pair]
