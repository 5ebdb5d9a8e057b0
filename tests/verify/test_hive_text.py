"""Text whose columns a catalog names: what the byte search sees in it, and what a hold on columns excuses."""

from __future__ import annotations

import gzip
import json
from pathlib import Path, PurePath

import pytest

from pii_tracer.model.datasets import Format, KeySet, Match, MatchTerm, Strategy
from pii_tracer.model.errors import ScanError
from pii_tracer.model.hive_text.layout import (
    BEYOND_COLUMNS,
    SKIPPED_LINE,
    TEXT_TABLE,
    Serde,
    TextColumn,
    TextLayout,
    TextTable,
)
from pii_tracer.model.hive_text.text_reading_rules import TextPlaces
from pii_tracer.model.plan import HeldColumn, Mask
from pii_tracer.scan.decode import dispatch
from pii_tracer.scan.folder_scan import scan_tree
from pii_tracer.scan.value_forms import build_patterns
from pii_tracer.verify.byte_search import verify_bytes
from pii_tracer.verify.formats.plain_files.hive_text_rows import rows
from pii_tracer.verify.verdicts import ByteVerdict
from tests.scan.support import BOTH, OTHER_USER, PHONE, USER, places
from tests.verify.conftest import MATCH, a_copy

COLUMNS = tuple(TextColumn(name=name, type="string") for name in ("user_id", "phone", "name", "note"))
LAYOUT = TextLayout(serde=Serde.DELIMITED, delimiter="\x01", escape="\\", null="\\N")
QUOTED = TextLayout(serde=Serde.QUOTED, delimiter=";")
KEY = "M|44,10027"
ESCAPED = build_patterns([KeySet(name="no", origin="no", weak=False, values=(("subj_1", KEY),))])
HELD = Mask(
    columns=("name", "note"), held=(HeldColumn(name="phone", holds=("H1",), until=None),), found_by=("user_id",)
)


def text_table(layout: TextLayout) -> TextTable:
    return TextTable(columns=COLUMNS, layout=layout)


@pytest.mark.parametrize(
    ("layout", "line"),
    [
        (LAYOUT.model_copy(update={"delimiter": "|"}), b"M\\|44,10027|x\n"),
        (LAYOUT.model_copy(update={"delimiter": ","}), b"M|44\\,10027,x\n"),
        (QUOTED, b'"M|44,10027";x\n'),
        (QUOTED, b"M|4\\4,10027;x\n"),
    ],
)
def test_a_key_is_found_behind_its_escapes(layout: TextLayout, line: bytes, tmp_path: Path) -> None:
    """Hive reads the person in each of these lines."""
    (tmp_path / "000000_0.gz").write_bytes(gzip.compress(line))
    (found,) = scan_tree(tmp_path, ESCAPED, texts=TextPlaces.of_table(str(tmp_path), text_table(layout))).files
    assert {(key_set, column) for key_set, _, column in places(found)} == {("no", "user_id")}
    assert not found.unread


@pytest.mark.parametrize("line", [f"{OTHER_USER}\x01\x01\x01\x01{PHONE}\n", f"a\n{PHONE}\x01\n"])
def test_a_value_outside_of_the_columns_is_found(line: str, tmp_path: Path) -> None:
    """Behind the last column, and in a line of the header. No column is known there."""
    layout = LAYOUT.model_copy(update={"header_lines": 2})
    for text in (text_table(LAYOUT), text_table(layout)):
        (tmp_path / "000000_0").write_text(line)
        (found,) = scan_tree(tmp_path, BOTH, texts=TextPlaces.of_table(str(tmp_path), text)).files
        assert "phone" in {key_set for key_set, _, _ in places(found)}
    assert {column for key_set, _, column in places(found) if key_set == "phone"} == {None}


