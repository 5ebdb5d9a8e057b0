"""Text of Hive's tables: read as Hive's own serializers read it, and only the person's lines leave."""

from __future__ import annotations

import bz2
import gzip
import io
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import cramjam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from pyarrow import orc

from executors.formats.plain_files.arrow_match import RowsError
from executors.formats.plain_files.executor import FilesExecutor
from executors.formats.plain_files.hive_text import text_rewrite
from executors.formats.plain_files.hive_text.written_cells import WrittenCells
from pii_tracer.lake.formats.plain_files.data_file import decompressed, text_file
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Format, KeySet, Match, MatchTerm
from pii_tracer.model.errors import EstateError, RunError
from pii_tracer.model.hive_text.layout import TEXT_TABLE, FileText, Serde, TextColumn, TextLayout, TextTable
from pii_tracer.model.plan import HeldColumn, Mask, Step
from pii_tracer.review.sealed_person_values import KeyRing
from pii_tracer.scan.rows import text_records
from pii_tracer.scan.rows.text_records import UnclearLineError, cells_of, lines_of, rows_of, value_of
from tests.executors.formats.plain_files.alone import Alone
from tests.hivetextsupport import LAZY, OPEN_CSV, read_by_hive
from tests.verify.conftest import a_copy

COLUMNS = (
    TextColumn(name="uid", type="string"),
    TextColumn(name="visits", type="string", whole=32),
    TextColumn(name="note", type="string"),
)
HIVE_TYPES = {"uid": "string", "visits": "int", "note": "string"}
BY_UID = Match(terms=(MatchTerm(column="uid", key_set="k", type="string"),))
PERSON = "a,b"
KEYS = {"k": frozenset({PERSON})}


def delimited(**more: Any) -> FileText:
    layout = {"serde": Serde.DELIMITED, "delimiter": ",", "escape": "\\", "null": "\\N"} | more
    return FileText(columns=COLUMNS, layout=TextLayout(**layout))


QUOTED = FileText(columns=COLUMNS, layout=TextLayout(serde=Serde.QUOTED, delimiter=","))


def rewrite(path: Path, text: FileText, mask: Mask | None = None, match: Match = BY_UID, keys: Any = KEYS) -> bytes:
    target = path.with_name("_new_" + path.name)
    how = {"text": text, "name": path.name}
    text_rewrite.write(path, target, match, keys, mask, **how)
    text_rewrite.compare(path, target, match, keys, mask, **how)
    return target.read_bytes()


# --- what a line says


def slowly(line: bytes, text: FileText) -> list[str | None]:
    """The cells of a delimited line: first every sign that an escape keeps from being read, then the cuts between."""
    layout, width = text.layout, len(text.columns)
    kept, at = set[int](), 0
    while layout.escape and at < len(line):
        if line[at] == ord(layout.escape) and at + 1 < len(line):
            kept.add(at + 1)
            at += 1
        at += 1
    cuts = [n for n, sign in enumerate(line) if sign == ord(layout.delimiter) and n not in kept]
    cuts = cuts[: width - 1] if layout.rest_in_last else cuts
    ends = [-1, *cuts, len(line)]
    found: list[str | None] = []
    for start, end in pairwise(ends):
        if line[start + 1 : end] == (layout.null or "").encode():
            found.append(None)
            continue
        dropped = {n - 1 for n in kept if start + 1 < n < end}
        meant = {ord("n"): 10, ord("r"): 13}
        signs = [
            meant.get(line[n], line[n]) if n in kept else line[n] for n in range(start + 1, end) if n not in dropped
        ]
        found.append(bytes(signs).decode(layout.encoding, "backslashreplace"))
    return [*found[:width], *[None] * (width - len(found))]


LINES = st.lists(st.text('ab,7+\\N"nr é\x01', max_size=9).map(lambda text: text.encode("utf-8")), max_size=12)
LAYOUTS = st.builds(
    delimited,
    escape=st.sampled_from(["\\", None]),
    null=st.sampled_from(["\\N", "", "a"]),
    rest_in_last=st.booleans(),
    delimiter=st.sampled_from([",", "\x01"]),
)


