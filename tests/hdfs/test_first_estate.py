"""`init --discover` of places in a real HDFS: what is found, and what somebody is told who cannot look."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pii_tracer.cli.main import run
from pii_tracer.config.estate_file import load_estate
from pii_tracer.model.errors import ExitCode
from tests.app.estate_draft.corrections import corrected
from tests.hdfs.drafted import draft_of, planned, unlike
from tests.hdfs.shop import HELD, MAIL, OTHERS, PERSON, REFILLS, USER, Shop, csv, parquet
from tests.hdfs.tables import delta
from tests.hdfssupport import Hdfs
from tests.hudistores import made_by_hand


@pytest.fixture
def shop(hdfs: Hdfs, tmp_path: Path) -> Shop:
    shop = Shop(hdfs, tmp_path, hdfs.folder())
    shop.no_trash()
    return shop


def test_tables_and_folders_are_found_and_snapshots_wait_for_a_word(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    delta(shop, "crm/customers", [*OTHERS, PERSON])
    shop.export("exports/calls", "day=1/a.csv", csv(PERSON, OTHERS[0]))
    shop.export("exports/bills", "b.parquet", parquet(PERSON, OTHERS[1]))
    shop.put("exports/bills/_temporary/0/b.parquet", parquet(PERSON))
    for path, data in made_by_hand(PERSON, OTHERS[0]).items():
        shop.put(f"crm/trips/{path}", data)
    shop.hdfs.ask(f"{shop.root}/exports", "ALLOWSNAPSHOT")
    shop.hdfs.ask(f"{shop.root}/exports", "CREATESNAPSHOT", snapshotname="s1")
    shop.write()
    text = draft_of(shop, "--discover", f"{shop.hdfs.uri}{shop.root}/")
    estate = load_estate(shop.base / "drafted" / "pii-tracer.yaml")
    assert estate.roots == (f"{shop.hdfs.uri}{shop.root}",)
    assert {(t.name, t.format.value) for t in estate.catalogs["spark_catalog"].tables} == {
        ("crm.customers", "delta"),
        ("crm.trips", "hudi"),
        ("exports.calls", "csv"),
        ("exports.bills", "parquet"),
    }
    [subject] = estate.subjects
    assert (subject.source, subject.key, [table.table for table in subject.tables]) == (
        "crm.customers",
        "uid",
        ["crm.trips"],
    )
    assert "# - {table: exports.bills, key: uid}   # 100% of its keys are in the source. Load the" in text
    for path in ("exports/.snapshot/s1", "exports/bills/_temporary"):
        assert f"#   - {{path: {shop.root}/{path}, owner: NAME, reason: WHY}}" in text
    said = capsys.readouterr()
    assert "found 4 tables and folders with data" in said.out
    assert not [value for value in (USER, MAIL) if value in text + said.out + said.err]


def test_the_plan_is_that_of_an_estate_by_hand(shop: Shop) -> None:
    shop.export("exports/calls", "a.csv", csv(PERSON, OTHERS[0]))
    delta(shop, "lake/users", [PERSON, OTHERS[0]])
    place = f"{shop.hdfs.uri}{shop.root}"
    tables = [
        {"name": "shop.users", "format": "parquet", "location": "tables/users"},
        {"name": "exports.calls", "format": "csv", "location": f"{place}/exports/calls"},
        {"name": "lake.users", "format": "delta", "location": f"{place}/lake/users"},
    ]
    code, by_hand = shop.plan(catalogs={"spark_catalog": {"type": "declared", "tables": tables}})
    assert (code, [gap["id"] for gap in by_hand["gaps"]]) == (0, [REFILLS])
    text = draft_of(shop, "--discover", str(shop.base / "tables"), "--discover", place)
    changes = {
        "tables.users": "shop.users",
        "# archives, backups": f"holds: {json.dumps([HELD])}\n# archives, backups",
    }
    text, lines = corrected(text, changes)
    assert lines <= 10
    code, plan = planned(shop, text)
    assert (code, unlike(plan, by_hand)) == (0, [])


def refused(capsys: pytest.CaptureFixture[str], tmp_path: Path, *words: str) -> str:
    code = run(["init", str(tmp_path / "d"), "--state", str(tmp_path / "d" / "state"), "--discover", *words])
    assert code == ExitCode.USAGE
    assert not (tmp_path / "d").exists()
    return capsys.readouterr().err


def test_who_cannot_look_is_told_what_to_type(shop: Shop, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = shop.put("shut/a.csv", csv(PERSON))
    shop.hdfs.ask(f"{shop.root}/shut", "SETPERMISSION", permission="700")
    reach = ["--webhdfs", shop.hdfs.webhdfs, "--hdfs-user"]
    at = f"{shop.hdfs.uri}{shop.root}"
    told_so = refused(capsys, tmp_path, f"{at}/shut", *reach, "stranger")
    assert "add `--hdfs-user NAME` with a user who may list and read there" in told_so
    told_so = refused(capsys, tmp_path, f"{at}/nowhere", *reach, "lake")
    assert "there is no such folder in HDFS" in told_so
    assert f"`hdfs dfs -ls {at}` shows what is" in told_so
    assert "there is no such folder in HDFS" in refused(capsys, tmp_path, f"{shop.hdfs.uri}{file}", *reach, "lake")
    told_so = refused(capsys, tmp_path, f"{at}/shut", "--webhdfs", "http://127.0.0.1:1", "--hdfs-user", "lake")
    assert "check `--webhdfs`" in told_so
