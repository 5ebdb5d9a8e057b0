"""A table that lost the person and what was stored of it before, from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from pii_tracer.cli.main import run
from tests.s3support import REGION, World, parquet, standin, world

__all__ = ["standin", "world"]

PERSON = "998800776655"
OTHERS = ("991122334400", "991122334401")
OPTIONS = ("--retention", "immediate", "--reason", "test", "--out", "p.plan.json")


def write(place: Path, *people: str) -> None:
    place.mkdir(parents=True)
    pq.write_table(pa.table({"uid": [*people], "amount": [1.0] * len(people)}), place / "part-0.parquet")


def estate(base: Path, endpoint: str, bucket: str, of: str) -> None:
    """Orders of this year without the person; last year's are in a bucket and in a backup."""
    write(base / "tables" / "users", PERSON, *OTHERS)
    write(base / "tables" / "orders", *OTHERS)
    (base / "jobs.sql").write_text("CREATE TABLE shop.orders AS SELECT uid, 1.0 AS amount FROM shop.users;\n")
    tables = [{"name": f"shop.{n}", "format": "parquet", "location": f"tables/{n}"} for n in ("users", "orders")]
    content = {
        "version": 1,
        "estate": "shop",
        "environment": "local",
        "catalogs": {"spark_catalog": {"type": "declared", "tables": tables}},
        "roots": ["tables"],
        "lineage": {"sql": ["jobs.sql"]},
        "subjects": [{"name": "user", "source": "shop.users", "key": "uid"}],
        "s3": {"endpoint_url": endpoint, "region": REGION},
        "archives": [{"name": "old", "of": of, "bucket": bucket, "prefix": "orders/", "format": "parquet"}],
        "backups": [{"name": "tape", "of": ["Shop.Orders"], "owner": "dba", "location": "cellar", "due_days": 3}],
    }
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(content))
    subject = {"type": "user", "key": PERSON}
    request = {"id": "R-1", "law": "DPDP", "received": "2026-01-01T09:00:00+05:30", "subject": subject}
    (base / "policy.yaml").write_text("version: 1\n")
    (base / "request.yaml").write_text(yaml.safe_dump(request))


def planned(base: Path, world: World, monkeypatch: pytest.MonkeyPatch, of: str) -> tuple[int, dict[str, Any]]:
    bucket = world.new("years")
    world.put(bucket, "orders/2025.parquet", parquet(pa.table({"uid": [PERSON, *OTHERS], "amount": [2.0] * 3})))
    estate(base, world.endpoint_url, bucket, of)
    monkeypatch.chdir(base)
    code = run(["plan", "request.yaml", *OPTIONS])
    return code, json.loads((base / "p.plan.json").read_text())


def test_last_years_archive_and_backup_are_planned_for(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, made = planned(tmp_path, world, monkeypatch, "shop.orders")
    assert code == 0
    copies = {c["kind"]: c for c in made["copies"]}
    assert {k: c["strategy"] for k, c in copies.items()} == {
        "SOURCE": "delete_by_key",
        "ARCHIVE": "restore_rewrite_archive",
        "BACKUP": "confirm",
    }
    assert [e["table"] for e in made["examined"]] == ["shop.orders"]
    assert "tape" in capsys.readouterr().out
    for form in ("markdown", "html"):
        assert run(["show", "p.plan.json", "--format", form]) == 0
        assert "restore" in capsys.readouterr().out


def test_an_archive_of_a_dropped_table_is_told(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, made = planned(tmp_path, world, monkeypatch, "shop.orders_2019")
    assert code == 3
    assert [g["kind"] for g in made["gaps"]] == ["archive_unmatched"]
    assert "shop.orders_2019" in capsys.readouterr().out
