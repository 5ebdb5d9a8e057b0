"""`pii-tracer carriage` on a small estate of Parquet folders: what a reviewer reads, and what programs get."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pii_tracer.cli.main import run
from tests.cli.small import declared

ESTATE = (
    declared("w", dict.fromkeys(("prod.users", "prod.mails", "prod.orders", "prod.cities", "prod.tops"), "parquet"))
    + """\
  - name: person
    source: prod.users
    key: user_id
    identifiers: [{column: email, category: email}]
    record_keys: [order_id]
"""
)
JOBS = """\
INSERT OVERWRITE prod.mails SELECT sha2(lower(email), 256) AS h FROM prod.users;
INSERT OVERWRITE prod.orders SELECT order_id AS o FROM prod.users;
INSERT OVERWRITE prod.cities SELECT city, count(DISTINCT user_id) AS n FROM prod.users GROUP BY city;
INSERT OVERWRITE prod.tops SELECT city, max(user_id) AS top FROM prod.users GROUP BY city;
"""
TABLES = {
    "users": {
        "user_id": [101, 102, 103],
        "email": ["a@x.example", "b@x.example", "c@x.example"],
        "order_id": ["o1", "o2", "o3"],
        "city": ["Pune", "Pune", "Goa"],
    },
    "mails": {"h": ["0"]},
    "orders": {"o": ["o1"]},
    "cities": {"city": ["Pune", "Goa"], "n": [2, 1]},
    "tops": {"city": ["Pune", "Goa"], "top": [102, 103]},
}


@pytest.fixture
def estate(tmp_path: Path) -> Path:
    for name, columns in TABLES.items():
        (tmp_path / "w" / name).mkdir(parents=True)
        pq.write_table(pa.table(columns), tmp_path / "w" / name / "part-0.parquet")
    (tmp_path / "pii-tracer.yaml").write_text(ESTATE)
    (tmp_path / "jobs.sql").write_text(JOBS)
    return tmp_path


def called(estate: Path, *arguments: str) -> int:
    return run(["carriage", *arguments, "--estate", str(estate / "pii-tracer.yaml"), "--state", str(estate / "state")])


def test_the_table_says_at_one_look_where_the_key_is(
    estate: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert called(estate) == 0
    shown = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert "prod.mails identifiers" in lines
    assert "h = SHA2(LOWER(email), 256) email (pseudonymous)" in lines
    assert "prod.tops key*" in lines
    assert "prod.orders: joined back to prod.users, which knows whose row it is" in lines
    assert "smallest group 1 person, groups of one person only: 1 of 2" in " ".join(lines)
    assert "a row can name several people (top)" in " ".join(lines)
    assert max(len(line) for line in shown.splitlines()) <= 100
    assert "a@x.example" not in shown


def test_programs_get_every_witness(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called(estate, "prod.mails", "--format", "json") == 0
    (subject,) = json.loads(capsys.readouterr().out)["subjects"]
    (dataset,) = subject["datasets"]
    assert dataset["carries"] == "identifiers"
    assert dataset["lineage"] == ["prod.users", "prod.mails"]
    (column,) = dataset["columns"]
    assert column["finds"] == ["SHA2(LOWER(email), 256)"]
    (held,) = column["holds"]
    assert (held["category"], held["standing"]) == ("email", "pseudonymous")
    assert [(hop["source"], hop["target"], hop["evidence"]) for hop in held["path"]] == [
        ("prod.users.email", "prod.mails.h", ["jobs.sql:1"])
    ]


def test_one_table_in_full_shows_the_path_with_its_evidence(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called(estate, "prod.mails") == 0
    shown = capsys.readouterr().out
    assert "prod.users.email → prod.mails.h = SHA2(LOWER(prod.users.email), 256)" in " ".join(shown.split())
    assert "jobs.sql:1" in shown


def test_an_unknown_is_an_exit_code_and_says_what_would_close_it(
    estate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (estate / "jobs.sql").write_text("INSERT OVERWRITE prod.mails SELECT tok(email) AS h FROM prod.users;")
    assert called(estate) == 3
    shown = " ".join(capsys.readouterr().out.split())
    assert "unknown, email is copied here, but through an expression that no step can compute: h = TOK(email)" in shown
    assert "to close it: rebuild the dataset from the erased source" in shown


def test_names_from_outside_cannot_drive_the_terminal(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (estate / "jobs.sql").write_text("INSERT OVERWRITE prod.mails SELECT tok(email, '\x1b[31m') AS h FROM prod.users;")
    called(estate)
    assert "\x1b[31m" not in capsys.readouterr().out


@pytest.mark.parametrize("words", [(), ("prod.mails",), ("--format", "json"), ("prod.mails", "--format", "json")])
@pytest.mark.parametrize(
    "value", ["tok(email, 'zoe')", "regexp_replace(email, 'zoe', '')", "if(user_id = 'zoe', 1, email)"]
)
def test_what_stands_in_literals_is_not_shown(
    estate: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], value: str
) -> None:
    (estate / "jobs.sql").write_text(f"INSERT OVERWRITE prod.mails SELECT {value} AS h FROM prod.users;")
    called(estate, *words)
    out = capsys.readouterr().out
    assert "h" in out
    assert "zoe" not in out


def test_a_table_that_nobody_goes_to_is_a_usage_error(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called(estate, "prod.nothing") == 2
    assert "no subject's data goes to" in capsys.readouterr().err


def test_a_missing_source_is_an_error(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (estate / "pii-tracer.yaml").write_text(ESTATE.replace("source: prod.users", "source: prod.people"))
    assert called(estate) == 1
    assert "prod.people" in capsys.readouterr().err