@settings(max_examples=400)
@example(line=b"a\\", text=delimited())
@example(line=b"\\,,\\N,\\\\N,a\\n", text=delimited())
@given(line=LINES.map(b"".join), text=LAYOUTS)
def test_a_delimited_line_is_cut_as_the_slow_model_cuts_it(line: bytes, text: FileText) -> None:
    assert cells_of(line, text) == slowly(line, text)
    written = WrittenCells(text)
    cells = written.written(line)
    plain = [TextColumn(name=column.name, type="string") for column in COLUMNS]
    untyped = WrittenCells(text.model_copy(update={"columns": tuple(plain)}))
    there = [untyped.value(cells, at) for at in range(len(COLUMNS))]
    assert [c and c.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace") for c in there] == slowly(
        line, text
    )


def read(line: bytes, text: FileText) -> tuple[str | None, ...]:
    return tuple(value_of(cell, column) for cell, column in zip(cells_of(line, text), text.columns, strict=True))


def also_written(line: bytes, text: FileText) -> tuple[str | None, ...]:
    cells = WrittenCells(text)
    written = cells.written(line)
    return tuple(cells.value(written, at) for at in range(len(text.columns)))


@pytest.mark.spark
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=LINES, text=LAYOUTS)
def test_delimited_lines_are_read_as_hive_reads_them(spark: Any, lines: list[bytes], text: FileText) -> None:
    layout = text.layout
    properties = {"field.delim": layout.delimiter, "serialization.null.format": layout.null or ""}
    properties |= {"escape.delim": layout.escape} if layout.escape else {}
    properties |= {"serialization.last.column.takes.rest": str(layout.rest_in_last).lower()}
    for line, hive in zip(lines, read_by_hive(spark, LAZY, properties, HIVE_TYPES, lines), strict=True):
        for mine in (read, also_written):
            try:
                assert mine(line, text) == hive
            except (UnclearLineError, RowsError):  # digits that are no plain number: nobody is taken for the person
                assert any(sign in line for sign in b"7")


@pytest.mark.spark
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(st.text("ab,\"\\ '", max_size=8).map(str.encode), max_size=15))
def test_quoted_lines_are_read_as_hive_reads_them(spark: Any, lines: list[bytes]) -> None:
    """Or not at all: where a quote is neither at the start nor at the end of a cell, or is not closed."""
    text = QUOTED.model_copy(update={"columns": tuple(TextColumn(name=c.name, type="string") for c in COLUMNS)})
    types = dict.fromkeys(HIVE_TYPES, "string")
    for line, hive in zip(lines, read_by_hive(spark, OPEN_CSV, {}, types, lines), strict=True):
        assert _or_refused(read, line, text) in (None, tuple(cell or None for cell in hive))
        mine = _or_refused(also_written, line, text)
        assert mine is None or tuple(cell or None for cell in mine) == tuple(cell or None for cell in hive)


def _or_refused(reading: Any, line: bytes, text: FileText) -> tuple[str | None, ...] | None:
    try:
        found: tuple[str | None, ...] = reading(line, text)
    except (UnclearLineError, RowsError):
        assert b'"' in line
        return None
    return found


@settings(max_examples=400)
@given(line=st.text('ab,"\\ ', max_size=10).map(str.encode))
def test_what_planning_reads_a_step_writes(line: bytes) -> None:
    """The two parsers refuse the same lines, and agree on all others."""
    text = QUOTED.model_copy(update={"columns": tuple(TextColumn(name=c.name, type="string") for c in COLUMNS)})
    first, second = _or_refused(read, line, text), _or_refused(also_written, line, text)
    assert (first is None) == (second is None)
    assert first is None or first == tuple(cell or None for cell in second or ())


@given(data=st.text("ab\r\n", max_size=12).map(str.encode))
def test_lines_end_as_hadoop_ends_them(data: bytes) -> None:
    assert (
        list(lines_of(io.BytesIO(data)))
        == data.splitlines(keepends=True)
        == list(text_rewrite._split(io.BytesIO(data)))
    )


