"""What a hold on columns excuses in files, and what it does not: without Spark."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.model.datasets import (
    FieldAccess,
    Format,
    JsonAccess,
    Match,
    MatchTerm,
    Strategy,
)
from pii_tracer.model.plan import Copy, HeldColumn, Mask
from pii_tracer.scan.hits import FileScan, Form, Hit
from pii_tracer.verify.byte_search import verify_bytes
from pii_tracer.verify.hold_allowances import rows_with_more
from pii_tracer.verify.verdicts import ByteVerdict
from tests.scan.support import BOTH, PHONE, USER, avro
from tests.verify.conftest import MATCH, a_copy

HELD = Mask(
    columns=("name", "note"),
    held=(HeldColumn(name="phone", holds=("H1",), until=None),),
    found_by=("user_id",),
)
ROW = {"user_id": [USER, 5], "phone": [PHONE, "+91 90000 00002"], "name": [None, "Asha"], "note": [None, "x"]}
TYPES = pa.schema([("user_id", pa.int64()), ("phone", pa.string()), ("name", pa.string()), ("note", pa.string())])


def table(**changes: Any) -> pa.Table:
    return pa.table({**ROW, **changes}, schema=TYPES)


def look(folder: Path, mask: Mask | None = HELD, match: Match | None = MATCH) -> ByteVerdict:
    copy: Copy = a_copy(Format.PARQUET, folder, match=match, strategy=Strategy.MASK_COLUMNS, mask=mask)
    return verify_bytes(copy, BOTH, folder)


def test_what_is_held_is_told_apart_and_is_no_residue(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "a.parquet")
    assert look(tmp_path, mask=None).residue, "without a hold it is"
    found = look(tmp_path)
    assert found.clean
    assert {(h.column, h.key_set) for h in found.held} == {
        ("phone", "phone"),
        ("user_id", "user_id"),
        (None, "phone"),  # the footer's bounds, seen once more as raw bytes: said apart
    }


def test_the_same_text_in_another_column_is_residue(tmp_path: Path) -> None:
    pq.write_table(table(note=[None, f"call {PHONE}"]), tmp_path / "a.parquet")
    found = look(tmp_path)
    assert {(r.where, r.form) for r in found.residue} >= {("data: note", "text")}
    assert any(r.where == "raw bytes" for r in found.residue), "then no second sight is excused either"


def test_a_row_that_holds_more_is_residue_whatever_it_holds(tmp_path: Path) -> None:
    pq.write_table(table(name=["Ravi", None]), tmp_path / "old.parquet")
    found = look(tmp_path)
    assert [(r.file, r.where, r.form) for r in found.residue] == [
        ("old.parquet", "data: rows with values that are not held", "row")
    ]
    pq.write_table(table(name=[None, "somebody else"]), tmp_path / "old.parquet")
    assert look(tmp_path).clean


def test_a_row_that_holds_more_is_found_by_keys_inside_structs_and_json(tmp_path: Path) -> None:
    rows = {"who": [{"id": USER}], "body": [json.dumps({"u": {"id": USER}})], "note": ["more"]}
    made = pa.table(
        rows, schema=pa.schema([("who", pa.struct([("id", pa.int64())])), ("body", "string"), ("note", "string")])
    )
    pq.write_table(made, tmp_path / "a.parquet")
    held = tuple(HeldColumn(name=n, holds=("H1",), until=None) for n in ("who", "body"))
    for term in (
        MatchTerm(column="who", access=(FieldAccess(name="id"),), key_set="user_id", type="bigint"),
        MatchTerm(column="body", access=(JsonAccess(path=("u", "id")),), key_set="user_id", type="string"),
    ):
        found = look(tmp_path, Mask(columns=("note",), held=held), Match(terms=(term,)))
        assert [r.form for r in found.residue] == ["row"], term.label()


def test_a_file_whose_rows_cannot_be_told_apart_is_not_verified(tmp_path: Path) -> None:
    pq.write_table(table().drop_columns(["user_id"]), tmp_path / "a.parquet")
    by_user = Match(terms=(MATCH.terms[0],))
    assert not look(tmp_path, match=by_user).residue
    assert "no column in it shows whose rows" in look(tmp_path, match=by_user).unverified[0]


def test_keys_that_are_written_otherwise_leave_a_file_unverified(tmp_path: Path) -> None:
    """The scan sees the person in the key column, and no row's key is equal as text: nobody knows whose rows they are."""
    made = table(name=["Ravi", None]).drop_columns(["phone"])
    padded = [f" {key}" for key in made["user_id"].to_pylist()]
    pq.write_table(made.set_column(0, "user_id", pa.array(padded)), tmp_path / "a.parquet")
    found = look(tmp_path, match=Match(terms=(MATCH.terms[0],)))
    assert not found.clean
    assert "no column in it shows whose rows" in found.unverified[0]


