"""What people write goes into a plan that everybody reads: a value of the person in it is refused, and not repeated."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.app.planning.test_nested_subject import REQUEST, called, estate
from tests.cli.small import declared, request

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
    assert "a text for the plan contains a value of the person" in told.err
    assert f"where: {where}" in told.err
    assert KEY not in told.err.partition("error:")[2]
    assert MAIL.lower() not in told.err.lower()
    assert not (tmp_path / "p.plan.json").exists()


def test_a_plan_does_not_go_into_a_folder_that_is_called_by_a_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its Markdown and HTML name the whole way to it, in the commands that come next."""
    base = estate(tmp_path)
    out = base / "requests" / MAIL / "p.plan.json"
    assert called(base, "plan", str(base / "request.yaml"), "--out", str(out)) == 1
    assert "where: --out" in capsys.readouterr().err
    assert not out.exists()


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


@pytest.mark.parametrize("literal", ["'zorblaxquine'", '"ZORBLAXQUINE"', "concat('for-', 'zorblaxquine!')", "'44170'"])
def test_a_value_in_a_literal_of_recorded_sql_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], literal: str
) -> None:
    """Also one of letters alone, and a short number: the statement would stand in the plan."""
    key = "44170" if "44170" in literal else "zorblaxquine"
    base = letters(tmp_path, key, f"cust <> {literal}")
    assert plan(base) == 1
    told = capsys.readouterr().err.partition("error:")[2]
    assert "a literal of recorded SQL holds a value of c.cust" in told
    assert "prod.tally" in told
    assert key not in told.lower()
    assert not (base / "p.plan.json").exists()


def test_a_name_that_is_a_value_of_letters_is_planned(tmp_path: Path) -> None:
    assert plan(letters(tmp_path, "tally", "cust <> 'nobody'")) in (0, 3)
    assert (tmp_path / "p.plan.json").exists()


def test_a_tiny_number_in_a_literal_names_nobody(tmp_path: Path) -> None:
    assert plan(letters(tmp_path, "42", "cust <> '42'")) in (0, 3)


def letters(base: Path, key: str, condition: str) -> Path:
    """An estate with an aggregate that is made anew by its statement, under this condition."""
    for name, columns in {"people": {"cust": [key, "other"]}, "tally": {"n": [2]}}.items():
        (base / "w" / name).mkdir(parents=True)
        pq.write_table(pa.table(columns), base / "w" / name / "part-0.parquet")
    tables = dict.fromkeys(("prod.people", "prod.tally"), "parquet")
    (base / "pii-tracer.yaml").write_text(declared("w", tables) + "  - {name: c, source: prod.people, key: cust}\n")
    (base / "jobs.sql").write_text(
        f"INSERT OVERWRITE prod.tally SELECT count(cust) AS n FROM prod.people WHERE {condition};"
    )
    (base / "request.yaml").write_text(request("c", key))
    (base / "policy.yaml").write_text("version: 1\n")
    return base


@pytest.mark.parametrize("ending", [".md", ".html"])
def test_files_of_others_beside_the_plan_are_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    base = estate(tmp_path)
    (base / f"p{ending}").write_text("my own text\n")
    assert plan(base) == 2
    assert f"p{ending}" in capsys.readouterr().err
    assert (base / f"p{ending}").read_text() == "my own text\n"
    assert not (base / "p.plan.json").exists()
    (base / f"p{ending}").unlink()
    assert plan(base) == 0
    assert plan(base) == 0, "its own are written again"


def test_a_value_of_the_person_in_the_name_of_the_plan_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = estate(tmp_path)
    out = base / f"{MAIL}.plan.json"
    assert called(base, "plan", str(base / "request.yaml"), "--out", str(out)) == 1
    told = capsys.readouterr().err.partition("error:")[2]
    assert "--out" in told
    assert MAIL.lower() not in told.lower()
    assert not list(base.glob(f"{MAIL}*"))
