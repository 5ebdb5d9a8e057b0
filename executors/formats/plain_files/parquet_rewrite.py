"""A Parquet file without a person's rows, row group by row group: schema, codecs, dictionaries and metadata are kept.

Where a hold keeps columns the rows stay, and all else in them becomes NULL (`mask`).

Memory holds one row group and its copy. What is written is read back and compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from executors.formats.plain_files.arrow_match import (
    BY_HAND,
    NOTHING,
    Keys,
    Nobodys,
    RowsError,
    present_terms,
    resolve,
)
from executors.formats.plain_files.parquet_dictionaries import Holds, decoded, fresh_dictionaries, holds_nothing
from executors.formats.plain_files.parquet_stale_values import StaleSearch, compared_leaves, stand_in
from executors.formats.plain_files.row_masking import (
    holding_more,
    in_lists,
    places,
    refuse_required,
    rows_of,
    spared,
)
from pii_tracer.lake.spark_types import with_leaves, without_views
from pii_tracer.model.datasets import Match, MatchTerm
from pii_tracer.model.plan import Mask

Opened = Callable[..., pq.ParquetFile]
"""Opens the file, with the reader's options by name."""

ENCRYPTED = "it has encrypted columns, which cannot be written back unchanged"
"""Of files for which `survey` must not be called: where a footer is plain, Arrow ends the process at such a column."""

_INSTANTS = {"coerce_int96_timestamp_unit": "us"}
_SCHEMA = b"ARROW:schema"
_WHOLE = re.compile(r"0|-?[1-9]\d{0,38}")


@dataclass(frozen=True)
class Seen:
    """Rows before and those that stay as they are, labels of match terms whose column is not there.

    stale: no row is the person's, but a dictionary or a statistic still holds a value.
    """

    before: int
    after: int
    missing: tuple[str, ...]
    stale: bool

    @property
    def changes(self) -> bool:
        """Whether the file has to be written again."""
        return self.after != self.before or self.stale


def survey(
    opened: Opened,
    match: Match,
    keys: Keys,
    strong: frozenset[str],
    mask: Mask | None = None,
    holds: Holds = holds_nothing,
    nobodys: Nobodys = NOTHING,
) -> Seen:
    """Count the rows that stay as they are. strong: values that stand for the person wherever they are found.

    mask: what becomes NULL in the persons' rows; they go without it. holds: whether a text has any value of theirs in
    it, also one that rows are not found by; asked of dictionary entries that no row uses. nobodys: as of `StaleSearch`.

    Raises:
        RowsError: no column of the match exists, a value cannot be compared, a column cannot become NULL, or a value
            stands in what a rewrite keeps.
    """
    with opened(**_INSTANTS) as source:
        _refuse_named(source, strong)
        terms, missing = present_terms(source.schema_arrow.names, match)
        before = int(source.metadata.num_rows)
        changed, search = _found(opened, source, terms, keys, strong, mask, holds, nobodys)
        rows = sum(changed.values())
        return Seen(before, before - rows, missing, not rows and (search.in_writer(source) or search.anywhere(source)))


def changed_groups(
    opened: Opened, match: Match, keys: Keys, strong: frozenset[str], mask: Mask | None, holds: Holds, nobodys: Nobodys
) -> tuple[frozenset[int], StaleSearch]:
    """Numbers of row groups of which a row goes or changes, and the search for what else the others may hold.

    Raises:
        RowsError: as `survey`.
    """
    with opened(**_INSTANTS) as source:
        terms, _ = present_terms(source.schema_arrow.names, match)
        changed, search = _found(opened, source, terms, keys, strong, mask, holds, nobodys)
        return frozenset(changed), search


