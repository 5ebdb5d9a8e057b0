"""What people write goes into a plan that everybody reads: a value of the person in it is refused, and not repeated."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_nested_subject import REQUEST, called, estate

KEY, MAIL = "4417700102", "B2@x.example"


def plan(base: Path, *words: str) -> int:
    return called(base, "plan", str(base / "request.yaml"), "--out", str(base / "p.plan.json"), *words)


def test_without_a_value_everything_is_planned(tmp_path: Path) -> None:
    estate(tmp_path)
    assert plan(tmp_path, "--retention", "immediate", "--reason", "ticket 4417", "--planner", "Priya") in (0, 7)
    assert (tmp_path / "p.plan.json").exists()


@pytest.mark.parametrize(
    ("identifier", "words", "where"),
    [
        (f"{KEY}-req", (), "the id of request 1"),
        ("R-1", ("--retention", "immediate", "--reason", f"asked by {MAIL.upper()}, urgent"), "--reason"),
        ("R-1", ("--planner", MAIL), "--planner"),
    ],
)
def test_a_value_of_the_person_in_a_text_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], identifier: str, words: tuple[str, ...], where: str
) -> None:
    (estate(tmp_path) / "request.yaml").write_text(REQUEST.replace("R-1", identifier))
    assert plan(tmp_path, *words) == 1
    told = capsys.readouterr()
    assert "a value of the person stands in a text that goes into the plan" in told.err
    assert f"where: {where}" in told.err
    assert KEY not in told.err.partition("error:")[2]
    assert MAIL.lower() not in told.err.lower()
    assert not (tmp_path / "p.plan.json").exists()


def test_a_file_of_no_table_is_shown_without_the_value_in_its_name(tmp_path: Path) -> None:
    (estate(tmp_path) / "w" / "notes").mkdir()
    (tmp_path / "w" / "notes" / f"{MAIL}.txt").write_text("x")
    assert plan(tmp_path) == 3
    shown = (tmp_path / "p.plan.json").read_text()
    assert "w/notes/[buyer.buyer.mail].txt" in shown
    for written in tmp_path.glob("p.*"):
        assert MAIL.lower() not in written.read_text("latin-1").lower()


def test_a_folder_named_by_a_value_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = estate(tmp_path)
    (base / "w" / "boxes").rename(base / "w" / MAIL)
    for file in ("pii-tracer.yaml", "jobs.sql"):
        (base / file).write_text((base / file).read_text().replace("w/boxes", f"w/{MAIL}"))
    assert plan(tmp_path) == 1
    told = capsys.readouterr().err.partition("error:")[2]
    assert "a name in the estate holds a value of buyer.buyer.mail" in told
    assert MAIL.lower() not in told.lower()
    assert not (tmp_path / "p.plan.json").exists()
