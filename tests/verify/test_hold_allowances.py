"""What kept columns excuse in one file: each part of the rule alone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pii_tracer.model.datasets import Format, Strategy
from pii_tracer.model.plan import Copy, HeldColumn, Mask
from pii_tracer.scan.hits import FileScan, Form, Hit
from pii_tracer.verify.hold_allowances import excused, rows_with_more, with_names
from tests.scan.support import BOTH, PHONE, USER
from tests.verify.conftest import a_copy

HELD = Mask(columns=("note",), held=(HeldColumn(name="phone", holds=("H1",), until=None),), found_by=("user_id",))
NOTES = "_delta_log/00000000000000000001.json"


def hit(column: str | None, where: str = "data: phone") -> Hit:
    return Hit(key_set="phone", form=Form.TEXT, where=where, column=column)


def file(*hits: Hit, path: str = "a.parquet", kind: str = "parquet") -> FileScan:
    return FileScan(path=path, size=1, sha256="x", decoded_as=kind, hits=hits)


def masked(folder: Path) -> Copy:
    return a_copy(Format.PARQUET, folder, strategy=Strategy.MASK_COLUMNS, mask=HELD)


def test_a_whole_line_of_an_engines_notes_is_excused_and_a_masked_column_in_it_is_not() -> None:
    kept = frozenset(HELD.kept)
    inside, line, masked_one = hit("phone"), hit("commitInfo", "log line"), hit("note", "statistics: note")
    assert excused(file(inside, line, path=NOTES), HELD, kept) == (inside, line)
    assert excused(file(inside, line, masked_one, path=NOTES), HELD, kept) == (inside,)
    assert excused(file(inside, line), HELD, kept) == (inside,), "of an engine's notes alone"


def test_a_column_that_a_header_does_not_name_stays_as_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"User_ID,Phone,Note\n{USER},{PHONE},\n")
    seen = file(hit("_c1"), hit(None, "raw bytes"), hit("_c2[0]"), path="a.csv", kind="csv")
    (named,) = with_names(masked(tmp_path), [seen], HELD, tmp_path)
    assert [found.column for found in named.hits] == ["phone", None, "_c2[0]"]


def test_a_file_that_cannot_be_read_again_is_told_and_those_behind_it_are_read(tmp_path: Path) -> None:
    rows = pa.table({"user_id": [int(USER)], "phone": [PHONE], "note": ["more"]})
    pq.write_table(rows, tmp_path / "b.parquet")
    (tmp_path / "a.parquet").write_bytes(b"no parquet")
    seen = [file(hit("phone"), path=name) for name in ("a.parquet", "b.parquet")]
    more, unread = rows_with_more(masked(tmp_path), HELD, seen, frozenset(HELD.kept), tmp_path.__truediv__, BOTH)
    assert more == {"b.parquet": 1}
    assert unread == ("a.parquet: other values of its rows cannot be read: ArrowInvalid",)


def test_a_copy_whose_rows_nothing_finds_is_told_as_such(tmp_path: Path) -> None:
    pq.write_table(pa.table({"phone": [PHONE], "note": ["more"]}), tmp_path / "a.parquet")
    copy = masked(tmp_path).model_copy(update={"match": None})
    more, unread = rows_with_more(copy, HELD, [file(hit("phone"))], frozenset(HELD.kept), tmp_path.__truediv__, BOTH)
    assert more == {}
    assert unread == ("a.parquet: no column in it shows whose rows have values that are not held",)
