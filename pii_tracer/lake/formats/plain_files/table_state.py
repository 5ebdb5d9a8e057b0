"""Folders of data files without a table format, each as one table."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pii_tracer.common.parallel_map import several
from pii_tracer.common.plurals import counted
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.plain_files.data_file import (
    AnyFile,
    DataFile,
    StoredFile,
    codec_of,
    columns_of,
    file_columns,
    file_sha256,
    padded,
    partition_values,
    required,
    shape_of,
    spark_schema,
)
from pii_tracer.lake.formats.plain_files.differing_schemas import (
    alike_but_for_case,
    kind_of_both,
    spelled,
    unreadable,
    ways_apart,
    ways_lacking,
)
from pii_tracer.lake.formats.plain_files.insert_column_order import table_order
from pii_tracer.lake.formats.plain_files.json_types import Shape
from pii_tracer.lake.formats.plain_files.table_footers import written_for
from pii_tracer.lake.inventory import ENCODING, NOT_NULL, TableState
from pii_tracer.lake.read_result import Found, gap
from pii_tracer.lake.spark_types import partition_type
from pii_tracer.lake.streaming_checkpoints import SINK_LOG
from pii_tracer.model.datasets import Column, Format
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.hive_text.layout import TextTable, text_properties

_Columns = tuple[tuple[Column, ...], int | None]

SUMMARY = "_metadata"
"""A file that repeats the footers of all files of a Parquet folder, with their smallest and largest values."""
TABLE_WRITERS = "written by"
"""The property of a bare folder in which files are that a table format wrote: which formats."""


def folder_digest(folder: Path, paths: Iterable[Path], text: TextTable | None = None) -> str:
    """`sha256:…` over the sorted (relative path, size, SHA-256) of files: changes when any of them does, or the way
    that a catalog says they are read."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        name = path.relative_to(folder).as_posix()
        digest.update(f"{name}\0{path.stat().st_size}\0{file_sha256(path)}\n".encode("utf-8", "surrogateescape"))
    if text is not None:
        digest.update(text.model_dump_json().encode())
    return "sha256:" + digest.hexdigest()


def folder_state(folder: Path, files: tuple[DataFile, ...], paths: EstatePaths) -> Found:
    """State of a bare folder that holds these data files (at least one).

    Files of more than one format are a gap: the state then speaks of the declared one, or of the most frequent one.
    Files without a byte, as a writer leaves them that dies at once, are passed over, as readers do.

    Raises:
        EstateError: a file cannot be read; it names the file.
    """
    written = tuple(f for f in files if f.path.stat().st_size)
    formats = Counter(f.format for f in written or files)
    declared = paths.declared.get(folder.resolve())
    kind = min(formats, key=lambda f: (declared is None or f != declared.format, -formats[f], f.value))
    text = paths.text_table_at(folder)
    if any((file.text is None) is not (text is None) for file in files):
        raise EstateError(
            "files of a text table are in the same folder as files of a different table",
            where=str(folder),
            todo="move one of the two tables into a separate folder, then plan again",
        )
    encoding = paths.encoding_at(folder) if kind is Format.CSV and not text else None
    read = (replace(f, encoding=encoding) for f in written if f.format is kind)
    mine = tuple(sorted(read, key=lambda f: str(f.path)))
    if not mine and kind not in (Format.CSV, Format.JSON):
        raise EstateError(
            f"none of the {kind} files in the folder has any bytes",
            where=str(min(f.path for f in files)),
            todo="remove these files, or let the job rewrite them, then plan again",
        )
    dataset = paths.dataset_of(folder)
    told = told_by(folder, mine) if mine else Told({"columns": ()}, None)
    state = TableState(
        dataset=dataset,
        table=paths.table_at(folder),
        location=str(folder),
        format=kind,
        snapshot=folder_digest(folder, (f.path for f in files), text),
        bytes=sum(f.path.stat().st_size for f in mine),
        properties=({SINK_LOG: "streaming file sink"} if (folder / SINK_LOG).is_dir() else {})
        | ({ENCODING: encoding} if encoding else {})
        | text_properties(text)
        | told.properties
        | ({SUMMARY: "Parquet summary"} if _summarised(folder, mine) else {}),
        **told.fields,
    )
    gaps = []
    others = sorted(str(f.path) for f in written if f.format is not kind)
    if others:
        reason = (
            f"the folder contains files of {counted(len(formats), 'format')} ({', '.join(sorted(formats))}), so it is "
            "not one table"
        )
        gaps.append(gap(dataset, GapKind.MIXED_FORMATS, reason, others[0], others))
    if told.apart:
        gaps.append(gap(dataset, GapKind.MIXED_COLUMNS, told.apart, str(mine[0].path), told.strays))
    return Found(state, tuple(gaps))


@dataclass(frozen=True)
class Told:
    """What the files of a folder tell of it. fields: of `TableState`; apart: why they are not one table, if so.

    strays: the files then that have no column in common with most others. writers: the titles of table formats whose
    writers made files of it.
    """

    fields: Mapping[str, Any]
    apart: str | None
    strays: tuple[str, ...] = ()
    writers: tuple[str, ...] = ()

    @property
    def properties(self) -> dict[str, str]:
        """Of `TableState`."""
        return {TABLE_WRITERS: ", ".join(self.writers)} if self.writers else {}


