"""CSV by options of Spark's reader: a step reads a line as planning does, and only the person's lines leave."""

from __future__ import annotations

import io
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from executors.formats.plain_files.arrow_match import RowsError
from executors.formats.plain_files.hive_text import text_rewrite
from executors.formats.plain_files.hive_text.written_cells import WrittenCells, is_nothing
from pii_tracer.model.datasets import Match, MatchTerm
from pii_tracer.model.hive_text.layout import FileText
from pii_tracer.model.hive_text.spark_options import spark_layout
from pii_tracer.model.plan import HeldColumn, Mask
from pii_tracer.scan.rows.spark_lines import UnclearLineError, passed_over, records_of, refuse_odd_front
from pii_tracer.scan.rows.text_records import cells_of, rows_of, value_of
from tests.sparktextsupport import COLUMNS, is_clear, lines_for, texts

Row = tuple[str | None, ...] | None
BY_UID = Match(terms=(MatchTerm(column="uid", key_set="k", type="string"),))
PERSON = "a;7"
KEYS = {"k": frozenset({PERSON})}


def read(line: bytes, text: FileText) -> Row:
    refuse_odd_front(line, text.layout)
    if passed_over(line, text.layout):
        return None
    return tuple(value_of(cell, column) for cell, column in zip(cells_of(line, text), text.columns, strict=True))


def also_read(line: bytes, text: FileText) -> Row:
    if is_nothing(line, text.layout):
        return None
    cells = WrittenCells(text)
    written = cells.written(line)
    return tuple(cells.value(written, at) for at in range(len(text.columns)))


def text_by(**options: str) -> FileText:
    return FileText(columns=COLUMNS, layout=spark_layout(options))


@settings(max_examples=300)
@given(data=st.data(), drawn=texts())
def test_both_parsers_read_a_line_alike_or_both_refuse_it(data: st.DataObject, drawn: tuple[object, FileText]) -> None:
    _, text = drawn
    for line in data.draw(lines_for(text)):
        raw = line.encode(text.layout.encoding)
        try:
            found = read(raw, text)
        except UnclearLineError:
            with pytest.raises(RowsError):
                also_read(raw, text)
        else:
            assert also_read(raw, text) == found


@settings(max_examples=300)
@given(data=st.data(), drawn=texts())
def test_both_parsers_take_the_same_lines_together(data: st.DataObject, drawn: tuple[object, FileText]) -> None:
    _, text = drawn
    lines = "\n".join(data.draw(lines_for(text))).encode(text.layout.encoding).splitlines(keepends=True)
    try:
        found = list(records_of(lines, text.layout))
        whole = not text.layout.multi_line or all(
            is_clear(r.decode(text.layout.encoding).strip("\n"), text) for r in found
        )
    except UnclearLineError:
        whole = False
    if whole:
        assert list(WrittenCells(text).records(lines)) == found


def rewritten(path: Path, text: FileText, mask: Mask | None = None) -> bytes:
    target = path.with_name("_new_" + path.name)
    text_rewrite.write(path, target, BY_UID, KEYS, mask, text=text, name=path.name)
    text_rewrite.compare(path, target, BY_UID, KEYS, mask, text=text, name=path.name)
    return target.read_bytes()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), drawn=texts())
def test_only_the_persons_lines_leave(tmp_path: Path, data: st.DataObject, drawn: tuple[object, FileText]) -> None:
    _, text = drawn
    layout = text.layout
    quote = layout.quote or ""
    hers = f"{quote}{PERSON}{quote}{layout.delimiter}1"
    pool = st.one_of(lines_for(text).map(lambda lines: [x for x in lines if is_clear(x, text)]), st.just([hers]))
    lines = [line for group in data.draw(st.lists(pool, max_size=4)) for line in group]
    path = tmp_path / "a.csv"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode(layout.encoding))
    before = list(rows_of(io.BytesIO(path.read_bytes()), text))
    new = rewritten(path, text)
    assert list(rows_of(io.BytesIO(new), text)) == [row for row in before if row[0] != PERSON]
    kept = iter(path.read_bytes().splitlines(keepends=True))
    assert all(line in kept for line in new.splitlines(keepends=True)), "each line as it stood, in its order"


