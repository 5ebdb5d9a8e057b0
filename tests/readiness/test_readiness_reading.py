"""Readings of a small estate: each kind of drift is planted once, and reported with its owner."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from pii_tracer.cli.readiness_command import readiness as command
from pii_tracer.model.errors import ConfigError, ExitCode
from pii_tracer.readiness.canaries import Arrival
from pii_tracer.readiness.estate_snapshot import Coverage
from pii_tracer.readiness.findings import FindingKind, Level
from tests.leaks import Person, leaks
from tests.readiness.estates import CANARY, JOBS, MAIL, READINESS, Shop, only, shop

LONG = {"delta.deletedFileRetentionDuration": "interval 90 days"}


@pytest.fixture
def estate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setenv("WREN", CANARY)
    return shop(tmp_path)


def test_an_estate_in_order_says_yes(estate: Shop) -> None:
    found = estate.read()
    assert [(f.kind, f.where, f.text) for f in found.findings if f.level is not Level.NOTE] == []
    assert (found.ready, found.exit_code, found.number) == (True, ExitCode.DONE, 1)
    assert {t.name: t.coverage for t in found.tables} == {
        "app.users": Coverage.SOURCE,
        "app.mails": Coverage.FULL,
        "app.shipped": Coverage.FULL,
    }
    [wren] = found.canaries.canaries
    assert {p.where: p.arrival for p in wren.places} == {
        "app.users": Arrival.ARRIVED,
        "app.mails": Arrival.ARRIVED,
        "app.shipped": Arrival.FILTERED,
    }
    assert found.provable.decided_by is not None
    assert "pii_days" in found.provable.decided_by.reason
    assert [(law.law, law.met) for law in found.provable.laws] == [("GDPR", True)]
    assert {p.name: (p.good, p.all) for p in found.score.parts} == {
        "lineage": (2, 2),
        "unblocked": (3, 3),
        "canaries": (2, 3),
        "deadlines": (1, 1),
    }
    assert found.score.points == 91, "a quarter of 100 + 100 + 66.7 + 100, rounded down"


def new_table(estate: Shop) -> None:
    estate.table("ledger", {"entry": [1]})
    estate.write(JOBS, READINESS, ("ledger",))


def dropped_table(estate: Shop) -> None:
    estate.table("shipped", {"buyer": [1]})
    import shutil

    shutil.rmtree(estate.base / "w" / "shipped")


def new_key_column(estate: Shop) -> None:
    estate.table("shipped", {"buyer": [4417700102031], "contact": ["chen@north.example"]})
    job = "INSERT OVERWRITE app.shipped SELECT user_id AS buyer, email AS contact FROM app.users WHERE user_id > 0;"
    estate.write({**JOBS, "shipped": job}, READINESS)


def new_column(estate: Shop) -> None:
    """The job names it: of a column that no query explains, nobody knows that it tells of no person."""
    estate.table("shipped", {"buyer": [4417700102031], "weight": [3]})
    job = "INSERT OVERWRITE app.shipped SELECT user_id AS buyer, 3 AS weight FROM app.users WHERE email LIKE '%north%';"
    estate.write({**JOBS, "shipped": job}, READINESS)


def dropped_column(estate: Shop) -> None:
    estate.table("mails", {"user_id": [4417700102031, int(CANARY)]})


def changed_type(estate: Shop) -> None:
    estate.table("mails", {"user_id": ["4417700102031", CANARY], "email": ["chen@north.example", MAIL]})


def job_without_lineage(estate: Shop) -> None:
    estate.write({"shipped": JOBS["shipped"]}, READINESS)
    estate.table("mails", {"user_id": [4417700102031], "email": ["chen@north.example"]})


def kept_longer(estate: Shop) -> None:
    estate.table("mails", {"user_id": [int(CANARY)], "email": [MAIL]}, LONG)


def lineage_lost(estate: Shop) -> None:
    estate.write({"shipped": JOBS["shipped"]}, READINESS)


def lineage_lost_in_part(estate: Shop) -> None:
    estate.write({**JOBS, "mails": "INSERT INTO app.mails (user_id) SELECT user_id FROM app.users;"}, READINESS)


def canary_unknown_copy(estate: Shop) -> None:
    estate.table("ledger", {"note": [f"call {MAIL}"]})
    estate.write(JOBS, READINESS, ("ledger",))


def canary_missing(estate: Shop) -> None:
    estate.table("mails", {"user_id": [4417700102031], "email": ["chen@north.example"]})


def canary_gone(estate: Shop) -> None:
    estate.table("users", {"user_id": [4417700102031], "email": ["chen@north.example"]})


@pytest.mark.parametrize(
    ("plant", "kind", "where", "owner"),
    [
        (new_table, FindingKind.NEW_TABLE, "app.ledger", "platform"),
        (dropped_table, FindingKind.DROPPED_TABLE, "app.shipped", "logistics"),
        (new_key_column, FindingKind.NEW_KEY_COLUMN, "app.shipped", "logistics"),
        (job_without_lineage, FindingKind.JOB_WITHOUT_LINEAGE, "app.mails", "mail team"),
        (kept_longer, FindingKind.KEPT_LONGER, "app.mails", "mail team"),
        (lineage_lost, FindingKind.LINEAGE_LOST, "app.mails", "mail team"),
        (lineage_lost_in_part, FindingKind.LINEAGE_LOST, "app.mails", "mail team"),
        (canary_unknown_copy, FindingKind.CANARY_UNKNOWN_COPY, "app.ledger", "platform"),
        (canary_missing, FindingKind.CANARY_MISSING, "app.mails", "mail team"),
        (canary_gone, FindingKind.CANARY_NOT_IN_SOURCE, "app.users", "platform"),
    ],
)
def test_drift_is_reported_with_its_owner(
    estate: Shop, plant: Callable[[Shop], None], kind: FindingKind, where: str, owner: str
) -> None:
    before = estate.read()
    assert [f for f in before.findings if f.kind is kind and f.level is not Level.NOTE] == []
    plant(estate)
    found = estate.read(days=1)
    weighty = [f for f in found.findings if f.kind is kind and f.level is not Level.NOTE]
    assert [(f.where, f.owner) for f in weighty] == [(where, owner)], [f.text for f in found.findings]
    assert [point.score for point in found.trend] == [before.score.points]


@pytest.mark.parametrize(
    ("plant", "kind", "where", "owner", "told"),
    [
        (new_column, FindingKind.NEW_COLUMN, "app.shipped", "logistics", "the column weight is new"),
        (dropped_column, FindingKind.DROPPED_COLUMN, "app.mails", "mail team", "the column email is gone"),
        (changed_type, FindingKind.CHANGED_TYPE, "app.mails", "mail team", "the column user_id was "),
    ],
)
def test_a_column_that_drifts_is_noted_with_its_owner(
    estate: Shop, plant: Callable[[Shop], None], kind: FindingKind, where: str, owner: str, told: str
) -> None:
    columns = {FindingKind.NEW_COLUMN, FindingKind.DROPPED_COLUMN, FindingKind.CHANGED_TYPE}
    assert not columns & {f.kind for f in estate.read().findings}
    plant(estate)
    noted = [f for f in estate.read(days=1).findings if f.kind in columns]
    assert [(f.kind, f.level, f.where, f.owner) for f in noted] == [(kind, Level.NOTE, where, owner)]
    assert noted[0].text.startswith(told)


def test_an_unknown_copy_is_no_answer_of_yes(estate: Shop) -> None:
    (estate.base / "w" / "dump.txt").write_text(f"id;mail\n1;{MAIL}\n")
    found = estate.read()
    one = only(found, FindingKind.CANARY_UNKNOWN_COPY)
    assert (one.level, one.owner, found.ready) == (Level.BLOCKING, "lake keepers", False)
    canary_unknown_copy(estate)
    assert {t.name: t.coverage for t in estate.read().tables}["app.ledger"] is Coverage.NONE
    assert found.exit_code is ExitCode.INCOMPLETE


def test_a_canary_arrives_under_a_computed_key_and_a_file_that_cannot_be_read_is_no_arrival(estate: Shop) -> None:
    digest = hashlib.sha256(CANARY.encode()).hexdigest()
    estate.table("hashed", {"k": [digest]})
    job = "INSERT OVERWRITE app.hashed SELECT sha2(CAST(user_id AS STRING), 256) AS k FROM app.users;"
    estate.write({**JOBS, "hashed": job}, READINESS, ("hashed",))
    [wren] = estate.read().canaries.canaries
    assert {p.where: p.arrival for p in wren.places}["app.hashed"] is Arrival.ARRIVED
    [data] = (estate.base / "w" / "hashed").glob("*.parquet")
    data.write_bytes(data.read_bytes()[:-9])
    found = estate.read()
    one = only(found, FindingKind.CANARY_UNREAD)
    assert (one.where, one.owner, one.level, found.ready) == ("app.hashed", "platform", Level.BLOCKING, False)


def test_persons_without_a_way_to_their_rows_are_no_answer_of_yes(estate: Shop) -> None:
    """As a plan has it: a job that nobody can match rows by."""
    estate.table("guess", {"x": ["a"]})
    job = "INSERT OVERWRITE app.guess SELECT mystery(email) AS x FROM app.users;"
    estate.write({**JOBS, "guess": job}, READINESS, ("guess",))
    one = only(estate.read(), FindingKind.NO_WAY_TO_ROWS)
    assert (one.where, one.owner, one.level) == ("app.guess", "platform", Level.BLOCKING)


def test_a_gap_grows_older_and_a_clock_that_runs_backwards_makes_no_age_negative(estate: Shop) -> None:
    estate.write(JOBS, READINESS, ("lost",))
    assert only(estate.read(), FindingKind.GAP).age_days == 0
    old = only(estate.read(days=9), FindingKind.GAP)
    assert (old.gap, old.age_days, old.owner) == ("missing_table", 9, "platform")
    back = estate.read(days=-30)
    assert only(back, FindingKind.CLOCK_SET_BACK).level is Level.WARNING
    assert (only(back, FindingKind.GAP).age_days, back.number) == (0, 3)
    assert only(estate.read(days=-29), FindingKind.GAP).age_days == 1


def test_no_value_of_a_canary_is_in_any_output(estate: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a path, a column and a text of a table are made of it, and where the key is sealed."""
    monkeypatch.delenv("WREN")
    (estate.base / "w" / f"dump-{CANARY}.txt").write_text(f"{MAIL}\n")
    estate.table("ledger", {MAIL: [1], "note": [MAIL]})
    sealing = CliRunner().invoke(command, [*options(estate), "--seal-canary", "wren"], input=f"{CANARY}\n")
    key = sealing.output.strip()
    assert key.startswith("sealed:")
    canary = {"name": "wren", "subject": "user", "key": key, "absent_from": ["app.shipped"]}
    estate.write(JOBS, {**READINESS, "canaries": [canary]}, ("ledger",))
    outputs = tmp_path / "out"
    outputs.mkdir()
    for fmt in ("text", "json", "sarif", "prometheus"):
        page = ["--out", str(outputs / "page.html")]
        run = CliRunner().invoke(command, [*options(estate), "--format", fmt, *page], standalone_mode=False)
        assert run.exception is None, run.output
        assert run.return_value == ExitCode.INCOMPLETE
        (outputs / fmt).write_text(run.stdout + run.stderr)
    assert "canary_unknown_copy" in (outputs / "text").read_text()
    wren = json.loads((outputs / "json").read_text().partition("{\n")[2].join(["{\n", ""]).rpartition("}")[0] + "}")
    assert [c["in_source"] for c in wren["canaries"]] == [True]
    person = Person(values=(CANARY, MAIL))
    written = [p for p in (tmp_path / "state").rglob("*") if p.is_file()]
    assert leaks(person, [outputs, *written, estate.settings.estate_file]) == []