def _found(
    opened: Opened,
    source: pq.ParquetFile,
    terms: tuple[MatchTerm, ...],
    keys: Keys,
    strong: frozenset[str],
    mask: Mask | None,
    holds: Holds,
    nobodys: Nobodys,
) -> tuple[dict[int, int], StaleSearch]:
    """Rows that go or change, by row group, and how stale values are searched."""
    changed: dict[int, int] = {}
    persons = 0
    for index in range(source.num_row_groups):
        if not _may_hold(source, index, terms, keys):
            continue
        # the columns of the match are enough to tell whose rows there are
        mine = rows_of(source.read_row_group(index, columns=_columns(source, terms)), terms, keys, mask)
        persons += mine.true_count
        if rows := mine.true_count if mask is None else _holding_more(source, index, mine, mask, terms):
            changed[index] = rows
    # beside rows that stay, what is held may stand in the file's bounds and dictionaries, too; and where only a
    # column goes, the person may have rows of her own in the file, which go after it
    lists = tuple(term.column for term in terms if term.within is not None)
    within = (*mask.columns, *lists) if mask and (persons or not mask.held) else None
    return changed, StaleSearch(opened, strong, compared_leaves(source, terms), within, holds, nobodys)


def write(
    opened: Opened,
    sink: IO[bytes],
    match: Match,
    keys: Keys,
    mask: Mask | None = None,
    groups: Collection[int] | None = None,
) -> tuple[int, ...]:
    """Write the kept rows, and the persons' by `mask`; the sink ends where the new file ends.

    groups: numbers of the row groups that are taken, None for all. Gives those of which anything was written.

    Raises:
        RowsError: this Parquet schema cannot be written again as it is (legacy lists, mixed timestamps).
    """
    with opened(**_INSTANTS) as source:
        terms, _ = present_terms(source.schema_arrow.names, match)
        for compliant in (True, False):
            sink.seek(0)
            sink.truncate()
            options = _options(source, compliant) | _placed(source, mask)
            with pq.ParquetWriter(pa.PythonFile(_Unclosed(sink), "w"), source.schema_arrow, **options) as writer:
                made = []
                for index in range(source.num_row_groups) if groups is None else sorted(groups):
                    table = _kept(source, index, terms, keys, mask)
                    if table.num_rows:
                        made.append(index)
                        writer.write_table(fresh_dictionaries(table), row_group_size=table.num_rows)
                # without Arrow's own schema entry the writer leaves all the others out, too
                if not options["store_schema"]:
                    writer.add_key_value_metadata(_kv(source))
            sink.flush()
            sink.seek(0)
            with pq.ParquetFile(pa.PythonFile(_Unclosed(sink), "r")) as written:
                if _layout(written) == _layout(source):
                    sink.seek(0, 2)
                    return tuple(made)
    raise RowsError("the object's Parquet schema cannot be written back exactly", todo=BY_HAND)


