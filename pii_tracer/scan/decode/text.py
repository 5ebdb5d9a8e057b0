"""Text files: CSV by columns, JSON by members, anything else as it stands."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from enum import Enum
from functools import partial

from pii_tracer.scan.cells_left_out import beyond
from pii_tracer.scan.decode.cells.json_members import json_leaves
from pii_tracer.scan.decode.table_metadata import Role, walk
from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.hits import Form
from pii_tracer.scan.key_boundaries import KeyColumns
from pii_tracer.scan.rows.json_documents import documents_of
from pii_tracer.scan.rows.text_search import READ_AS, search_columns

_DELIMITERS = ",\t;|\x01"
_NAME = re.compile(r"[a-z_][a-z0-9_]*\Z")
_CSV_NAMES = (".csv", ".tsv", ".txt")
_CONTROL = re.compile(rb"[\x00\x02-\x08\x0e-\x1a\x1c-\x1f\x7f]")
"""What text does not hold: \\x01 parts the fields of Hive's text files, \\x1b begins a terminal's colours."""
_HIGH = re.compile(rb"[\x80-\xff]")
_MOST_HIGH = 0.3
_WINDOWS = {byte: bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(0x80, 0xA0)}
"""Windows-1252 where it differs from ISO 8859-1; five of these bytes it has no character for."""


def as_text(data: memoryview) -> str | None:
    """The file as text, or None when it is binary. UTF-8 (with or without mark), UTF-16 and UTF-32 with their marks."""
    raw = bytes(data)
    wide = "utf-32" if raw[:4] in (b"\xff\xfe\0\0", b"\0\0\xfe\xff") else "utf-16"
    encoding = wide if wide == "utf-32" or raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def as_single_bytes(data: bytes | memoryview) -> str | None:
    """Text in Windows-1252 or ISO 8859-1, as older exports are; None for what is hardly text.

    They differ in 32 bytes, which ISO 8859-1 has control characters for. Every byte is a character, so nothing proves
    it: the caller searches the bytes themselves, too.
    """
    raw = bytes(data)
    if _CONTROL.search(raw) or len(_HIGH.findall(raw)) > _MOST_HIGH * len(raw):
        return None
    return raw.decode("latin-1").translate(_WINDOWS)


def decode(name: str, text: str, collector: Collector, role: Role) -> str:
    """Search a text file; returns what it was read as."""
    if role is Role.ENGINE:
        return _engine(text, collector)
    if collector.columns is not None:
        search_columns(text, collector.columns, collector)
        if not collector.columns.guessed:
            return READ_AS
    if text.lstrip()[:1] in ("{", "["):
        return _json(text, collector)
    if name.lower().endswith(_CSV_NAMES):
        return _csv(text, collector)
    _plain(text, collector)
    return "text"


class Kind(Enum):
    """Text that can be read a block of lines at a time."""

    CSV = "csv"
    JSON_LINES = "json lines"
    TEXT = "text"


def in_blocks(name: str, block: bytes, collector: Collector) -> Kind | None:
    """What a long text is, by its first block; None where it has to be read whole (one document, rows that may go on
    over any number of lines, UTF-16, no text)."""
    if collector.columns is not None and collector.columns.layout.multi_line:
        return None
    lines, newline, _ = block.rpartition(b"\n")
    wide = block[:2] in (b"\xff\xfe", b"\xfe\xff", b"\0\0")
    content = None if wide else as_text(memoryview(lines))
    if not newline or content is None:
        return None
    if content.lstrip()[:1] in ("{", "["):
        return Kind.JSON_LINES if _is_json(content.lstrip().partition("\n")[0]) else None
    return Kind.CSV if name.lower().endswith(_CSV_NAMES) else Kind.TEXT


def decode_blocks(kind: Kind, pieces: Iterable[bytes], collector: Collector) -> str:
    """Search a long text; pieces: its bytes in order. Blocks end where lines do; a longer line is one block.
    What goes on in the next block is looked for around the cut.

    A CSV cell over several lines may be cut by a block's end. So columns are told only where no quote is near: before
    the block every quote is closed, and it has none. Elsewhere no column is known, which excuses nothing.
    """
    carried, before, quotes, around = b"", b"", 0, collector.patterns.over_lines
    first: str | None = None
    begun = False
    for piece in itertools.chain(pieces, (None,)):
        if piece is None:
            lines, carried = carried, b""
        else:
            data = carried + piece
            end = _end_of_lines(data, collector.columns.layout.footer_lines if collector.columns else 0)
            lines, carried = data[:end], data[end:]
        if before and lines:
            collector.seam(before + lines[:around], len(before), "text")
        before = (before + lines[-around:])[-around:]
        content = _utf8(lines)
        if content is None:
            collector.raw(lines, "raw bytes")
            content = as_single_bytes(lines)
        if content is None:
            collector.unread("a part of the file is not text")
        elif collector.columns is not None:
            search_columns(content, collector.columns, collector, first=not begun, last=piece is None)
            begun = True
        if content is None or (collector.columns is not None and not collector.columns.guessed):
            continue
        if kind is Kind.CSV:
            first = first if first is not None else content.split("\n", 1)[0]
            inside = lines.count(b'"')
            _csv(content, collector, first, known=quotes % 2 == 0 and not inside)
            quotes += inside
        elif kind is Kind.JSON_LINES:
            _json(content, collector)
        else:
            _plain(content, collector)
    return kind.value if collector.columns is None else READ_AS


def _end_of_lines(data: bytes, kept: int) -> int:
    """Where the whole lines of some bytes end, but for so many of the last, which may be the file's last."""
    end = len(data) + 1
    for _ in range(kept + 1):
        end = data.rfind(b"\n", 0, end - 1) + 1
        if not end:
            return 0
    return end


