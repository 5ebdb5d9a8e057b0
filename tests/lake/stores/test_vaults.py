"""What is in a Glacier vault, by its newest inventory; without one that is new enough, a gap."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pii_tracer.config.glacier_vaults import Vault, wrong_vaults
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.lake.stores.glacier.vault_discovery import discover_vaults
from pii_tracer.lake.stores.glacier.vault_state import VaultState
from pii_tracer.model.datasets import PLAIN
from tests.glaciersupport import REGION, StrictGlacier, glacier, server

__all__ = ["glacier", "server"]


def vault(glacier: StrictGlacier, **more: Any) -> Vault:
    told = {"name": "cold", "of": "lake.payments", "vault": "cold", "region": REGION, "format": "parquet"}
    return Vault.model_validate({**told, "endpoint_url": glacier.endpoint, **more})


def found(glacier: StrictGlacier, base: Path, **more: Any) -> tuple[tuple[VaultState, ...], tuple[InventoryGap, ...]]:
    return discover_vaults((vault(glacier, **more),), base, glacier.now)


def saved(glacier: StrictGlacier, base: Path) -> Path:
    path = base / "inventory.json"
    path.write_text(json.dumps(glacier.inventory))
    return path


def test_the_newest_inventory_tells_what_is_there(glacier: StrictGlacier, tmp_path: Path) -> None:
    first = glacier.put(b"one", "2019")
    glacier.advance(hours=13)
    glacier.ask()
    glacier.advance(hours=5)
    second = glacier.put(b"two")
    [state], gaps = found(glacier, tmp_path)
    assert not gaps
    assert [(a.id, a.description, a.size) for a in state.archives] == [(first, "2019", 3)]
    glacier.advance(hours=20)
    glacier.ask()
    glacier.advance(hours=5)
    [state], _ = found(glacier, tmp_path)
    assert {a.id for a in state.archives} == {first, second}


def test_without_an_inventory_nobody_can_tell(glacier: StrictGlacier, tmp_path: Path) -> None:
    glacier.put(b"one")
    states, [gap] = found(glacier, tmp_path)
    assert not states
    assert gap.kind == "vault_inventory"
    assert "aws glacier initiate-job" in gap.evidence
    glacier.advance(hours=13)
    glacier.ask()
    assert found(glacier, tmp_path)[1], "a job that runs tells nothing"
    glacier.advance(hours=5)
    assert not found(glacier, tmp_path)[1]
    glacier.advance(hours=25)
    assert found(glacier, tmp_path)[1], "its output expired"
    assert len(glacier.jobs) == 0, "planning starts no job"


def test_a_saved_inventory_counts_until_it_is_too_old(glacier: StrictGlacier, tmp_path: Path) -> None:
    key = glacier.put(b"one")
    glacier.advance(hours=13)
    name = saved(glacier, tmp_path).name
    [state], gaps = found(glacier, tmp_path, inventory=name)
    assert not gaps
    assert [a.id for a in state.archives] == [key]
    glacier.advance(hours=80)
    states, [gap] = found(glacier, tmp_path, inventory=name)
    assert not states
    assert "older than 72 hours" in gap.reason
    assert not found(glacier, tmp_path, inventory=name, max_age_hours=200)[1]


def test_an_inventory_of_the_future_or_of_nothing_is_none(glacier: StrictGlacier, tmp_path: Path) -> None:
    glacier.put(b"one")
    glacier.advance(hours=13)
    path = saved(glacier, tmp_path)
    assert found(glacier, tmp_path, inventory="missing.json")[1][0].kind == "vault_inventory"
    told = json.loads(path.read_text())
    told["InventoryDate"] = (glacier.now + timedelta(days=1)).isoformat()
    path.write_text(json.dumps(told))
    assert found(glacier, tmp_path, inventory=path.name)[1][0].kind == "vault_inventory"
    for broken in ("{}", "[", '{"ArchiveList": 3, "InventoryDate": "2026-01-01"}'):
        path.write_text(broken)
        assert "not a vault inventory" in found(glacier, tmp_path, inventory=path.name)[1][0].reason


def test_an_archive_that_the_manifest_does_not_know_can_hold_anybody(glacier: StrictGlacier, tmp_path: Path) -> None:
    ours, others, unknown, empty = (glacier.put(body) for body in (b"1", b"2", b"3", b"4"))
    glacier.advance(hours=13)
    name = saved(glacier, tmp_path).name
    tables = {ours: ["Lake.Payments", "lake.users"], others: ["lake.logs"], empty: []}
    (tmp_path / "manifest.json").write_text(json.dumps(tables))
    [state], gaps = found(glacier, tmp_path, inventory=name, manifest="manifest.json")
    assert not gaps
    assert {a.id for a in state.archives if not a.of_others} == {ours, unknown, empty}
    for alike in ("payments", "spark_catalog.lake.payments", "/data/payments"):
        (tmp_path / "manifest.json").write_text(json.dumps({ours: [alike], others: ["other.payments"]}))
        [state], _ = found(glacier, tmp_path, inventory=name, manifest="manifest.json")
        assert {a.id for a in state.archives if a.of_others} == {others}, "what may be its own table is looked into"
    (tmp_path / "manifest.json").write_text("[]")
    [state], [gap] = found(glacier, tmp_path, inventory=name, manifest="manifest.json")
    assert gap.kind == "vault_manifest"
    assert len([a for a in state.archives if not a.of_others]) == 4


def test_an_unreachable_vault_is_a_gap(glacier: StrictGlacier, tmp_path: Path) -> None:
    states, [gap] = found(glacier, tmp_path, vault="warm")
    assert not states
    assert "ResourceNotFoundException" in gap.reason


def test_the_declaration(glacier: StrictGlacier) -> None:
    with pytest.raises(ValidationError, match="cannot be rewritten"):
        vault(glacier, format="delta")
    assert vault(glacier, format="delta", delete_whole="snapshots of a table that is kept elsewhere")
    assert {vault(glacier, format=f).format for f in PLAIN} == PLAIN
    with pytest.raises(ValidationError, match="vault"):
        vault(glacier, vault="cold; rm -rf /")
    twice = [vault(glacier), vault(glacier, name="other")]
    assert wrong_vaults(twice) == "a vault is declared twice"
    assert wrong_vaults([twice[0], twice[0]]) == "two vaults have one name"