MASK = Mask(columns=("uid", "visits"), held=(HeldColumn(name="note", holds=("h",), until=None),))


def test_a_masked_row_has_null_where_nothing_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"uid;visits;note\r\n'a;7';1;'it''s'\r\nb;2;c\n")
    text = text_by(sep=";", quote="'", escape="'", header="true", nullValue="NA")
    assert rewritten(path, text, MASK) == b"uid;visits;note\r\n;;'it''s'\r\nb;2;c\n"
    assert next(iter(rows_of(io.BytesIO(rewritten(path, text, MASK)), text))) == (None, None, "it's")


def test_a_masked_row_never_becomes_a_blank_line(tmp_path: Path) -> None:
    """Which Spark would not read as a row: somebody counts them."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"a;7\t\t\nb\n")
    assert rewritten(path, text_by(sep="\t"), MASK) == b'""\t\t\nb\n'
    with pytest.raises(RowsError, match="blank line"):
        rewritten(path, text_by(sep="\t", nullValue="NA"), MASK)


@pytest.mark.parametrize("escape", ['"', "^"])
def test_a_cell_of_many_lines_is_read_once(escape: str) -> None:
    """The time grows with the cell, and not with its square."""
    cells, spent = WrittenCells(text_by(multiLine="true", escape=escape)), []
    for number in (500, 4000):
        lines = [b'a,1,"\n', *[f'{escape}"name{escape}": 1,\n'.encode()] * number, b'"\n']
        began = time.process_time()
        assert list(cells.records(lines)) == [b"".join(lines)]
        spent.append(time.process_time() - began)
    assert spent[1] < 30 * spent[0] + 0.1


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_no_mark_is_left_alone(end: bytes, tmp_path: Path) -> None:
    """Which Spark would read as a row."""
    path = tmp_path / "a.csv"
    path.write_bytes(b'\xef\xbb\xbf"a;7";1;x' + end)
    text = text_by(sep=";", multiLine="true")
    assert rewritten(path, text) == b""
    path.write_bytes(path.read_bytes() + (end and b"b;2;x" + end))
    assert rewritten(path, text) == (end and b"\xef\xbb\xbfb;2;x" + end)


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "windows-1252"])
def test_a_mark_in_another_encoding_is_refused_by_both(encoding: str, tmp_path: Path) -> None:
    path, text = tmp_path / "a.csv", text_by(sep=";", multiLine="true", encoding=encoding)
    path.write_bytes(b"\xef\xbb\xbfa;1;x\n")
    with pytest.raises(UnclearLineError, match="mark"):
        list(rows_of(io.BytesIO(path.read_bytes()), text))
    with pytest.raises(RowsError, match="mark"):
        rewritten(path, text)


@pytest.mark.parametrize("front", [b"\n", b"# export\n", b"a;7,1\n", b"\xef\xbb\xbf"])
def test_no_mark_of_a_row_comes_to_the_front(front: bytes, tmp_path: Path) -> None:
    """Where Spark would drop it, and read a quote behind it as one."""
    path = tmp_path / "a.csv"
    path.write_bytes(front + b"a;7,1\n\xef\xbb\xbf# export\nb,2\n")
    with pytest.raises(RowsError, match="mark"):
        rewritten(path, text_by(comment="#"))


def test_a_first_line_in_which_spark_sees_no_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"x" * (1 << 20) + b",1\r\na;7,2\r\n")
    with pytest.raises(RowsError, match="first line"):
        rewritten(path, text_by(multiLine="true"))
    path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n"))
    assert rewritten(path, text_by(multiLine="true")).endswith(b"x,1\n")


def test_ends_of_lines_in_a_key_are_those_that_spark_reads(tmp_path: Path) -> None:
    """A row that stays keeps its own."""
    path, text = tmp_path / "a.csv", text_by(multiLine="true")
    path.write_bytes(b'"a\r\nb",1,x\r\nc,2,"y\r\nz"\r\n')
    target, keys = path.with_name("_new"), {"k": frozenset({"a\nb"})}
    assert text_rewrite.survey(path, BY_UID, keys, text=text, name=path.name)[:2] == (2, 1)
    text_rewrite.write(path, target, BY_UID, keys, text=text, name=path.name)
    assert target.read_bytes() == b'c,2,"y\r\nz"\r\n'