# --- what a rewrite keeps


_CELL = st.text("ab,\\N7 ~é", max_size=6)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(st.one_of(st.none(), _CELL), _CELL, st.sampled_from(["\n", "\r\n", "\r"])), max_size=10),
    header=st.integers(0, 2),
    footer=st.integers(0, 2),
)
def test_only_the_persons_lines_leave(
    tmp_path: Path, rows: list[tuple[str | None, str, str]], header: int, footer: int
) -> None:
    """None stands for the person, whose key has a delimiter in it; skipped lines stay, whatever they say."""

    def escaped(cell: str) -> str:
        return cell.replace("\\", "\\\\").replace(",", "\\,")

    rows = [row for row in rows if row[0] != PERSON]
    lines = [f"{escaped(PERSON if k is None else k)},7,{escaped(note)}{end}".encode() for k, note, end in rows]
    content = b"".join(lines)
    assume(content.splitlines(keepends=True) == lines)  # \r and \n of two rows are one end
    path = tmp_path / "000000_0"
    path.write_bytes(content)
    text = delimited(header_lines=header, footer_lines=footer)
    here = range(header, len(lines) - footer)
    kept = [
        line for at, (line, (k, _, _)) in enumerate(zip(lines, rows, strict=True)) if k is not None or at not in here
    ]
    before, after, missing = text_rewrite.survey(path, BY_UID, KEYS, text=text, name=path.name)
    assert (before, before - after, missing) == (len(here), len(lines) - len(kept), ())
    assert rewrite(path, text) == b"".join(kept)
    path.write_bytes(b"".join(kept))
    left = list(rows_of(io.BytesIO(path.read_bytes()), text))
    assert PERSON not in [row[0] for row in left]
    assert len(left) == after


def test_a_reader_that_does_not_know_the_escapes_leaves_the_row(tmp_path: Path) -> None:
    """What a script does that cuts lines at the delimiter: Hive reads the person afterwards."""
    path = tmp_path / "000000_0"
    path.write_bytes(b"a\\,b,1,x\nc,2,y\n")
    naive = [line for line in path.read_bytes().splitlines(keepends=True) if line.split(b",")[0] != PERSON.encode()]
    assert PERSON in [row[0] for row in rows_of(io.BytesIO(b"".join(naive)), delimited())]
    assert rewrite(path, delimited()) == b"c,2,y\n"


PACKED = {
    "000000_0.gz": gzip.compress,
    "000000_0.bz2": bz2.compress,
    "000000_0.deflate": zlib.compress,
    "000000_0.zst": zstandard.ZstdCompressor().compress,
    "000000_0.snappy": lambda data: (
        len(data).to_bytes(4, "big") + len(chunk := bytes(cramjam.snappy.compress_raw(data))).to_bytes(4, "big") + chunk
    ),
}


@pytest.mark.parametrize("name", PACKED)
def test_the_codec_that_the_name_says_stays(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(PACKED[name](b"a\\,b,1,x\nc,2,y\n"))
    new = tmp_path / ("n" + name)
    new.write_bytes(rewrite(path, delimited()))
    with text_rewrite.reading(new, text_rewrite._codec(new, name)) as stream:
        assert stream.read() == b"c,2,y\n"


@pytest.mark.parametrize("name", ["000000_0", "000000_0.GZ", "part.txt", "000000_0.lz4", "000000_0.bz2"])
def test_content_that_is_not_what_the_name_says_is_left_alone(name: str, tmp_path: Path) -> None:
    """Hive goes by the name alone, and would read other rows."""
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"a\\,b,1,x\n"))
    with pytest.raises(RowsError):
        text_rewrite.survey(path, BY_UID, KEYS, text=delimited(), name=name)


