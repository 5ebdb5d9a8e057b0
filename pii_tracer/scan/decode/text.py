"""Text files: CSV by columns, JSON by members, anything else as it stands."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from decimal import Decimal

from pii_tracer.scan.collect import Collector, json_leaves
from pii_tracer.scan.decode.metadata import Role, walk

_DELIMITERS = ",\t;|\x01"
_NAME = re.compile(r"[a-z_][a-z0-9_]*\Z")
_CSV_NAMES = (".csv", ".tsv", ".txt")


def as_text(data: memoryview) -> str | None:
    """The file as text, or None when it is binary. UTF-8 (with or without mark), and UTF-16 with its mark."""
    raw = bytes(data)
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def decode(name: str, text: str, collector: Collector, role: Role) -> str:
    """Search a text file; returns what it was read as."""
    if role is Role.ENGINE:
        return _engine(text, collector)
    if text.lstrip()[:1] in ("{", "["):
        return _json(text, collector)
    if name.lower().endswith(_CSV_NAMES):
        return _csv(text, collector)
    collector.text(text, "text")
    return "text"


def _engine(text: str, collector: Collector) -> str:
    collector.raw(text.encode(), "engine metadata")
    documents = [text] if _is_json(text) else text.splitlines()
    for document in documents:
        if document.lstrip()[:1] in ("{", "["):
            try:
                walk(json.loads(document, parse_float=Decimal), collector, "engine metadata")
                continue
            except (ValueError, RecursionError):
                collector.unread("engine metadata that is not JSON from end to end")
        collector.text(document, "engine metadata")
    return "engine json" if text.lstrip()[:1] in ("{", "[") else "engine text"


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _json(text: str, collector: Collector) -> str:
    """One document, or one a line. What the members do not show (broken JSON, repeated keys) is searched as text."""
    whole = _is_json(text)
    kind = "json" if whole else "json lines"
    if "\\" not in text and not collector.patterns.has_tiny and not collector.terms(text.encode()):
        return kind  # without escapes the members hold nothing that the text does not show
    for document in [text] if whole else text.splitlines():
        inner = Collector(collector.patterns)
        for label, leaf in json_leaves(document):
            inner.leaf(leaf, "data", label.removeprefix("$.") if label != "$" else None)
        collector.merge(inner)
        plain = Collector(collector.patterns)
        plain.text(document, "data")
        collector.merge(plain, unless_seen_in=inner)
    return kind


def _csv(text: str, collector: Collector) -> str:
    """Cells with the names of the first row. Text that no cell shows (broken quoting) is searched as text."""
    found = collector.terms(text.encode("utf-8", "surrogateescape"))
    if not found and not collector.patterns.has_tiny:
        return "csv"
    inner = Collector(collector.patterns)
    first = text.split("\n", 1)[0]
    delimiter = max(_DELIMITERS, key=first.count)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        header = next(rows, [])
        for row in itertools.chain([header], rows):
            for index, cell in enumerate(row):
                inner.string(cell, "data", _column(header, index))
    except csv.Error:
        pass  # the search as text below has seen everything
    collector.merge(inner)
    for (name, form), count in found.items():
        if name not in inner.seen:
            collector.add(name, form, "text", None, count)
    return "csv"


def _column(header: list[str], index: int) -> str:
    """The name in the first row where that looks like a header. A first row of data must not be repeated as names."""
    if index < len(header) and len(set(header)) == len(header) and all(_NAME.match(cell) for cell in header):
        return header[index]
    return f"_c{index}"