def test_whole_numbers_are_the_same_key_as_decimals(tmp_path: Path) -> None:
    made = table(name=["Ravi", None]).drop_columns(["phone"])
    decimals = made.set_column(0, "user_id", made["user_id"].cast(pa.decimal128(21, 2)))
    pq.write_table(decimals, tmp_path / "a.parquet")
    found = look(tmp_path, match=Match(terms=(MATCH.terms[0],)))
    assert not found.clean
    assert not found.unverified


HOLES = {"user_id": [USER, 5], "phone": [PHONE, "+91 90000 00002"], "note": ["x", "y"]}


def put(folder: Path, kind: str, **changes: Any) -> None:
    """A file without the column `name`, so that text formats need not tell an empty field from none."""
    made = pa.table({**HOLES, **changes}).to_pylist()
    if kind == "orc":
        orc.write_table(pa.Table.from_pylist(made), folder / "a.orc")
    elif kind == "avro":
        text = ["null", "string"]
        fields = [{"name": n, "type": text if n != "user_id" else ["null", "long"]} for n in HOLES]
        (folder / "a.avro").write_bytes(avro({"type": "record", "name": "r", "fields": fields}, made))
    elif kind.startswith("json"):
        data = "".join(json.dumps(row) + "\n" for row in made).encode()
        (folder / f"a.{kind}").write_bytes(gzip.compress(data) if kind.endswith("gz") else data)
    else:
        with (folder / "a.csv").open("w", newline="") as stream:
            writer = csv.DictWriter(stream, HOLES)
            writer.writeheader()
            writer.writerows(made)


@pytest.mark.parametrize("kind", ["orc", "avro", "json", "json.gz", "csv"])
def test_rows_of_other_formats_are_read_again_too(tmp_path: Path, kind: str) -> None:
    put(tmp_path, kind)
    assert {r.form for r in look(tmp_path).residue} == {"row"}
    put(tmp_path, kind, note=[None, "y"])
    assert look(tmp_path, mask=None).residue, "without a hold it is"
    found = look(tmp_path)
    assert found.clean, found
    assert {(h.column, h.key_set) for h in found.held} >= {("phone", "phone"), ("user_id", "user_id")}
    put(tmp_path, kind, note=[None, f"call {PHONE}"])
    assert not look(tmp_path).clean