def held(*names: str) -> Mask:
    gone = tuple(column.name for column in COLUMNS if column.name not in names)
    return Mask(columns=gone, held=tuple(HeldColumn(name=name, holds=("H1",), until=None) for name in names))


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        (delimited(), b"a\\,b,1,x\\,y", b"a\\,b,\\N,\\N"),
        (delimited(), b"a\\,b,1,x,more,of it", b"a\\,b,\\N,\\N"),
        (delimited(), b"a\\,b", b"a\\,b"),
        (delimited(null=""), b"a\\,b,1,x", b"a\\,b,,"),
        (delimited(rest_in_last=True), b"a\\,b,1,x,y", b"a\\,b,\\N,\\N"),
        (QUOTED, b'"a,b","1","x"', b'"a,b",,'),
    ],
)
def test_where_a_hold_keeps_columns_the_rest_is_null(
    text: FileText, line: bytes, expected: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "000000_0"
    path.write_bytes(b"c,2,y\n" + line + b"\nd,3,z")
    assert rewrite(path, text, held("uid")) == b"c,2,y\n" + expected + b"\nd,3,z"
    path.write_bytes(rewrite(path, text, held("uid")))
    before, after, _ = text_rewrite.survey(path, BY_UID, KEYS, held("uid"), text=text, name=path.name)
    assert (before, after) == (3, 3)


@pytest.mark.parametrize("line", [b'"a,b', b'x"a,b"', b'"a,b"x', b'x,"a,b" ,"', b'x\\"'])
def test_a_quote_that_readers_understand_differently_stops_the_step(line: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(line + b"\n")
    with pytest.raises(RowsError, match="readers understand differently"):
        text_rewrite.survey(path, BY_UID, KEYS, text=QUOTED, name=path.name)


@pytest.mark.parametrize(("cell", "found"), [(b"7", 1), (b"+007", 1), (b"70", 0), (b"x", 0), (b"\\N", 0)])
def test_a_whole_number_is_the_key_in_any_spelling_that_hive_reads(cell: bytes, found: int, tmp_path: Path) -> None:
    path, match = tmp_path / "a", Match(terms=(MatchTerm(column="visits", key_set="k", type="string"),))
    path.write_bytes(b"x," + cell + b",y\n")
    before, after, _ = text_rewrite.survey(path, match, {"k": frozenset({"7"})}, text=delimited(), name="a")
    assert (before, before - after) == (1, found)


@pytest.mark.parametrize("cell", [b" 7", b"7.0", b"7e0", b"99999999999"])
def test_a_number_that_readers_take_differently_stops_the_step(cell: bytes, tmp_path: Path) -> None:
    path, match = tmp_path / "a", Match(terms=(MatchTerm(column="visits", key_set="k", type="string"),))
    path.write_bytes(b"x," + cell + b",y\n")
    with pytest.raises(RowsError, match="readers disagree about the digits"):
        text_rewrite.survey(path, match, {"k": frozenset({"7"})}, text=delimited(), name="a")


def test_a_mark_of_utf8_is_no_part_of_the_key(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"\xef\xbb\xbfa\\,b,1,x\nc,2,y\n")
    assert rewrite(path, delimited()) == b"\xef\xbb\xbfc,2,y\n"


def test_letters_of_a_declared_encoding(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes("Zoë,1,x\nÅsa,2,é\n".encode("cp1252"))
    kept = rewrite(path, delimited(encoding="windows-1252"), keys={"k": frozenset({"Zoë"})})
    assert kept == "Åsa,2,é\n".encode("cp1252")


# --- compressed content


@pytest.mark.parametrize("name", PACKED)
def test_every_stream_of_a_file_is_read(name: str, tmp_path: Path) -> None:
    """Hadoop goes on behind the end of a stream, and so do appending writers; planning reads the same bytes."""
    pieces = (b"a\\,b,1,x\nc,2,y\n", b"d,3,z\n", b"e,4,z\n")
    path = tmp_path / name
    path.write_bytes(b"".join(PACKED[name](piece) for piece in pieces))
    with decompressed(text_file(path, delimited())) as stream:
        assert stream.read() == b"".join(pieces)
    new = tmp_path / ("n" + name)
    new.write_bytes(rewrite(path, delimited()))
    with text_rewrite.reading(new, text_rewrite._codec(new, name)) as stream:
        assert stream.read() == b"c,2,y\nd,3,z\ne,4,z\n"


@pytest.mark.parametrize(
    ("name", "rest"),
    [(n, rest) for n in PACKED for rest in (b"\0\0", b"zzzzzzzz", None) if (n, rest) != ("000000_0.gz", b"\0\0")],
)
def test_bytes_that_are_no_stream_stop_the_step(name: str, rest: bytes | None, tmp_path: Path) -> None:
    """Nobody knows what they are: they must not go with the rows. None: half of another stream.

    Readers of gzip pass over zeros.
    """
    path = tmp_path / name
    more = PACKED[name](b"d,3,z\n" * 9)[:-9] if rest is None else rest
    path.write_bytes(PACKED[name](b"a\\,b,1,x\nc,2,y\n") + more)
    with pytest.raises((RowsError, EOFError, OSError, zlib.error, zstandard.ZstdError)):
        text_rewrite.survey(path, BY_UID, KEYS, text=delimited(), name=name)


def test_streams_are_read_in_pieces(tmp_path: Path) -> None:
    """More than one piece of each, of bytes that pack well and of those that do not."""
    lines = b"c,2,y\n" * 200_000 + b"".join(b"%d,1,\n" % (n * 2654435761 % 2**32) for n in range(60_000))
    for name in ("000000_0.deflate", "000000_0.bz2"):
        path = tmp_path / name
        path.write_bytes(PACKED[name](lines) + PACKED[name](lines))
        with text_rewrite.reading(path, text_rewrite._codec(path, name)) as stream:
            assert stream.read() == lines + lines


# --- where lines begin and end


def test_a_file_with_nothing_but_the_persons_rows_keeps_its_mark_and_no_row(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"\xef\xbb\xbfa\\,b,1,x\n")
    path.write_bytes(rewrite(path, delimited()))
    assert path.read_bytes() == b"\xef\xbb\xbf"
    assert list(rows_of(io.BytesIO(path.read_bytes()), delimited())) == []
    assert text_rewrite.survey(path, BY_UID, KEYS, text=delimited(), name="a")[:2] == (0, 0)
    path.write_bytes(b"\xef\xbb\xbf\n")  # an empty line is one
    assert len(list(rows_of(io.BytesIO(path.read_bytes()), delimited()))) == 1
    assert text_rewrite.survey(path, BY_UID, KEYS, text=delimited(), name="a")[:2] == (1, 1)


def test_a_cell_that_begins_like_a_mark_does_not_become_one(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"a\\,b,1,x\n\xef\xbb\xbfc,2,y\n")
    with pytest.raises(RowsError, match="begin with a byte order mark"):
        text_rewrite.survey(path, BY_UID, KEYS, text=delimited(), name="a")
    path.write_bytes(b"\xef\xbb\xbfa\\,b,1,x\n\xef\xbb\xbfc,2,y\n")  # only the first is dropped
    assert rewrite(path, delimited()) == b"\xef\xbb\xbf\xef\xbb\xbfc,2,y\n"
    path.write_bytes(b"d,2,\na\\,b,1,x\n\xef\xbb\xbfc,2,y\n")
    assert rewrite(path, delimited()) == b"d,2,\n\xef\xbb\xbfc,2,y\n"


def test_two_ends_of_lines_do_not_become_one(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"c,1,\ra\\,b,1,x\n\nd,2,\n")
    with pytest.raises(RowsError, match="take the ends of two lines for one"):
        text_rewrite.survey(path, BY_UID, KEYS, text=delimited(), name="a")
    path.write_bytes(b"c,1,\ra\\,b,1,x\nd,2,\n")
    assert rewrite(path, delimited()) == b"c,1,\rd,2,\n"


@given(data=st.text("ab\r\n", max_size=12).map(str.encode), size=st.integers(1, 4))
def test_lines_end_the_same_wherever_a_piece_ends(data: bytes, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_rewrite, "_PIECE", size)
        patch.setattr(text_records, "_PIECE", size)
        found = list(lines_of(io.BytesIO(data))), list(text_rewrite._split(io.BytesIO(data)))
    assert found == (data.splitlines(keepends=True),) * 2


@pytest.mark.parametrize(("cell", "found"), [(b"0" * 5000 + b"7", 1), (b"1" * 5000, None), (b"-" + b"0" * 5000, 0)])
def test_a_number_of_thousands_of_digits(cell: bytes, found: int | None, tmp_path: Path) -> None:
    path, match = tmp_path / "a", Match(terms=(MatchTerm(column="visits", key_set="k", type="string"),))
    path.write_bytes(b"x," + cell + b",y\n")
    how: Any = {"text": delimited(), "name": "a"}
    if found is None:
        with pytest.raises(RowsError, match="readers disagree about the digits"):
            text_rewrite.survey(path, match, {"k": frozenset({"7"})}, **how)
        with pytest.raises(UnclearLineError):
            list(rows_of(io.BytesIO(path.read_bytes()), delimited()))
        return
    before, after, _ = text_rewrite.survey(path, match, {"k": frozenset({"7"})}, **how)
    assert (before, before - after) == (1, found)
    assert [row[1] for row in rows_of(io.BytesIO(path.read_bytes()), delimited())] == ["7" if found else "0"]


@pytest.mark.parametrize("start", [b"ORC-17", b"BZhang", b"PAR1", b"Obj\x01", b"BZh9"])
def test_a_text_may_begin_as_another_format_does(start: bytes, tmp_path: Path) -> None:
    path = tmp_path / "000000_0"
    path.write_bytes(start + b",1,x\na\\,b,2,y\n")
    assert text_file(path, delimited()).codec is None
    assert rewrite(path, delimited()) == start + b",1,x\n"


def orc_file(text: bytes) -> bytes:
    sink = io.BytesIO()
    orc.write_table(pa.table({"a": [text]}), sink)
    return sink.getvalue()


def parquet_file(text: bytes) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": [text]}), sink)
    return sink.getvalue()


@pytest.mark.parametrize("pack", [bz2.compress, zstandard.ZstdCompressor().compress, orc_file, parquet_file])
def test_what_is_another_format_is_no_text(pack: Any, tmp_path: Path) -> None:
    path = tmp_path / "000000_0"
    path.write_bytes(pack(b"a,1,x\n"))
    with pytest.raises(EstateError, match="not what its name says"):
        text_file(path, delimited())


# --- somebody else writes


@pytest.mark.parametrize("when", ["survey", "compare"])
def test_a_row_that_somebody_appends_meanwhile_is_not_lost(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "visits"
    folder.mkdir()
    path = folder / "000000_0"
    path.write_bytes(b"a\\,b,1,x\nc,2,y\n")
    real, left = getattr(text_rewrite, when), [b"d,3,z\n"]

    def appended(*args: Any, **how: Any) -> Any:
        found = real(*args, **how)
        if left:
            with path.open("ab") as stream:
                stream.write(left.pop())
        return found

    monkeypatch.setattr(text_rewrite, when, appended)
    table = TextTable(columns=COLUMNS, layout=delimited().layout)
    keys = KeySet(name="k", origin="o.k", weak=False, values=(("subj_1", PERSON),))
    copy = a_copy(Format.CSV, folder, match=BY_UID)
    told = {"location": str(folder), "format": "csv", TEXT_TABLE: table.model_dump_json()}
    step = Step.model_construct(id="S1", action=Action.FILES_REWRITE, parameters=told)
    files = FilesExecutor(Alone(KeyRing((keys,))))  # type: ignore[arg-type]
    with pytest.raises(RunError, match="another process wrote"):
        files.run(step, copy)
    assert path.read_bytes() == b"a\\,b,1,x\nc,2,y\nd,3,z\n"
    files.run(step, copy)
    assert path.read_bytes() == b"c,2,y\nd,3,z\n"
    assert files.verify(step, copy).ok
