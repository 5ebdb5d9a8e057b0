"""The search of bytes in CSV that is read by options of Spark's reader: no writing of a key hides it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pii_tracer.model.datasets import Format, KeySet, Match, MatchTerm
from pii_tracer.model.hive_text.layout import SKIPPED_LINE, TEXT_AROUND, TEXT_TABLE, FileText, TextColumn, TextTable
from pii_tracer.model.hive_text.spark_options import spark_layout
from pii_tracer.scan.decode import dispatch
from pii_tracer.scan.folder_scan import scan_bytes
from pii_tracer.scan.value_forms import build_patterns
from pii_tracer.verify.byte_search import verify_bytes
from tests.sparktextsupport import OPTIONS
from tests.verify.conftest import a_copy

COLUMNS = (TextColumn(name="note", type="string"), TextColumn(name="uid", type="string"))
KEYS = st.text("ab7'\"\\^;,|# é", min_size=4, max_size=8).filter(lambda key: key.strip() == key)


def person(key: str, *, weak: bool = False) -> KeySet:
    return KeySet(name="no", origin="people.no", weak=weak, values=(("subj_1", key),))


@settings(max_examples=300, suppress_health_check=[HealthCheck.filter_too_much])
@example(options={}, key='a\\"b', front="x")
@example(options={"quote": "'", "escape": "'"}, key="a'b,", front="'x'")
@example(options={"escape": "^"}, key='^a"^^', front="")
@given(options=OPTIONS, key=KEYS, front=st.sampled_from(["", "x", "7"]))
def test_a_key_in_quotes_is_found_in_its_column(options: dict[str, str], key: str, front: str) -> None:
    layout = spark_layout(options)
    quote, escape = layout.quote or "", layout.escape or ""
    inner = key
    for sign in dict.fromkeys((escape, quote) if quote else ()):
        inner = inner.replace(sign, escape + sign)
    if not quote and layout.delimiter in key:
        return  # nobody can write it
    lines = [f"{front}{layout.delimiter}{quote}{inner}{quote}", f"x{layout.delimiter}y"]
    lines = [f"note{layout.delimiter}uid", *lines] if layout.header_lines else lines
    data = "".join(f"{line}\n" for line in lines).encode(layout.encoding)
    found = scan_bytes("a.csv", data, build_patterns([person(key)]), FileText(columns=COLUMNS, layout=layout))
    assert ("data", "uid") in {(hit.where, hit.column) for hit in found.hits}


@pytest.mark.parametrize("key", ["41", "41771234"])
@pytest.mark.parametrize("written", ["041", '"041"', '"+41"', "+0041", '"4\\1"'])
def test_a_number_in_quotes_is_the_key_unless_it_is_no_number(key: str, written: str, tmp_path: Path) -> None:
    columns = (TextColumn(name="uid", type="string", whole=64), TextColumn(name="note", type="string"))
    table = TextTable(columns=columns, layout=spark_layout({}))
    patterns = build_patterns([person(key, weak=True)])
    match = Match(terms=(MatchTerm(column="uid", key_set="no", type="string"),))
    copy = a_copy(Format.CSV, tmp_path, match=match).model_copy(update={"facts": {TEXT_TABLE: table.model_dump_json()}})
    (tmp_path / "a.csv").write_text("7,x\n" + written.replace("41", key) + ",y\n")
    assert verify_bytes(copy, patterns, tmp_path).clean is ("\\" in written)


@pytest.mark.parametrize("key", ["41", "4417", "41771234", "K-10077", "Ann", "a,b"])
@pytest.mark.parametrize("front", [b"\n\xef\xbb\xbf", b"\xef\xbb\xbf\xef\xbb\xbf", b"7,x\n\xef\xbb\xbf"])
def test_a_mark_hides_no_key(front: bytes, key: str) -> None:
    """Spark drops it in front of the first line that it parses."""
    columns = (TextColumn(name="uid", type="string"), TextColumn(name="note", type="string"))
    lines, records = (FileText(columns=columns, layout=spark_layout({"multiLine": m})) for m in ("false", "true"))
    patterns = build_patterns([person(key, weak=key.isdigit() and len(key) < 5)])
    plain = [(text, key) for text in (lines, records) if "," not in key]
    for text, written in [(lines, f'"{key}"'), *plain]:
        found = scan_bytes("a.csv", front + written.encode() + b",n\n3,y\n", patterns, text)
        assert "uid" in {hit.column for hit in found.hits}, written


def test_a_value_in_a_comment_is_in_no_row() -> None:
    text = FileText(columns=COLUMNS, layout=spark_layout({"comment": "#"}))
    found = scan_bytes("a.csv", b"#x,K-10077\n #x,y\nx,z\n", build_patterns([person("K-10077")]), text)
    assert [(hit.where, hit.column) for hit in found.hits] == [(SKIPPED_LINE, None)]


@pytest.mark.parametrize("block", [1 << 25, 8])
def test_a_row_over_several_lines_has_its_columns(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in a long file, which is then not read in blocks of lines."""
    monkeypatch.setattr(dispatch, "BLOCK", block)
    text = FileText(columns=COLUMNS, layout=spark_layout({"multiLine": "true"}))
    for data in (b'"a\n,K-1",K-10077\n', b'x,y\n"a\n\n\n\n",K-10077\nx,y\n'):
        found = scan_bytes("a.csv", data, build_patterns([person("K-10077")]), text)
        assert [(hit.where, hit.column) for hit in found.hits] == [("data", "uid")]
    for data in (b'"a\n,K-10077\n', b'"a\r\n",K-10077\n'):
        found = scan_bytes("a.csv", data, build_patterns([person("K-10077")]), text)
        assert [hit.column for hit in found.hits] == [None], "of rows that nobody can tell, no column is known"


