"""A declared vault on the command line: seen, planned, drift-free; without an inventory the plan is incomplete."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.e2e import shredded
from tests.glaciersupport import REGION, StrictGlacier, strict_glacier


@pytest.fixture
def glacier() -> Iterator[StrictGlacier]:
    with strict_glacier() as running:
        yield running


def build(base: Path, glacier: StrictGlacier) -> None:
    shredded.build(base)
    glacier.now = datetime(2026, 1, 1, tzinfo=timezone.utc)  # before this machine's time, whatever that is
    glacier.next_inventory = glacier.now
    vault = {
        "name": "old",
        "max_age_hours": 10**6,
        "of": "tel.users",
        "vault": "cold",
        "region": REGION,
        "format": "parquet",
    }
    shredded.estate(base, keys=[], backups=[], vaults=[{**vault, "endpoint_url": glacier.endpoint}])
    sink = io.BytesIO()
    pq.write_table(
        pa.table({"caller": [shredded.PERSON, "U-880001"], "phone": [shredded.PHONE, "+919800000001"]}), sink
    )
    glacier.put(sink.getvalue(), "users 2019")


def planned(base: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((base / "p.plan.json").read_text())
    return found


def test_a_vault_is_planned_from_its_inventory(
    glacier: StrictGlacier, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build(tmp_path, glacier)
    assert shredded.plan(tmp_path) == 3
    gaps = {g["kind"]: g for g in planned(tmp_path)["gaps"]}
    assert "aws glacier initiate-job" in gaps["vault_inventory"]["evidence"]
    glacier.advance(hours=13)
    glacier.ask()
    glacier.advance(hours=5)
    capsys.readouterr()
    assert shredded.cli(tmp_path, "inventory", "--format", "json") == 0
    [seen] = json.loads(capsys.readouterr().out)["vaults"]
    assert [a["description"] for a in seen["archives"]] == ["users 2019"]
    shredded.plan(tmp_path)
    made = planned(tmp_path)
    assert not [g for g in made["gaps"] if g["kind"] == "vault_inventory"]
    [copy] = [c for c in made["copies"] if c["location"] == f"glacier://{REGION}/cold"]
    assert (copy["kind"], copy["strategy"]) == ("ARCHIVE", "restore_rewrite_archive")
    assert [s["action"] for s in made["steps"] if s["copy"] == copy["id"]] == [
        "vault_retrieve",
        "vault_rewrite",
        "vault_delete",
        "vault_await_inventory",
        "verify_copy",
    ]
    assert shredded.PHONE not in (tmp_path / "p.plan.json").read_text()
    assert shredded.cli(tmp_path, "drift", str(tmp_path / "p.plan.json")) == 0
