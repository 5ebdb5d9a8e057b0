"""A waiver holds for what its author saw: other files, other columns or another person are not waived by it."""

from __future__ import annotations

import hashlib
import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from pii_tracer.cli.main import run
from pii_tracer.model.errors import ExitCode
from tests.app.planning.test_same_digits import KEY, MAIL, OTHER, estate, parquet
from tests.cli.small import request
from tests.waivers import write_waivers

OTHERS_MAIL = "m0@x.example"
HELD = """writers: [{job: nightly, stopped: true}]
holds:
  - {id: tax, kind: retention_duty, basis: Tax Act, citation: s. 12, approver: Dr. Sen, datasets: [s.cust],
     from: 2026-01-01T00:00:00Z, until: 2131-01-01T00:00:00Z}
"""


def waived(base: Path) -> tuple[str, str]:
    """The words that give a waiver for each gap of a plan."""
    return "--waivers", str(write_waivers(base / "waivers.yaml", planned(base)["gaps"]))


def held(base: Path) -> Path:
    """An estate whose only copy is held, so that nothing is read by Spark."""
    with (estate(base) / "pii-tracer.yaml").open("a") as told:
        told.write(HELD)
    return base


def planned(base: Path, *words: str) -> dict[str, Any]:
    file = base / "r.plan.json"
    given = ["--out", str(file), "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")]
    run(["plan", str(base / "request.yaml"), *given, *words])
    made: dict[str, Any] = json.loads(file.read_text())
    return made


def verified(base: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    words = ["--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state"), "--format", "json"]
    code = run(["verify", str(base / "r.plan.json"), *words])
    return code, json.loads(capsys.readouterr().out)


def strangers(base: Path) -> Path:
    """A folder that no lineage explains, with the person in its only file."""
    parquet(base, {"note": [f"from {MAIL}", "-"]})
    return base / "lake" / "loose"


def more_files(base: Path) -> None:
    pq.write_table(pa.table({"note": [f"again {MAIL}"]}), base / "lake" / "loose" / "q.parquet")


def more_rows(base: Path) -> None:
    pq.write_table(pa.table({"note": [f"from {MAIL}", f"and {MAIL}"]}), base / "lake" / "loose" / "p.parquet")


def another_column(base: Path) -> None:
    pq.write_table(pa.table({"note": [f"from {MAIL}"], "by": [MAIL]}), base / "lake" / "loose" / "p.parquet")


def another_person(base: Path) -> None:
    pq.write_table(pa.table({"note": [OTHERS_MAIL]}), base / "lake" / "loose" / "p.parquet")
    (base / "request.yaml").write_text(request("c", str(OTHER)))


