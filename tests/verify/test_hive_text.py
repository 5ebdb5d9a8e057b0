"""Text whose columns a catalog names: what the byte search sees in it, and what a hold on columns excuses."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from pii_tracer.model.datasets import Format, KeySet, Strategy
from pii_tracer.model.hive_text.layout import TEXT_TABLE, Serde, TextColumn, TextLayout, TextTable
from pii_tracer.model.plan import HeldColumn, Mask
from pii_tracer.scan.folder_scan import scan_tree
from pii_tracer.scan.value_forms import build_patterns
from pii_tracer.verify.byte_search import verify_bytes
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
    (found,) = scan_tree(tmp_path, ESCAPED, text=text_table(layout)).files
    assert {(key_set, column) for key_set, _, column in places(found)} == {("no", "user_id")}
    assert not found.unread


@pytest.mark.parametrize("line", [f"{OTHER_USER}\x01\x01\x01\x01{PHONE}\n", f"a\n{PHONE}\x01\n"])
def test_a_value_outside_of_the_columns_is_found(line: str, tmp_path: Path) -> None:
    """Behind the last column, and in a line of the header. No column is known there."""
    layout = LAYOUT.model_copy(update={"header_lines": 2})
    for text in (text_table(LAYOUT), text_table(layout)):
        (tmp_path / "000000_0").write_text(line)
        (found,) = scan_tree(tmp_path, BOTH, text=text).files
        assert "phone" in {key_set for key_set, _, _ in places(found)}
    assert {column for key_set, _, column in places(found) if key_set == "phone"} == {None}


@pytest.mark.parametrize("start", ["ORC-17", "BZhang", "PAR1", "Obj\x01", "LZ4Block", "x\x01"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_text_that_begins_as_another_format_is_read(start: str, packed: bool, tmp_path: Path) -> None:
    content = f"{start}\x01\n{USER}\x01\n".encode()
    (tmp_path / ("000000_0.gz" if packed else "000000_0")).write_bytes(gzip.compress(content) if packed else content)
    (found,) = scan_tree(tmp_path, BOTH, text=text_table(LAYOUT)).files
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
