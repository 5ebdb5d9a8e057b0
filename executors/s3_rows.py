"""Drop a person's rows from one object's bytes, in memory, and keep all else: rows, order, schema, codec, metadata.

What is written is read back and compared before anybody may upload it.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq
import zstandard

from executors.parquet_rows import compare, survey, write
from executors.s3_match import BY_HAND, Keys, RowsError, present_terms, resolve, text_matches
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

    An object without bytes (a folder's mark, Spark's `_SUCCESS`) holds nobody.

    Raises:
        RowsError: the format is not supported, or the object could not be read, compared or rewritten exactly.
    """
    if not data:
        return Kept(None, 0, 0)
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
    def opened(**options: Any) -> pq.ParquetFile:
        return pq.ParquetFile(io.BytesIO(data), **options)

    seen = survey(opened, match, keys, strong)
    if not seen.changes:
        return Kept(None, seen.before, seen.after, seen.missing)
    sink = io.BytesIO()
    write(opened, sink, match, keys)
    new = sink.getvalue()
    compare(opened, lambda **options: pq.ParquetFile(io.BytesIO(new), **options), match, keys)
    return Kept(new, seen.before, seen.after, seen.missing, seen.stale)


# --- CSV ---


def _csv(data: bytes, match: Match, keys: Keys) -> Kept:
    """Lines are kept byte for byte: the parser only tells where a record begins and ends."""
    plain, pack = _unpack(data)
    if not plain:  # nothing, compressed
        return Kept(None, 0, 0)
    text = plain.decode("utf-8", "surrogateescape")
    try:
        return _csv_text(text, match, keys, pack, escape=None)
    except csv.Error:
        # not RFC 4180: Spark escapes a quote with a backslash
        return _csv_text(text, match, keys, pack, escape="\\")


def _csv_text(text: str, match: Match, keys: Keys, pack: Any, escape: str | None) -> Kept:
    parsed = records(io.StringIO(text, newline=""), escape)
    try:
        header, first = next(parsed)
    except StopIteration:
        raise RowsError("the CSV object has no header", todo=BY_HAND) from None
    header = [header[0].removeprefix("\ufeff"), *header[1:]] if header else header
    terms, missing = present_terms(header, match)
    positions = [(term, resolve(header, term.column)) for term in terms]
    kept = [first]
    before = after = 0
    for cells, raw in parsed:
        if not cells:
            kept.append(raw)
            continue
        if len(cells) != len(header):
            raise RowsError("a CSV record has another number of fields than the header", todo=BY_HAND)
        before += 1
        if not any(text_matches(cells[position or 0], term, keys) for term, position in positions):
            after += 1
            kept.append(raw)
        else:
            refuse_swallowed(raw, len(header))
    if after == before:
        return Kept(None, before, after, missing)
    return Kept(pack("".join(kept).encode("utf-8", "surrogateescape")), before, after, missing)


def records(text: Iterable[str], escape: str | None) -> Iterator[tuple[list[str], str]]:
    """Parsed records of a text's lines (with their ends), each with the very characters it was read from."""
    consumed: list[str] = []

    def lines() -> Iterator[str]:
        for line in text:
            consumed.append(line)
            yield line

    for cells in csv.reader(lines(), strict=True, escapechar=escape):
        raw = "".join(consumed)
        consumed.clear()
        yield (cells if escape is None else _as_spark(cells, raw)), raw


FIELD = {
    None: re.compile(r'"(?:[^"]|"")*"|[^,]*'),
    "\\": re.compile(r'"(?:[^"\\]|""|\\.)*"|(?:[^,\\]|\\.)*', re.DOTALL),
}
"""One field as it stands, by the character that escapes a quote."""


def fields(body: str, escape: str | None) -> list[str]:
    """The fields of a record as they stand, without its end."""
    parts, at = [], 0
    while field := FIELD[escape].match(body, at):
        parts.append(field[0])
        at = field.end() + 1
        if at > len(body):
            break
    return parts


def _as_spark(cells: list[str], raw: str) -> list[str]:
    """Spark escapes inside quotes only (https://spark.apache.org/docs/3.5.6/sql-data-sources-csv.html, `escape`): in
    other cells a backslash is one of their characters, as in `CORP\\jdoe`.
    """
    parts = fields(raw.rstrip("\r\n"), "\\")
    if len(parts) != len(cells):
        return cells
    return [cell if part.startswith('"') or "\\," in part else part for cell, part in zip(cells, parts, strict=True)]


def refuse_swallowed(raw: str, width: int) -> None:
    """A quote that nobody closed joins the lines of others to a record; readers that read line by line see rows there.

    Raises:
        RowsError: the record goes on over a line that, read alone, has as many fields as a row.
    """
    for line in re.split(r"\r\n|\r|\n", raw)[1:]:
        if any(len(cells) == width for cells in csv.reader([line])):
            raise RowsError(
                "a CSV record of the person goes on over lines that could be rows of others: is a quote not closed?",
                todo=BY_HAND,
            )


def _unpack(data: bytes) -> tuple[bytes, Any]:
    """The plain bytes, and the function that compresses as the object was."""
    if data.startswith(_GZIP):
        return gzip.decompress(data), lambda plain: gzip.compress(plain, mtime=0)
    if data.startswith(_ZSTD):
        # a file may be several frames in a row
        plain = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()
        return plain, zstandard.ZstdCompressor().compress
    return data, lambda plain: plain