@pytest.mark.parametrize("change", [more_files, more_rows, another_column, another_person])
def test_a_place_that_shows_something_else_is_not_waived(
    tmp_path: Path, change: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    base = estate(tmp_path)
    strangers(base)
    words = waived(base)
    assert planned(base, *words)["complete"]
    change(base)
    capsys.readouterr()
    plan = planned(base, *words)
    assert not plan["complete"]
    [gap] = plan["gaps"]
    assert gap["waiver"] is None
    said = capsys.readouterr().err
    assert f"'{gap['id']}' shows something else since it was waived" in said
    assert f"of: {gap['seen']}" in said


def test_what_did_not_change_stays_waived(tmp_path: Path) -> None:
    """Further files without the person, and another day, change nothing."""
    base = estate(tmp_path)
    folder = strangers(base)
    words = waived(base)
    pq.write_table(pa.table({"note": ["nobody"]}), folder / "q.parquet")
    assert planned(base, *words)["complete"]


def test_a_waiver_that_does_not_say_of_what_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = estate(tmp_path)
    strangers(base)
    file = write_waivers(base / "waivers.yaml", planned(base)["gaps"], of="")
    capsys.readouterr()
    plan = planned(base, "--waivers", str(file))
    assert plan["gaps"][0]["waiver"] is None
    assert "does not say what was seen" in capsys.readouterr().err


def test_digits_of_another_person_are_not_waived_with_the_firsts(tmp_path: Path) -> None:
    base = estate(tmp_path)
    parquet(base, {"customer": [KEY, OTHER]})
    words = waived(base)
    (base / "request.yaml").write_text(request("c", str(OTHER)))
    assert [gap["waiver"] for gap in planned(base, *words)["gaps"]] == [None]


def test_a_file_that_nobody_could_read_is_waived_for_everybody_and_looked_at_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was waived as a picture. Since then somebody wrote the person into it, and `verify` passed it by."""
    base = held(tmp_path)
    note = base / "lake" / "scan.tiff"
    note.write_bytes(b"II*\0" + bytes(range(256)))
    words = waived(base)
    (base / "request.yaml").write_text(request("c", str(OTHER)))
    assert planned(base, *words)["complete"]
    code, found = verified(base, capsys)
    assert (code, found["unverified"]) == (0, [])
    assert [line for line in found["not_asked"] if "scan.tiff" in line]
    note.write_bytes(b"II*\0" + bytes(range(255)))
    code, found = verified(base, capsys)
    assert code == ExitCode.PARTIAL
    assert [line for line in found["unverified"] if "scan.tiff" in line]
    note.write_text(f"call {OTHERS_MAIL}")
    code, found = verified(base, capsys)
    assert code == ExitCode.RESIDUE
    assert [item["file"] for item in found["residue"] if item["copy"].startswith("(no copy)")] == ["scan.tiff"]


@pytest.mark.parametrize("place", ["folder", "file"])
def test_what_a_waiver_leaves_is_left_and_nothing_that_came_later(
    tmp_path: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    base = held(tmp_path)
    if place == "folder":
        strangers(base)
    else:
        (base / "lake" / "note.txt").write_text(f"call {MAIL}")
    assert planned(base, *waived(base))["complete"]

    def elsewhere() -> set[str]:
        return {one["file"] for one in verified(base, capsys)[1]["residue"] if one["copy"].startswith("(no copy)")}

    assert elsewhere() == set()
    if place == "folder":
        more_files(base)
    else:
        (base / "lake" / "note.txt").write_text(f"call {MAIL} and {KEY}")
    assert elsewhere() == {"q.parquet" if place == "folder" else "note.txt"}


def test_another_file_that_the_sweep_would_remove_is_not_waived_with_the_first_ones(tmp_path: Path) -> None:
    """The gap names three files and their number: the fourth was somebody else's, and the same number was waived."""
    base = estate(tmp_path)
    with (base / "pii-tracer.yaml").open("a") as told:
        told.write("writers: [{job: nightly, stopped: true}]\n")
    table = base / "lake" / "cust"
    for name in "abcd":
        (table / f"{name}.csv").write_text("x,y\n1,2\n")
    words = waived(base)
    assert planned(base, *words)["complete"]
    (table / "d.csv").rename(table / "z.csv")
    assert not planned(base, *words)["complete"]


def test_an_unread_table_that_was_waived_is_looked_at_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = held(tmp_path)
    folder = base / "lake" / "loose"
    folder.mkdir()
    whole = base / "whole.parquet"
    pq.write_table(pa.table({"note": [MAIL]}), whole)
    (folder / "p.parquet").write_bytes(whole.read_bytes()[:-30])
    plan = planned(base, *waived(base))
    assert plan["complete"]
    (folder / "p.parquet").write_bytes(whole.read_bytes())
    assert "p.parquet" in {one["file"] for one in verified(base, capsys)[1]["residue"]}


def test_who_reads_a_plan_cannot_check_a_guess_of_what_is_in_a_file(tmp_path: Path) -> None:
    """The plan had the beginning of each file's SHA-256: whoever guessed the whole of a short note saw it confirmed."""
    base = estate(tmp_path)
    strangers(base)
    (base / "lake" / "note.txt").write_text(f"call {MAIL}")
    (base / "lake" / "scan.tiff").write_bytes(b"II*\0" + bytes(range(256)))
    gaps = planned(base)["gaps"]
    marks = [mark for gap in gaps for mark in (*gap["files"], *gap["unread"])]
    assert len(marks) == 3
    guesses = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (base / "lake").rglob("*") if path.is_file()]
    assert not [guess for guess in guesses for mark in marks if guess.startswith(mark)]