def _utf8(lines: bytes) -> str | None:
    try:
        text = lines.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _plain(text: str, collector: Collector) -> None:
    """Fields may be joined without anything between them: a value's end cannot be seen."""
    data = text.encode("utf-8", "surrogateescape")
    collector.written(data, "text")
    collector.raw(data, "text", lines=True)
    collector.text(text, "text", strong=False)
    if text.lstrip()[:1] == "<" and (shown := _as_shown(text)) != text:
        inner = Collector(collector.patterns)
        inner.text(shown, "text")
        collector.merge(inner, unless_seen_in=collector)


_RUNS = re.compile(
    r"</(?:\w+:)?t>(?:<(?!/?(?:\w+:)?(?:p|si|is|c|br|tab)\b)[^>]*>){0,999}?<(?:\w+:)?t(?:\s[^>]*)?>"
    r"|</?(?:text:span|text:a|b|i|u|s|em|strong|span|font|a|mark|small|sub|sup|wbr)(?:\s[^>]*)?/?>"
)
"""Marks inside a word or a sentence: runs of letters in documents of Office, and what HTML sets in other letters."""
_NO_TEXT = (
    (re.compile(r"<!--.*?-->", re.DOTALL), "-->"),
    (re.compile(r"<\?.*?\?>", re.DOTALL), "?>"),
    (_RUNS, ">"),
)
"""What parts no text, with its end. Behind the last end each begin would be read up to the end of the text."""
_SIGNS = re.compile(
    r"<text:(?:s|tab|line-break)(?:\s[^<>]*)?/>|<(\w+):(?:tab|br|cr|(noBreakHyphen))(?:\s[^<>]*)?/>"
    r"|_x(?!d[89a-f]|00[01])([0-9a-f]{4})_",
    re.IGNORECASE,
)
"""Marks that are a blank or a hyphen, and letters by number (https://learn.microsoft.com/openspecs/office_standards,
ISO/IEC 29500, 22.9.2.19, `ST_Xstring`)."""


def _as_shown(markup: str) -> str:
    """Markup without what parts no text."""
    shown = _SIGNS.sub(_sign, markup)
    for marks, end in _NO_TEXT:
        before, last, behind = shown.rpartition(end)
        shown = marks.sub("", before + last) + behind
    return shown


def _sign(found: re.Match[str]) -> str:
    prefix, hyphen, number = found.groups()
    if number:
        return chr(int(number, 16))
    letter = "-" if hyphen else " "
    return f"<{prefix}:t>{letter}</{prefix}:t>" if prefix else letter


