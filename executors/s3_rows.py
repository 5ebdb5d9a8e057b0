"""Drop a person's rows from one object's bytes, in memory, and keep all else: rows, order, schema, codec, metadata.

What is written is read back and compared before anybody may upload it.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import zstandard

from executors.s3_match import BY_HAND, Keys, RowsError, person_mask, present_terms, resolve, text_matches
from pii_tracer.model import Format, Match

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True)
class Kept:
    """The result for one object. data: the new bytes, or None where the object need not change.

    missing: labels of match terms whose column this object does not have.
    stale: no row was the person's, but a dictionary, a statistic or the metadata still held a value.
    """

    data: bytes | None
    rows_before: int
    rows_after: int
    missing: tuple[str, ...] = ()
    stale: bool = False


def drop_rows(data: bytes, kind: Format, match: Match, keys: Keys, strong: frozenset[str]) -> Kept:
    """Drop the rows that match. strong: values that stand for the person wherever they are found.

    Raises:
        RowsError: the format is not supported, or the object could not be read, compared or rewritten exactly.
    """
    try:
        if kind is Format.PARQUET:
            return _parquet(data, match, keys, strong)
        if kind is Format.CSV:
            return _csv(data, match, keys)
    except RowsError:
        raise
    # the libraries' messages can quote the data they could not read
    except Exception as error:
        raise RowsError(f"the object cannot be read as {kind}: {type(error).__name__}", todo=BY_HAND) from None
    raise RowsError(f"rewriting {kind} objects is not supported", todo="use Parquet or CSV, or waive this archive")


# --- Parquet ---


def _parquet(data: bytes, match: Match, keys: Keys, strong: frozenset[str]) -> Kept:
    source = pq.ParquetFile(io.BytesIO(data), coerce_int96_timestamp_unit="us")
    terms, missing = present_terms(source.schema_arrow.names, match)
    groups = source.num_row_groups
    before = source.metadata.num_rows
    after = 0
    for index in range(groups):
        table = source.read_row_group(index)
        after += table.num_rows - (pc.sum(person_mask(table, terms, keys)).as_py() or 0)
    stale = after == before and _left_in_parquet(data, source, strong)
    if after == before and not stale:
        return Kept(None, before, after, missing)

    def kept() -> Iterator[pa.Table]:
        for index in range(groups):
            table = source.read_row_group(index)
            yield _fresh_dictionaries(table.filter(pc.invert(person_mask(table, terms, keys))))

    new = _write_like(source, kept)
    _compare(new, source, kept, after)
    return Kept(new, before, after, missing, stale)


def _left_in_parquet(data: bytes, source: pq.ParquetFile, strong: frozenset[str]) -> bool:
    """A value in plain bytes (statistics, metadata) or in a dictionary page although no row is the person's."""
    if any(value.encode() in data for value in strong):
        return True
    names = [source.schema.column(i).path for i in range(len(source.schema))]
    dictionaries = pq.ParquetFile(io.BytesIO(data), read_dictionary=names)
    values = pa.array(sorted(strong), pa.large_string())
    for index in range(dictionaries.num_row_groups):
        for column in dictionaries.read_row_group(index).columns:
            for chunk in column.chunks:
                if not pa.types.is_dictionary(chunk.type) or not pa.types.is_string(chunk.type.value_type):
                    continue
                if pc.any(pc.is_in(chunk.dictionary.cast(pa.large_string()), value_set=values)).as_py():
                    return True
    return False


def _fresh_dictionaries(table: pa.Table) -> pa.Table:
    """Arrow keeps filtered-out values in a column's dictionary, and Parquet would write them: encode anew."""
    for index, name in enumerate(table.column_names):
        column = table.column(index)
        if pa.types.is_dictionary(column.type):
            decoded = pa.chunked_array([chunk.dictionary_decode() for chunk in column.chunks], column.type.value_type)
            encoded = pc.dictionary_encode(decoded).cast(column.type)
            table = table.set_column(index, table.schema.field(name), encoded)
        elif "dictionary<" in str(column.type):
            raise RowsError(f"the column `{name}` has a nested dictionary type", todo=BY_HAND)
    return table


