"""Searches text whose columns a catalog names, cell by cell, so that hits have the names of columns."""

from __future__ import annotations

import io
from functools import partial

from pii_tracer.model.hive_text.layout import FileText, Serde
from pii_tracer.scan.cells_left_out import beyond
from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.hits import Form
from pii_tracer.scan.rows.text_records import UnclearLineError, all_cells, lines_of, unescaped

READ_AS = "text by columns"


def search_columns(content: str, text: FileText, collector: Collector, *, first: bool = True) -> None:
    """Search a text, or a block of lines of one. What no cell shows is searched as it stands.

    first: whether it is the beginning of the file, in which lines may be no rows. Where lines at the end may be none,
    or a line has more cells than the table has columns, no column is known.
    """
    data = content.encode("utf-8", "surrogateescape")
    collector.written(data, "data")
    found = collector.terms(data)
    plain = _without_escapes(data, text)
    if plain != data:
        found |= collector.terms(plain)
    if not found and not collector.patterns.has_tiny:
        return
    inner = Collector(collector.patterns)
    readable = text.model_copy(update={"layout": text.layout.model_copy(update={"encoding": "utf-8"})})
    regular = True
    for number, line in enumerate(lines_of(io.BytesIO(data))):
        try:
            cells = all_cells(line.rstrip(b"\r\n"), readable)
        except UnclearLineError:
            regular = False
            continue
        row = not (first and number < text.layout.header_lines) and not text.layout.footer_lines
        known = row and len(cells) <= len(text.columns)
        regular = regular and len(cells) <= len(text.columns)
        for at, cell in enumerate(cells):
            if cell is not None:
                inner.string(cell, "data", text.columns[at].name if known else None, known=known)
    collector.merge(inner)
    if any(name not in inner.seen for name, _ in found):
        whole = partial(inner.quoted, ends=f'"\r\n{text.layout.delimiter}'.encode())
        found = beyond(collector.terms(data, whole=whole), inner.left.shown_in(""))
    for (name, form), count in found.items():
        # the last cell of a row and the first of the next are no text that goes on
        if name not in inner.seen and not (regular and form is Form.WRAPPED):
            collector.add(name, form, "text", None, count)


def _without_escapes(data: bytes, text: FileText) -> bytes:
    if text.layout.serde is Serde.QUOTED:
        return data.replace(b'""', b'"').replace(b"\\", b"")
    return unescaped(data, text.layout.escape)