class _Unclosed:
    """A stream that Arrow may use and not close."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.closed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def close(self) -> None:
        """Left to the owner."""


def compare(
    old: Opened,
    new: Opened,
    match: Match,
    keys: Keys,
    mask: Mask | None = None,
    copied: Collection[int] = (),
) -> None:
    """Read back: the same rows in the same order, and the same key-value metadata.

    copied: numbers of row groups that were copied byte for byte: their rows are not read, only counted.

    Raises:
        RowsError: something differs.
    """
    with old(**_INSTANTS) as source, new(**_INSTANTS) as written:
        if _kv(written) != _kv(source):
            raise RowsError("the key-value metadata of the rewritten object differs from the original", todo=BY_HAND)
        terms, _ = present_terms(source.schema_arrow.names, match)
        group = 0
        for index in range(source.num_row_groups):
            if index in copied:
                group += 1
                continue
            table = _kept(source, index, terms, keys, mask)
            if not table.num_rows:
                continue
            again = written.read_row_group(group) if group < written.num_row_groups else None
            group += 1
            if again is None or not _alike(again, table):
                raise RowsError("the rewritten object does not contain all rows that must be kept", todo=BY_HAND)
        if group != written.num_row_groups:
            raise RowsError("the number of rows in the rewritten object is wrong", todo=BY_HAND)


def _alike(one: pa.Table, other: pa.Table) -> bool:
    """Whether two tables hold the same, bit for bit: NaN is not equal to itself."""
    if one.column_names != other.column_names or one.num_rows != other.num_rows:
        return False
    for mine, theirs in zip(one.columns, other.columns, strict=True):
        if not mine.equals(theirs) and not _bits(mine).equals(_bits(theirs)):
            return False
    return True


def _bits(column: pa.ChunkedArray) -> pa.Array:
    """A column without dictionaries, with integers in place of floating-point numbers."""
    array = decoded(column).combine_chunks()
    return array.view(with_leaves(array.type, _without_float))


def _without_float(leaf: pa.DataType) -> pa.DataType:
    whole = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
    return whole[leaf.bit_width] if pa.types.is_floating(leaf) else leaf


def _columns(source: pq.ParquetFile, terms: tuple[MatchTerm, ...]) -> list[str]:
    names = source.schema_arrow.names
    positions = {resolve(names, name) for term in terms for name in term.columns}
    return [names[position] for position in sorted(p for p in positions if p is not None)]


def _may_hold(source: pq.ParquetFile, group: int, terms: tuple[MatchTerm, ...], keys: Keys) -> bool:
    """Whether a row group may hold a key: not when all terms are whole numbers whose bounds leave every key out.

    Bounds of text are no help: old writers ordered it in other ways (PARQUET-251, PARQUET-686).
    """
    meta, schema = source.metadata.row_group(group), source.schema
    places = {schema.column(index).path: index for index in range(len(schema))}
    for term in terms:
        if term.beside:
            return True
        position = resolve(list(places), term.column)
        # a dot in a name may as well be a field's
        plain_name = position is not None and not term.access and "." not in term.column
        index = list(places.values())[position] if position is not None and plain_name else None
        if index is None or schema.column(index).physical_type not in ("INT32", "INT64"):
            return True
        column, kind = meta.column(index), schema.column(index).logical_type
        plain = kind.type == "NONE" or (kind.type == "INT" and "isSigned=true" in str(kind))
        if not plain or not column.is_stats_set or not column.statistics.has_min_max:
            return True
        low, high = column.statistics.min, column.statistics.max
        if any(low <= int(key) <= high for key in keys[term.key_set] if _WHOLE.fullmatch(key)):
            return True
    return False


def _kept(source: pq.ParquetFile, group: int, terms: tuple[MatchTerm, ...], keys: Keys, mask: Mask | None) -> pa.Table:
    """What is left of a row group."""
    table = source.read_row_group(group)
    mine = rows_of(table, terms, keys, mask)
    whole = _without_views(table)
    kept = whole.filter(pc.invert(mine)) if mask is None else spared(whole, mine, mask, terms, keys)
    return kept if whole is table else kept.cast(table.schema)


def _without_views(table: pa.Table) -> pa.Table:
    """The table with text end to end: of views, which a file's Arrow schema may ask for, Arrow takes no rows out."""
    fields = [field.with_type(without_views(field.type)) for field in table.schema]
    plain = pa.schema(fields, table.schema.metadata)
    return table if plain == table.schema else table.cast(plain)


def _holding_more(source: pq.ParquetFile, group: int, mine: pa.Array, mask: Mask, terms: tuple[MatchTerm, ...]) -> int:
    """The persons' rows of a row group in which anything has a value that becomes NULL, or goes from a list or map."""
    if not mine.true_count:
        return 0
    schema = source.schema_arrow
    positions = places(schema.names, mask)
    refuse_required(schema, positions)
    if in_lists(terms):
        return int(mine.true_count)
    return holding_more(source.read_row_group(group, columns=[schema.names[p] for p in positions]), mine)