def _write_like(source: pq.ParquetFile, tables: Any) -> bytes:
    """Write the kept rows with the source's schema, codecs, dictionaries and metadata; the schema must come out equal.

    Raises:
        RowsError: this Parquet schema cannot be written again as it is (legacy lists, mixed timestamps).
    """
    for compliant in (True, False):
        sink = io.BytesIO()
        options = _options(source, compliant)
        with pq.ParquetWriter(sink, source.schema_arrow, **options) as writer:
            for table in tables():
                if table.num_rows:
                    writer.write_table(table, row_group_size=table.num_rows)
            # without Arrow's own schema entry the writer leaves all the others out, too
            if not options["store_schema"]:
                writer.add_key_value_metadata(_kv(source))
        if _layout(pq.ParquetFile(sink)) == _layout(source):
            return sink.getvalue()
    raise RowsError("the object's Parquet schema cannot be written again exactly as it is", todo=BY_HAND)


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
        "store_schema": b"ARROW:schema" in (metadata.metadata or {}),
        "use_deprecated_int96_timestamps": any(column.physical_type == "INT96" for column in columns),
        "use_compliant_nested_type": compliant,
        "write_statistics": any(column.is_stats_set for column in columns) or not columns,
    }
    logical = [source.schema.column(i) for i in range(len(source.schema))]
    # Spark and Iceberg keep short decimals as integers
    if any(c.logical_type.type == "DECIMAL" and c.physical_type in ("INT32", "INT64") for c in logical):
        options["store_decimal_as_integer"] = True
    return options


def _compare(new: bytes, source: pq.ParquetFile, tables: Any, rows: int) -> None:
    """Read back: the same rows in the same order, and the same key-value metadata."""
    written = pq.ParquetFile(io.BytesIO(new), coerce_int96_timestamp_unit="us")
    if written.metadata.num_rows != rows:
        raise RowsError("the rewritten object has another number of rows", todo=BY_HAND)
    if _kv(written) != _kv(source):
        raise RowsError("the rewritten object has other key-value metadata", todo=BY_HAND)
    group = 0
    for table in tables():
        if not table.num_rows:
            continue
        again = written.read_row_group(group)
        group += 1
        # NaN is not equal to itself: compare what prints alike before giving up
        if not again.equals(table) and repr(again.to_pylist()) != repr(table.to_pylist()):
            raise RowsError("the rewritten object does not give back the kept rows", todo=BY_HAND)


def _kv(file: pq.ParquetFile) -> dict[bytes, bytes]:
    return {key: value for key, value in (file.metadata.metadata or {}).items() if key != b"ARROW:schema"}


# --- CSV ---


def _csv(data: bytes, match: Match, keys: Keys) -> Kept:
    """Lines are kept byte for byte: the parser only tells where a record begins and ends."""
    plain, pack = _unpack(data)
    text = plain.decode("utf-8", "surrogateescape")
    try:
        return _csv_text(text, match, keys, pack, escape=None)
    except csv.Error:
        # not RFC 4180: Spark escapes a quote with a backslash
        return _csv_text(text, match, keys, pack, escape="\\")


def _csv_text(text: str, match: Match, keys: Keys, pack: Any, escape: str | None) -> Kept:
    records = _records(text, escape)
    try:
        header, first = next(records)
    except StopIteration:
        raise RowsError("the CSV object has no header", todo=BY_HAND) from None
    header = [header[0].removeprefix("\ufeff"), *header[1:]] if header else header
    terms, missing = present_terms(header, match)
    positions = [(term, resolve(header, term.column)) for term in terms]
    kept = [first]
    before = after = 0
    for cells, raw in records:
        if not cells:
            kept.append(raw)
            continue
        if len(cells) != len(header):
            raise RowsError("a CSV record has another number of fields than the header", todo=BY_HAND)
        before += 1
        if not any(text_matches(cells[position or 0], term, keys) for term, position in positions):
            after += 1
            kept.append(raw)
    if after == before:
        return Kept(None, before, after, missing)
    return Kept(pack("".join(kept).encode("utf-8", "surrogateescape")), before, after, missing)


def _records(text: str, escape: str | None) -> Iterator[tuple[list[str], str]]:
    """Parsed records, each with the very characters it was read from."""
    consumed: list[str] = []

    def lines() -> Iterator[str]:
        for line in io.StringIO(text, newline=""):
            consumed.append(line)
            yield line

    for cells in csv.reader(lines(), strict=True, escapechar=escape):
        raw = "".join(consumed)
        consumed.clear()
        yield cells, raw


def _unpack(data: bytes) -> tuple[bytes, Any]:
    """The plain bytes, and the function that compresses as the object was."""
    if data.startswith(_GZIP):
        return gzip.decompress(data), lambda plain: gzip.compress(plain, mtime=0)
    if data.startswith(_ZSTD):
        # a file may be several frames in a row
        plain = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()
        return plain, zstandard.ZstdCompressor().compress
    return data, lambda plain: plain