@pytest.mark.parametrize("kind", ["orc", "avro", "json", "csv"])
def test_other_formats_whose_rows_are_nobodys_are_not_verified(tmp_path: Path, kind: str) -> None:
    """The scan sees the person in a held column, and no row has a key that tells whose it is."""
    put(tmp_path, kind)
    by_another = Match(terms=(MATCH.terms[0].model_copy(update={"column": "uid"}),))
    found = look(tmp_path, Mask(columns=("note",), held=HELD.held, found_by=("user_id",)), by_another)
    assert "no column in it shows whose rows" in found.unverified[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", f"user_id,phone,note\n{USER},{PHONE},x,more\n"),
        ("a.json", f'{{"user_id": {USER}, "phone": "{PHONE}"}} more\n'),
        ("a.json", f'[{{"user_id": {USER}, "phone": "{PHONE}", "note": "x"}}]\n'),
    ],
)
def test_text_that_cannot_be_read_by_rows_is_not_clean(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert not look(tmp_path).clean


def test_keys_of_json_that_are_written_otherwise_leave_a_file_unverified(tmp_path: Path) -> None:
    for key, unverified in ((f'" {USER}"', 1), (f"{USER}.00", 0), (f'"{USER}.0"', 0)):
        (tmp_path / "a.json").write_text(f'{{"user_id": {key}, "note": "x"}}\n{{"user_id": 5, "note": "y"}}\n')
        found = look(tmp_path, match=Match(terms=(MATCH.terms[0],)))
        assert not found.clean
        assert len(found.unverified) == unverified


def test_members_that_stand_twice_are_both_looked_at(tmp_path: Path) -> None:
    line = f'{{"user_id": {USER}, "phone": "{PHONE}", "Note": "x", "note": null}}\n'
    (tmp_path / "a.json").write_text(line)
    assert [r.form for r in look(tmp_path).residue] == ["row"]
    (tmp_path / "a.json").write_text(line.replace('"x"', "null"))
    assert look(tmp_path).clean


def test_csv_with_backslashes_is_read_as_it_was_written(tmp_path: Path) -> None:
    text = f'user_id,phone,note\n{USER},{PHONE},\n5,"a \\"b, c\\"",y\n'
    (tmp_path / "a.csv").write_text(text)
    assert look(tmp_path).clean
    (tmp_path / "a.csv").write_text(text.replace(f"{PHONE},", f'{PHONE},"a \\"b, c\\""'))
    assert [r.form for r in look(tmp_path).residue] == ["row"]


def test_csv_columns_are_known_by_a_header_of_names_that_the_plan_has(tmp_path: Path) -> None:
    """The scan takes names with capitals for a row of data, and calls the columns by their place."""
    text = f"User_ID,Phone,Note\n{USER},{PHONE},\n5,,y\n"
    (tmp_path / "a.csv").write_text(text)
    assert look(tmp_path).clean
    assert {h.column for h in look(tmp_path).held} == {"user_id", "phone"}
    (tmp_path / "a.csv").write_text(text.replace(f"{PHONE},", f"{PHONE},more"))
    assert [r.form for r in look(tmp_path).residue] == ["row"]
    (tmp_path / "a.csv").write_text(text.replace(f"{PHONE},", f",{PHONE}"))
    assert not look(tmp_path).clean
    (tmp_path / "a.csv").write_text(text.replace("Note", "Other"))
    assert not look(tmp_path).clean


def test_csv_is_read_in_the_encoding_that_is_declared(tmp_path: Path) -> None:
    text = f"user_id,phone,größe\n{USER},{PHONE},\n5,,é\n".encode("cp1252") + b"6,\x81,x\n"
    (tmp_path / "a.csv").write_bytes(text)
    mask = Mask(columns=("größe",), held=HELD.held, found_by=HELD.found_by)
    more = {"strategy": Strategy.MASK_COLUMNS, "mask": mask, "facts": {"encoding": "windows-1252"}}
    copy = a_copy(Format.CSV, tmp_path, **more)
    found = verify_bytes(copy, BOTH, tmp_path)
    assert found.clean, found
    (tmp_path / "a.csv").write_bytes(text.replace(f"{PHONE},".encode(), f"{PHONE},Köln".encode("cp1252")))
    assert [r.form for r in verify_bytes(copy, BOTH, tmp_path).residue] == ["row"]


def test_rows_of_a_log_file_are_not_verified(tmp_path: Path) -> None:
    """Hudi's log blocks are searched, and not read again by rows."""
    held = FileScan(
        path=".f.log",
        size=1,
        sha256="x",
        decoded_as="hudi log",
        hits=(Hit(key_set="phone", form=Form.TEXT, where="log block", column="phone"),),
    )
    copy = a_copy(HUDI, tmp_path, strategy=Strategy.MASK_COLUMNS, mask=HELD)
    _, unread = rows_with_more(copy, HELD, [held], frozenset(HELD.kept), tmp_path.__truediv__, BOTH)
    assert "are unknown in this format" in unread[0]


def log(tmp_path: Path, **bounds: Any) -> Path:
    stats = json.dumps({"numRecords": 2, "minValues": bounds, "maxValues": bounds})
    place = tmp_path / "_delta_log" / "00000000000000000001.json"
    place.parent.mkdir(exist_ok=True)
    place.write_text(json.dumps({"add": {"path": "a.parquet", "stats": stats}}) + "\n")
    return tmp_path


def test_bounds_of_held_columns_are_excused_in_an_engines_notes(tmp_path: Path) -> None:
    assert look(log(tmp_path, phone=PHONE)).clean
    assert look(log(tmp_path, phone="a"), mask=None).clean
    assert not look(log(tmp_path, phone=PHONE), mask=None).clean


def test_bounds_of_other_columns_are_not(tmp_path: Path) -> None:
    assert {r.where for r in look(log(tmp_path, phone=PHONE, note=PHONE)).residue} >= {"statistics: note"}
    assert not look(log(tmp_path, note=PHONE)).clean