def _layout(file: pq.ParquetFile) -> list[str]:
    """The schema as Parquet prints it, types, repetition and field ids included, but for the root's name.

    Spark calls the root `spark_schema`, Arrow `schema`; readers take no notice of it.
    """
    return str(file.schema).splitlines()[2:]


def _options(source: pq.ParquetFile, compliant: bool) -> dict[str, Any]:
    metadata = source.metadata
    columns = [metadata.row_group(0).column(i) for i in range(metadata.num_columns)] if metadata.num_row_groups else []
    codec = {column.path_in_schema: column.compression for column in columns}
    dictionary = [c.path_in_schema for c in columns if any("DICTIONARY" in encoding for encoding in c.encodings)]
    options: dict[str, Any] = {
        "version": metadata.format_version,
        "compression": {path: "NONE" if name == "UNCOMPRESSED" else name for path, name in codec.items()} or "NONE",
        "use_dictionary": dictionary or False,
        "store_schema": _SCHEMA in (metadata.metadata or {}),
        "use_deprecated_int96_timestamps": any(column.physical_type == "INT96" for column in columns),
        "use_compliant_nested_type": compliant,
        "write_statistics": any(column.is_stats_set for column in columns) or not columns,
    }
    logical = [source.schema.column(i) for i in range(len(source.schema))]
    # Spark and Iceberg keep short decimals as integers
    if any(c.logical_type.type == "DECIMAL" and c.physical_type in ("INT32", "INT64") for c in logical):
        options["store_decimal_as_integer"] = True
    return options


_UNASKED = frozenset({"PLAIN", "PLAIN_DICTIONARY", "RLE", "RLE_DICTIONARY", "BIT_PACKED", "UNKNOWN"})
"""Encodings that a writer takes by itself; every other one it has to be asked for, column by column.

https://parquet.apache.org/docs/file-format/data-pages/encodings/
"""


def _placed(source: pq.ParquetFile, mask: Mask | None) -> dict[str, Any]:
    """Encodings, page index, bloom filters and the promised order, of the first row group: writers do not change them.

    The order is promised no more where a mask puts NULL between sorted values. What no reader of Arrow tells is not
    kept: the version of data pages, and their checksums.
    """
    if not source.metadata.num_row_groups:
        return {}
    group = source.metadata.row_group(0)
    columns = [group.column(index) for index in range(source.metadata.num_columns)]
    # beside a dictionary it is what the writer goes on with where that grew too large
    plain = [c for c in columns if not any("DICTIONARY" in encoding for encoding in c.encodings)]
    named = {c.path_in_schema: set(c.encodings) - _UNASKED for c in plain}
    rows = max(source.metadata.row_group(n).num_rows for n in range(source.metadata.num_row_groups))
    options = {
        "column_encoding": {path: min(found) for path, found in named.items() if found},
        "write_page_index": any(c.has_column_index or c.has_offset_index for c in columns),
        # Arrow before 25 tells of none
        "bloom_filter_options": {
            c.path_in_schema: {"ndv": rows} for c in columns if getattr(c, "bloom_filter_offset", None)
        },
        "sorting_columns": group.sorting_columns if mask is None else None,
    }
    return {name: wanted for name, wanted in options.items() if wanted}  # older writers do not know all of them


def _refuse_named(source: pq.ParquetFile, strong: frozenset[str]) -> None:
    """What a job wrote into the footer (a schema with comments, its parameters) is its readers': it is not cut here."""
    texts = [part.decode("utf-8", "replace") for pair in _kv(source).items() for part in pair]
    if any(stand_in(strong, text) for text in texts):
        raise RowsError(
            "the key-value metadata in the file's footer contains a value of the person, and a rewrite keeps it",
            todo=(
                "rewrite the file without that entry, then run `pii-tracer resume` (for an object of an archive: "
                "plan again)"
            ),
        )


def _kv(file: pq.ParquetFile) -> dict[bytes, bytes]:
    return {key: value for key, value in (file.metadata.metadata or {}).items() if key != _SCHEMA}