def test_a_waiver_of_another_estate_holds_for_nothing(tmp_path: Path) -> None:
    base = held(tmp_path)
    (base / "lake" / "scan.tiff").write_bytes(b"II*\0" + bytes(range(256)))
    words = waived(base)
    assert planned(base, *words)["complete"]
    [key] = [path for path in (base / "state" / "keys").iterdir() if "estate" in path.name]
    key.write_bytes(bytes(64))
    plan = planned(base, *words)
    assert [gap["waiver"] for gap in plan["gaps"]] == [None]


def and_another(base: Path) -> str:
    """The request of another person."""
    (base / "other.yaml").write_text(request("c", str(OTHER)).replace("R-1", "R-2"))
    return str(base / "other.yaml")


def folder_of(base: Path, both: bool) -> None:
    parquet(base, {"note": [f"from {MAIL}", OTHERS_MAIL if both else "-"]})


def file_of(base: Path, both: bool) -> None:
    (base / "lake" / "note.txt").write_text(f"call {MAIL}" + f", {OTHERS_MAIL}" * both)


def digits_of(base: Path, both: bool) -> None:
    parquet(base, {"customer": [KEY, OTHER if both else 7]})


@pytest.mark.parametrize("place", [folder_of, file_of, digits_of])
def test_a_waiver_of_one_persons_place_holds_beside_others_who_are_not_there(tmp_path: Path, place: Any) -> None:
    base = held(tmp_path)
    place(base, both=False)
    words = waived(base)
    assert planned(base, *words)["complete"]
    assert planned(base, and_another(base), *words)["complete"]


@pytest.mark.parametrize("place", [folder_of, file_of, digits_of])
def test_a_waiver_never_holds_for_a_person_whom_its_author_did_not_see(tmp_path: Path, place: Any) -> None:
    """Both are in the same file, in the same column: the file is the same, and one of them was not asked for then."""
    base = held(tmp_path)
    place(base, both=True)
    words = waived(base)
    assert planned(base, *words)["complete"]
    assert not planned(base, and_another(base), *words)["complete"]
    (base / "request.yaml").write_text(request("c", str(OTHER)))
    assert not planned(base, *words)["complete"]


def test_other_missing_files_are_not_waived_with_the_first_ones(tmp_path: Path) -> None:
    """Two of three files are missing, then another two: number and first name are the same."""
    base = held(tmp_path)
    table = base / "lake" / "loose"
    for n in range(3):
        write_deltalake(table, pa.table({"note": [str(n)]}), mode="append")
    files = {path: path.read_bytes() for path in table.glob("*.parquet")}

    def without(*two: Path) -> dict[str, Any]:
        for path, data in files.items():
            path.unlink(missing_ok=True)
            if path not in two:
                path.write_bytes(data)
        [gap] = [gap for gap in planned(base, *words)["gaps"] if gap["kind"] == "missing_files"]
        return gap

    words: tuple[str, ...] = ()
    pairs = list(combinations(sorted(files), 2))
    shown = [without(*two)["evidence"] for two in pairs]
    first = max(shown, key=shown.count)
    before, after = (two for two, name in zip(pairs, shown, strict=True) if name == first)
    without(*before)
    words = waived(base)
    assert without(*before)["waiver"]
    assert without(*after)["waiver"] is None