def told_by(folder: AnyFile, files: Sequence[StoredFile]) -> Told:
    """What data files of one format tell, here, in S3 or in HDFS.

    Raises:
        EstateError: a file cannot be read; it names the file.
        OSError: S3 refuses. StoreError: HDFS does.
    """
    partitions = _partition_columns(folder, files)
    names = {c.name for c in partitions}
    columns, rows, found, ordered, shape = _columns_and_rows(files)
    named = {file: frozenset(column.name for column in mine) for file, mine in found.items()}
    common, strays = _in_common(named)
    codecs = set(several(codec_of, files))
    mine = {c.name.lower(): c.name for c in columns}
    even = not common or files[0].format is Format.JSON
    fields = {
        "columns": (*(c for c in columns if c.name not in names), *partitions),
        "partition_columns": tuple(c.name for c in partitions),
        "codec": codecs.pop() if len(codecs) == 1 else None,
        "rows": rows,
        "files": len(files),
        "uneven": ()
        if even
        else tuple(
            sorted({(c.name,) for c in columns if c.name not in common} | ways_lacking(columns, found.values()))
        ),
        "loose": not ordered,
        "mixed": tuple(sorted(shape.mixed)),
        "unlike": tuple(sorted({*shape.unlike, *alike_but_for_case((*columns, *partitions))})),
        "padded": tuple(sorted({mine.get(n.lower(), n) for names in several(padded, files) for n in names})),
        "fixed": {mine.get(n.lower(), n): NOT_NULL for names in several(required, files) for n in names},
    }
    writers = {title for title in several(written_for, files) if title}
    return Told(fields, _APART if strays else None, strays, tuple(sorted(writers)))


_APART = "files of this folder have no common column, so the folder is not one table, and no step can rewrite it"


def _summarised(folder: Path, files: tuple[DataFile, ...]) -> bool:
    """Whether a Parquet folder, or a partition of it, has a summary."""
    if not files or files[0].format is not Format.PARQUET:
        return False
    places = {place for file in files for place in file.path.parents if place.is_relative_to(folder)}
    return any((place / SUMMARY).is_file() for place in places)


def _in_common(named: Mapping[StoredFile, frozenset[str]]) -> tuple[frozenset[str], tuple[str, ...]]:
    """The columns that every file has, and the files that have none of those of the others: what most files have
    counts first, so that one more of these changes nothing. Files without any column say nothing."""
    common: frozenset[str] = frozenset()
    alike = Counter(names for names in named.values() if names)
    apart: set[frozenset[str]] = set()
    for names in sorted(alike, key=lambda one: (-alike[one], sorted(one))):
        if common and not common & names:
            apart.add(names)
        else:
            common = common & names if common else names
    strays = sorted(str(file.path) for file, names in named.items() if names in apart)
    return (frozenset() if strays else common), tuple(strays)


def _columns_and_rows(
    files: Sequence[StoredFile],
) -> tuple[tuple[Column, ...], int | None, dict[StoredFile, tuple[Column, ...]], bool, Shape]:
    """Columns of all files, their rows where the format counts them, the columns of each, whether the files tell
    the table's order (where they do not, columns stand as they appear), and in what files, or lines of JSON, differ.

    Files without any column (empty ones) say nothing of the order.
    """
    columns: dict[str, Column] = {}
    orders: list[tuple[StoredFile, tuple[str, ...]]] = []
    rows: int | None = 0
    mine: dict[StoredFile, tuple[Column, ...]] = {}
    shape = Shape()
    # of what lines of JSON are alike, all files tell together
    told: Iterable[_Columns] = (
        map(partial(_named, partial(_of_shape, shape=shape)), files)
        if files[0].format is Format.JSON
        else several(partial(_named, file_columns), files)
    )
    first: dict[str, str] = {}
    for file, (read, count) in zip(files, told, strict=True):
        found = read if files[0].format is Format.JSON else _spelled(read, first)
        for column in found:
            known = columns.setdefault(column.name, column)
            if files[0].format is not Format.JSON:
                shape.unlike |= {*ways_apart((column.name,), known.type, column.type)}
            columns[column.name] = known.model_copy(update={"type": kind_of_both(known.type, column.type)})
        if found:
            orders.append((file, tuple(column.name for column in found)))
        mine[file] = found
        rows = None if rows is None or count is None else rows + count
    # a record of JSON lacks what is NULL, and readers sort what they infer
    order = None if files[0].format is Format.JSON else _order(orders)
    if order is not None:
        found_all = tuple(columns[name] for name in order)
    else:
        found_all = columns_of(shape) or tuple(columns.values())
    return found_all, rows, mine, order is not None, shape


def _spelled(columns: tuple[Column, ...], first: dict[str, str]) -> tuple[Column, ...]:
    names = spelled([column.name for column in columns], first)
    return tuple(Column(name=name, type=column.type) for name, column in zip(names, columns, strict=True))


def _of_shape(file: StoredFile, shape: Shape) -> _Columns:
    there = frozenset(shape_of(file, shape))
    return tuple(c for c in columns_of(shape) if c.name in there), None


def _named(read: Callable[[StoredFile], _Columns], file: StoredFile) -> _Columns:
    """What a file tells; where it cannot be read, its name."""
    try:
        return read(file)
    except EstateError:
        raise
    except Exception as error:  # every format's parser has errors of its own
        raise unreadable(file, error) from None


def _order(orders: Sequence[tuple[StoredFile, tuple[str, ...]]]) -> tuple[str, ...] | None:
    return table_order([order for _, order in orders], lambda number: _by_spark(orders[number][0]))


def _by_spark(file: StoredFile) -> bool:
    if file.format is not Format.PARQUET:
        return False
    import pyarrow.parquet as pq

    return spark_schema(pq.read_metadata(file.source)) is not None


def _partition_columns(folder: AnyFile, files: Sequence[StoredFile]) -> tuple[Column, ...]:
    values: dict[str, list[str]] = {}
    for file in files:
        for name, value in partition_values(folder, file.path).items():
            values.setdefault(name, []).extend([] if value is None else [value])
    return tuple(Column(name=name, type=partition_type(found)) for name, found in values.items())