def _engine(text: str, collector: Collector) -> str:
    documents = [text] if _is_json(text) else text.split("\n")
    inner = collector.inner() if "\\" in text else Collector(collector.patterns)
    for document in documents:
        if document.lstrip()[:1] in ("{", "["):
            try:
                walk(json.loads(document, parse_float=Decimal), inner, "engine metadata")
                continue
            except (ValueError, RecursionError):
                inner.unread("engine metadata that is not valid JSON")
        inner.text(document, "engine metadata")
    collector.merge(inner)
    collector.prose(text, "engine metadata", whole=inner.quoted, left=inner.left.shown_in(text))
    return "engine json" if text.lstrip()[:1] in ("{", "[") else "engine text"


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _json(text: str, collector: Collector) -> str:
    """One document, or one a line. What the members do not show (broken JSON, repeated keys) is searched as text."""
    collector.written(text.encode("utf-8", "surrogateescape"), "data")
    whole = _is_json(text)
    kind = "json" if whole else "json lines"
    if "\\" not in text and not collector.patterns.has_tiny and not collector.terms(text.encode()):
        return kind  # without escapes the members hold nothing that the text does not show
    documents, closed = ([text], True) if whole else documents_of(text)
    if not closed and collector.patterns.has_tiny:
        collector.unread("JSON with a truncated object or array, so the column of a short number is not known")
    for some in (documents[at : at + _TOGETHER] for at in range(0, len(documents), _TOGETHER)):
        if not _are_silent(some, collector):
            _members(some, collector)
    return kind


_TOGETHER = 512
"""Documents that are looked at together."""


def _are_silent(documents: list[str], collector: Collector) -> bool:
    """Whether neither the text of some documents nor the texts of their members hold anything, looked at together."""
    if collector.patterns.has_tiny or collector.terms("\n".join(documents).encode("utf-8", "surrogateescape")):
        return False
    escaped = (document for document in documents if "\\" in document)
    texts = [leaf for document in escaped for _, leaf in json_leaves(document) if isinstance(leaf, str)]
    try:
        return collector.patterns.quiet("\0\0".join(texts).encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:  # half of a pair of UTF-16
        return False


def _members(documents: list[str], collector: Collector) -> None:
    """Members with their names, and what they do not show."""
    for document in documents:
        # escapes may stand in what a member writes down
        inner = collector.inner() if "\\" in document else Collector(collector.patterns)
        for label, leaf in json_leaves(document):
            inner.leaf(leaf, "data", label.removeprefix("$.") if label != "$" else None)
        collector.merge(inner)
        plain = Collector(collector.patterns)
        plain.text(document, "data", whole=inner.quoted, left=inner.left.shown_in(document))
        collector.merge(plain, unless_seen_in=inner)


def _csv(text: str, collector: Collector, first: str | None = None, *, known: bool = True) -> str:
    """Cells with the names of the first row. Text that no cell shows (broken quoting) is searched as text.

    first: the first line of the file, where the text is a later block of it; known: whether its cells are whole.
    """
    collector.written(text.encode("utf-8", "surrogateescape"), "data")
    first = text.split("\n", 1)[0] if first is None else first
    delimiter = max(_DELIMITERS, key=first.count)
    if delimiter not in first:  # one column, or columns by position: a value's end cannot be seen
        collector.raw(text.encode("utf-8", "surrogateescape"), "text", lines=True)
    found = collector.terms(text.encode("utf-8", "surrogateescape"))
    if not found and '""' in text and any(line.count('"') & 1 for line in text.split("\n")):
        found = collector.terms(text.replace('""', '"').encode("utf-8", "surrogateescape"))
    if not found and not collector.patterns.has_tiny:
        return "csv"
    inner = Collector(collector.patterns)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    regular = delimiter in first
    try:
        header = next(csv.reader([first], delimiter=delimiter), [])
        names = _columns(header, collector.patterns.key_columns)
        for row in rows:
            regular = regular and len(row) in (0, len(header)) and not any(cell[:1] == " " for cell in row)
            for index, cell in enumerate(row):
                column = (names[index] if index < len(names) else f"_c{index}") if known else None
                inner.string(cell, "data", column, known=len(row) == len(header))
    except csv.Error:
        regular = False  # the search as text below has seen everything
    collector.merge(inner)
    if any(name not in inner.seen for name, _ in found):
        whole = partial(inner.quoted, ends=f'"\r\n{delimiter}'.encode())
        found = beyond(collector.terms(text.encode("utf-8", "surrogateescape"), whole=whole), inner.left.shown_in(""))
    for (name, form), count in found.items():
        # the last cell of a row and the first of the next are no text that goes on; in prose, blanks follow commas
        if name not in inner.seen and not (regular and form is Form.WRAPPED):
            collector.add(name, form, "text", None, count)
    return "csv"


def _columns(header: list[str], keys: KeyColumns) -> list[str]:
    """The names in the first row where that looks like a header. A first row of data must not be repeated as names.

    keys: columns that the plan names.
    """
    times = Counter(header)
    named = len(times) == len(header) and all(map(_NAME.match, header))
    return [name if named or (times[name] == 1 and name in keys) else f"_c{index}" for index, name in enumerate(header)]