ODDLY = {"sep": ";", "quote": "'", "escape": "^"}
HIDDEN = [("O^Brien^77", "'O^^Brien^^77';x\n"), ("O'Brien-77", "'O^'Brien-77';x\n"), ("7", "'07';x\n")]
BELOW = ["a.csv", "old/a.csv", "old/day=1/a.csv", "_old/a.csv", ".old", "old/_a", "old/a.txt", "a.bak"]


@pytest.mark.parametrize(("key", "content"), HIDDEN)
@pytest.mark.parametrize("name", BELOW)
def test_every_file_below_a_table_is_searched_as_one_of_its_own(
    key: str, content: str, name: str, tmp_path: Path
) -> None:
    """Whatever its folder is called: a job may have moved it."""
    columns = (TextColumn(name="uid", type="string", whole=64 if key == "7" else None), COLUMNS[0])
    table = TextTable(columns=columns, layout=spark_layout(ODDLY))
    patterns = build_patterns([person(key, weak=key == "7")])
    match = Match(terms=(MatchTerm(column="uid", key_set="no", type="string"),))
    copy = a_copy(Format.CSV, tmp_path, match=match).model_copy(update={"facts": {TEXT_TABLE: table.model_dump_json()}})
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("8;y\n" + content)
    assert not verify_bytes(copy, patterns, tmp_path).clean
    around = copy.model_copy(update={"facts": {TEXT_AROUND: table.below(Path("old")).model_dump_json()}})
    assert not verify_bytes(around, patterns, tmp_path).clean


@pytest.mark.parametrize("name", ["old/a.json", "_b.json"])
def test_a_file_of_another_kind_below_a_table_is_searched_as_that_too(name: str, tmp_path: Path) -> None:
    table = TextTable(columns=COLUMNS, layout=spark_layout(ODDLY))
    match = Match(terms=(MatchTerm(column="uid", key_set="no", type="string"),))
    copy = a_copy(Format.CSV, tmp_path, match=match).model_copy(update={"facts": {TEXT_TABLE: table.model_dump_json()}})
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text('{"uid": "a\\u0037b7"}\n{"uid": 7}\n')
    for key, weak in (("a7b7", False), ("7", True)):
        assert not verify_bytes(copy, build_patterns([person(key, weak=weak)]), tmp_path).clean


def test_a_key_over_several_lines_is_found_whatever_ends_them() -> None:
    text = FileText(columns=COLUMNS, layout=spark_layout({"multiLine": "true"}))
    found = scan_bytes("a.csv", b'x,"K-10\r\n077"\r\n', build_patterns([person("K-10\n077")]), text)
    assert [(hit.where, hit.column) for hit in found.hits] == [("data", "uid")]