@pytest.mark.parametrize("start", ["ORC-17", "BZhang", "PAR1", "Obj\x01", "LZ4Block", "x\x01"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_text_that_begins_as_another_format_is_read(start: str, packed: bool, tmp_path: Path) -> None:
    content = f"{start}\x01\n{USER}\x01\n".encode()
    (tmp_path / ("000000_0.gz" if packed else "000000_0")).write_bytes(gzip.compress(content) if packed else content)
    (found,) = scan_tree(tmp_path, BOTH, texts=TextPlaces.of_table(str(tmp_path), text_table(LAYOUT))).files
    assert not found.unread
    assert {(key_set, column) for key_set, _, column in places(found)} == {("user_id", "user_id")}


def look(folder: Path, layout: TextLayout, mask: Mask | None = HELD) -> ByteVerdict:
    facts = {TEXT_TABLE: text_table(layout).model_dump_json()}
    copy = a_copy(Format.CSV, folder, match=MATCH, strategy=Strategy.MASK_COLUMNS, mask=mask)
    return verify_bytes(copy.model_copy(update={"facts": facts}), BOTH, folder)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("layout", "kept"),
    [(LAYOUT, f"{USER}\x01{PHONE}\x01\\N\x01\\N\n5\x01+91 90000 00002\x01a\x01b\n"), (QUOTED, f'{USER};"{PHONE}";;\n')],
)
def test_what_is_held_is_no_residue_and_all_else_is(
    layout: TextLayout, kept: str, packed: bool, tmp_path: Path
) -> None:
    path = tmp_path / ("000000_0.gz" if packed else "000000_0")

    def write(content: str) -> None:
        path.write_bytes(gzip.compress(content.encode()) if packed else content.encode())

    write(kept)
    assert look(tmp_path, layout, mask=None).residue, "without a hold it is"
    found = look(tmp_path, layout)
    assert found.clean, found
    assert {(hit.column, hit.key_set) for hit in found.held} >= {("phone", "phone"), ("user_id", "user_id")}
    first, _, rest = kept.partition("\n")
    sign = layout.delimiter
    write(f"{sign.join([*first.split(sign)[:3], 'more'])}\n{rest}")
    assert {residue.form for residue in look(tmp_path, layout).residue} == {"row"}
    write(f"{kept}5{sign}{sign}{sign}call {PHONE}\n")
    assert not look(tmp_path, layout).clean
    write(f"{kept}5{sign}{sign}{sign}{sign}{PHONE}\n")  # behind the last column
    assert not look(tmp_path, layout).clean


@pytest.mark.parametrize("block", [1 << 25, 40])
def test_lines_before_the_footer_have_columns(block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is held is known there, also where the file is read in blocks; in the footer nothing is held."""
    monkeypatch.setattr(dispatch, "BLOCK", block)
    layout = LAYOUT.model_copy(update={"footer_lines": 2})
    held = f"{USER}\x01{PHONE}\x01\\N\x01\\N\n"
    other = "5\x01+91 90000 00002\x01a\x01b\n"
    path = tmp_path / "000000_0"
    for footer in ("end\n2\n", "end\n2", "\n\n"):
        path.write_text(held + other + held + footer)
        assert look(tmp_path, layout).clean
        path.write_text(held + other + footer + held)
        assert not look(tmp_path, layout).clean


def test_a_value_in_a_line_that_is_no_row_has_a_place_of_its_own(tmp_path: Path) -> None:
    """Also where the line is no row that could be read, and where a row has the value, too."""
    layout = QUOTED.model_copy(update={"header_lines": 1, "footer_lines": 1})
    for content in (f"{USER};\n{USER};\nend\n", f'x"a";"{USER}\n{USER};\nend\n', f"h\n{USER};\n{USER}"):
        (tmp_path / "a.csv").write_text(content)
        (found,) = scan_tree(tmp_path, BOTH, texts=TextPlaces.of_table(str(tmp_path), text_table(layout))).files
        assert {hit.where for hit in found.hits} == {"data", SKIPPED_LINE}
    (tmp_path / "a.csv").write_text(f"h\n{USER};\nend\n")
    (found,) = scan_tree(tmp_path, BOTH, texts=TextPlaces.of_table(str(tmp_path), text_table(layout))).files
    assert {hit.where for hit in found.hits} == {"data"}
    (tmp_path / "a.csv").write_text(f"h\n1;a;b;c;d;{USER}\nend\n")
    (found,) = scan_tree(tmp_path, BOTH, texts=TextPlaces.of_table(str(tmp_path), text_table(layout))).files
    assert {hit.where for hit in found.hits} == {BEYOND_COLUMNS}


@pytest.mark.parametrize("key", ["41", "417", "4177", "41771234"])
def test_a_number_is_found_in_a_file_of_other_signs(key: str, tmp_path: Path) -> None:
    """A table was altered, and versions from before have other signs between their cells."""
    columns = (TextColumn(name="uid", type="string", whole=32), TextColumn(name="note", type="string"))
    table = TextTable(columns=columns, layout=LAYOUT.model_copy(update={"delimiter": "|"}))
    person = build_patterns([KeySet(name="no", origin="no", weak=True, values=(("subj_1", key),))])
    for line in (f"{key};foo", f"0{key},foo", f"{key}\tfoo", f"+{key}\x01foo"):
        (tmp_path / "1").write_text(f"{line}\n1;bar\n")
        (found,) = scan_tree(tmp_path, person, texts=TextPlaces.of_table(str(tmp_path), table)).files
        assert found.hits, line


@pytest.mark.parametrize("key", ["41", "4177", "41771234"])
@pytest.mark.parametrize("sign", ["00", "+", "+0", "\\0"])
@pytest.mark.parametrize("weak", [False, True])
def test_a_whole_number_is_the_key_in_any_spelling(key: str, sign: str, weak: bool, tmp_path: Path) -> None:
    columns = (TextColumn(name="uid", type="string", whole=64), TextColumn(name="note", type="string"))
    table = TextTable(columns=columns, layout=LAYOUT)
    person = build_patterns([KeySet(name="no", origin="no", weak=weak, values=(("subj_1", key),))])
    match = Match(terms=(MatchTerm(column="uid", key_set="no", type="string"),))
    copy = a_copy(Format.CSV, tmp_path, match=match).model_copy(update={"facts": {TEXT_TABLE: table.model_dump_json()}})
    path = tmp_path / "000000_0"
    path.write_text(f"{sign}{key}\x01a\n42\x01b\n")
    assert not verify_bytes(copy, person, tmp_path).clean
    path.write_text(f"{sign}{key}9\x01a\n42\x01b\n")
    assert verify_bytes(copy, person, tmp_path).clean
    text = table.of(PurePath())
    assert text is not None
    told = json.dumps({str(path): text.model_dump(mode="json")})
    path.write_text(f"{sign}{key}\x01a\n42\x01b\n")
    assert [row[0] for row in rows(told, frozenset({"uid"}), (str(path), (), ("uid", "note")))] == [key, "42"]
    path.write_text(" 41\x01a\n")
    with pytest.raises(ScanError, match="differently"):
        list(rows(told, frozenset({"uid"}), (str(path), (), ("uid", "note"))))
    assert list(rows(told, frozenset({"note"}), (str(path), (), ("uid", "note")))) == [(" 41", "a")]