def test_what_lies_beside_an_unreadable_file_is_not_waived_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder in which one file cannot be read is no table; its other files are searched nevertheless."""
    base = held(tmp_path)
    folder = base / "lake" / "odd"
    folder.mkdir()
    (folder / "0.parquet").write_bytes(b"PAR1" + b"\x93" * 200 + b"PAR1")
    words = waived(base)
    assert planned(base, *words)["complete"]
    assert verified(base, capsys)[0] == 0
    for other in (b"7z\xbc\xaf\x27\x1c" + b"\x94" * 200, MAIL.encode()):
        (folder / "1.parquet").write_bytes(other)
        plan = planned(base, *words)
        assert not plan["complete"], "nobody looked into this file"
        (gap,) = (gap for gap in plan["gaps"] if not gap["waiver"])
        assert ("the person's values" in gap["reason"]) == (other == MAIL.encode())
    (folder / "1.parquet").unlink()
    (folder / "0.parquet").write_bytes(b"PAR1" + b"\x94" * 200 + b"PAR1")
    assert not planned(base, *words)["complete"]


@pytest.mark.parametrize("bad", ["d=1/0.parquet", "_delta_log/00000000000000000000.json"])
def test_a_person_anywhere_in_a_folder_that_is_no_table_is_found(tmp_path: Path, bad: str) -> None:
    base = estate(tmp_path)
    folder = base / "lake" / "odd"
    (folder / bad).parent.mkdir(parents=True)
    (folder / bad).write_bytes(b"PAR1" + b"\x93" * 200 + b"PAR1")
    pq.write_table(pa.table({"note": [MAIL]}), folder / "1.parquet")
    (gap,) = (gap for gap in planned(base)["gaps"] if gap["kind"] == "unreadable")
    assert "the person's values" in gap["reason"]
    words = waived(base)
    assert planned(base, *words)["complete"]
    pq.write_table(pa.table({"note": [MAIL, MAIL]}), folder / "2.parquet")
    assert not planned(base, *words)["complete"]


def test_the_persons_number_beside_an_unreadable_file_is_not_waived_with_it(tmp_path: Path) -> None:
    """A short key: no value that cannot be mistaken, and the waiver covered it."""
    base = held(tmp_path)
    folder = base / "lake" / "odd"
    folder.mkdir()
    (folder / "0.parquet").write_bytes(b"PAR1" + b"\x93" * 200 + b"PAR1")
    words = waived(base)
    pq.write_table(pa.table({"cust_id": [OTHER]}), folder / "1.parquet")
    assert planned(base, *words)["complete"], "it is another person's"
    pq.write_table(pa.table({"cust_id": [KEY]}), folder / "1.parquet")
    plan = planned(base, *words)
    assert not plan["complete"]
    (gap,) = (gap for gap in plan["gaps"] if not gap["waiver"])
    assert (gap["kind"], "digits of the person's key: cust_id" in gap["reason"]) == ("unreadable", True)
    words = waived(base)
    assert planned(base, *words)["complete"]
    pq.write_table(pa.table({"cust_id": [KEY, KEY]}), folder / "1.parquet")
    assert not planned(base, *words)["complete"]
    pq.write_table(pa.table({"cust_id": [KEY, OTHER]}), folder / "1.parquet")
    assert planned(base, *words)["complete"]
    assert not planned(base, and_another(base), *words)["complete"]


def test_what_lies_outside_the_roots_is_not_searched_beside_an_unreadable_file(tmp_path: Path) -> None:
    """The root is called as a partition is: its files are no partition of the folder around it."""
    base = estate(tmp_path)
    file = base / "pii-tracer.yaml"
    root = base / "other" / "env=prod"
    for folder in (root, base / "other" / "env=dev"):
        folder.mkdir(parents=True)
    file.write_text(file.read_text().replace("roots: [", f"roots: [{root}, "))
    (root / "0.parquet").write_bytes(b"PAR1" + b"\x93" * 200 + b"PAR1")
    pq.write_table(pa.table({"note": [MAIL]}), base / "other" / "env=dev" / "1.parquet")
    (gap,) = (gap for gap in planned(base)["gaps"] if gap["kind"] == "unreadable")
    assert "the person's values" not in gap["reason"]
    pq.write_table(pa.table({"note": [MAIL]}), root / "1.parquet")
    (gap,) = (gap for gap in planned(base)["gaps"] if gap["kind"] == "unreadable")
    assert "the person's values" in gap["reason"]