def options(estate: Shop) -> list[str]:
    return ["--estate", str(estate.settings.estate_file), "--state", str(estate.settings.state)]


def test_the_threshold_alone_decides_where_it_is_given(estate: Shop) -> None:
    for limit, code in (("91", ExitCode.DONE), ("92", ExitCode.POLICY_DENIED)):
        run = CliRunner().invoke(command, [*options(estate), "--fail-under", limit], standalone_mode=False)
        assert run.return_value == code, run.output


def test_the_cost_of_one_person_is_estimated_where_it_is_asked_for(estate: Shop) -> None:
    estate.settings.estate_file.write_text(
        estate.settings.estate_file.read_text() + "prices: {spark_hour: 3600.0, currency: USD}\n"
    )
    assert estate.read().cost is None
    found = CliRunner().invoke(command, [*options(estate), "--cost", "--format", "json"], standalone_mode=False)
    cost = json.loads(found.stdout)["cost"]
    assert (cost["currency"], cost["at_least"]) == ("USD", False)
    assert 0 <= cost["low"] < cost["expected"] <= cost["high"]
    one = CliRunner().invoke(command, [*options(estate), "--cost", "--format", "prometheus"], standalone_mode=False)
    assert 'pii_tracer_readiness_erasure_cost{estate="shop",case="high",currency="USD"}' in one.stdout
    text = CliRunner().invoke(command, [*options(estate), "--cost"], standalone_mode=False).stdout
    assert re.search(r"^cost: one person \$[0-9.,]+, between \$[0-9.,]+ and \$[0-9.,]+$", text, re.MULTILINE)


@pytest.mark.parametrize(("value", "told"), [("", "not set"), ("4711", "short number")])
def test_a_canary_that_cannot_be_searched_for_is_refused(
    estate: Shop, monkeypatch: pytest.MonkeyPatch, value: str, told: str
) -> None:
    monkeypatch.setenv("WREN", value)
    with pytest.raises(ConfigError, match=told) as refused:
        estate.read()
    assert "4711" not in str(refused.value)
    assert not (estate.settings.state / "readiness" / "trend.ndjson").exists()
