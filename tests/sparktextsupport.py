"""Drawn options of Spark's CSV reader, and drawn lines of CSV in which its signs mean something."""

from __future__ import annotations

from hypothesis import strategies as st

from pii_tracer.model.hive_text.layout import FileText, TextColumn
from pii_tracer.model.hive_text.spark_options import spark_layout
from pii_tracer.scan.rows.spark_lines import UnclearLineError, passed_over, refuse_odd_front
from pii_tracer.scan.rows.text_records import cells_of, value_of

COLUMNS = (
    TextColumn(name="uid", type="string"),
    TextColumn(name="visits", type="string", whole=32),
    TextColumn(name="note", type="string"),
)
SPARK_TYPES = "uid string, visits int, note string"

OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "sep": st.sampled_from([",", ";", "\t", "\\t", "|", "~"]),
        "header": st.sampled_from(["true", "false"]),
        "quote": st.sampled_from(['"', "'", ""]),
        "escape": st.sampled_from(["\\", '"', "^"]),
        "comment": st.sampled_from(["#", ""]),
        "encoding": st.sampled_from(["UTF-8", "windows-1252", "ISO-8859-1"]),
        "nullValue": st.sampled_from(["", "NA", "7", "#"]),
        "emptyValue": st.sampled_from(["", "NA", "E"]),
        "multiLine": st.sampled_from(["true", "false"]),
    },
)


def texts() -> st.SearchStrategy[tuple[dict[str, str], FileText]]:
    """Options, and how a file is read by them."""
    return OPTIONS.map(lambda options: (options, FileText(columns=COLUMNS, layout=spark_layout(options))))


def lines_for(text: FileText) -> st.SearchStrategy[list[str]]:
    """Lines without their ends, some of them of cells that a writer put into quotes; records, where these may have
    ends of lines in quotes."""
    layout = text.layout
    quote, escape = layout.quote or "", layout.escape or ""
    mark = "\ufeff" if layout.encoding == "utf-8" else ""
    signs = st.text(f"{layout.delimiter}{quote}{escape}{layout.comment or ''}{mark} aNA7+0Eé\t", max_size=9)

    def quoted(inner: str) -> str:
        for sign in dict.fromkeys((escape, quote)):
            inner = inner.replace(sign, escape + sign)
        return quote + inner + quote

    inner = st.text(f"{layout.delimiter}{quote}{escape} a7\n", max_size=6) if layout.multi_line else signs
    written = st.one_of(signs, inner).map(quoted) if quote else signs
    cell = st.one_of(signs, written, st.sampled_from(["", "7", "007", "NA", "E", quote * 2]))
    cells = st.lists(cell, min_size=1, max_size=4).map(layout.delimiter.join)
    lines = st.one_of(cells, signs)
    return st.lists(st.one_of(lines, lines.map(lambda line: mark + line)), max_size=6)


def is_clear(line: str, text: FileText) -> bool:
    """Whether a line is read without doubt, also at the beginning of a file."""
    if line.startswith("\ufeff") and not is_clear(line[1:], text):
        return False
    data = line.encode(text.layout.encoding)
    try:
        refuse_odd_front(data, text.layout)
        if not passed_over(data, text.layout):
            for cell, column in zip(cells_of(data, text), text.columns, strict=True):
                value_of(cell, column)
    except UnclearLineError:
        return False
    return True
