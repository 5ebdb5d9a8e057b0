"""Glacier vaults in a plan: fetched, rewritten, deleted, awaited; whole archives only where the estate says why."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pii_tracer.config.estate_file import Prices
from pii_tracer.config.glacier_vaults import Vault
from pii_tracer.lake.stores.glacier.vault_state import VaultArchive, VaultState
from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import CopyKind, DatasetId, Strategy
from pii_tracer.model.plan import ErasurePlan, Step
from planners.schedule.step_dates import INVENTORY_LAG
from tests.planners.smalllake import NOW, Lake

COPY = "c-r-cold"


def archive(key: str, days: int = 400, **more: Any) -> VaultArchive:
    created = (NOW - timedelta(days=days)).isoformat()
    fields = {"id": key, "description": "", "created": created, "size": 10**9, "tree_hash": "ab", **more}
    return VaultArchive.model_validate(fields)


def state(*archives: VaultArchive, **more: Any) -> VaultState:
    told = {"name": "cold", "of": "prod.a", "vault": "cold", "region": "r", "format": "parquet", **more}
    return VaultState(
        dataset=DatasetId(namespace="glacier://r", name="cold"),
        declared=Vault.model_validate(told),
        taken=NOW - timedelta(hours=20),
        archives=archives,
    )


def lake(found: VaultState, **more: Any) -> Lake:
    return Lake(vaults=(found,), **more)


def steps(plan: ErasurePlan) -> list[Step]:
    return [s for s in plan.steps if s.copy_ == COPY]


def actions(plan: ErasurePlan) -> list[Action]:
    return [s.action for s in steps(plan)]


def test_archives_are_fetched_rewritten_deleted_and_awaited() -> None:
    plan = lake(state(archive("1"), archive("2"), archive("3", of_others=True))).plan()
    [copy] = [c for c in plan.copies if c.id == COPY]
    assert (copy.kind, copy.strategy) == (CopyKind.ARCHIVE, Strategy.RESTORE_REWRITE_ARCHIVE)
    assert actions(plan) == [
        Action.VAULT_RETRIEVE,
        Action.VAULT_REWRITE,
        Action.VAULT_DELETE,
        Action.VAULT_AWAIT_INVENTORY,
        Action.VERIFY_COPY,
    ]
    retrieve, rewrite, delete, wait, _ = steps(plan)
    assert [[a["id"] for a in s.parameters["archives"]] for s in (retrieve, rewrite, delete)] == [["1", "2"]] * 3
    assert rewrite.parameters["match"]["terms"]
    assert (delete.parameters["rewritten_by"], wait.parameters["deleted_by"]) == (rewrite.id, delete.id)
    assert wait.parameters["others"] == ["3"]
    assert [s.irreversible for s in (retrieve, rewrite, delete, wait)] == [False, False, True, False]
    assert wait.earliest_finish - wait.earliest_start >= INVENTORY_LAG
    assert plan.applyable


def test_whole_archives_go_only_with_a_reason_that_reviewers_see() -> None:
    plan = lake(state(archive("1"), delete_whole="kept in the lake, too")).plan()
    assert actions(plan) == [Action.VAULT_DELETE, Action.VAULT_AWAIT_INVENTORY, Action.VERIFY_COPY]
    assert steps(plan)[0].parameters["rewritten_by"] is None
    assert ("vault_delete_whole", "glacier://r/cold: kept in the lake, too") in [
        (o.kind, o.reason) for o in plan.overrides
    ]


def test_rows_that_no_key_finds_block_the_vault() -> None:
    aggregates = {"a": Subtype.AGGREGATION}
    plan = lake(state(archive("1")), copies=aggregates).plan()
    [copy] = [c for c in plan.copies if c.id == COPY]
    assert copy.strategy is Strategy.BLOCKED
    assert "delete_whole" in copy.reason
    assert not plan.applyable
    whole = lake(state(archive("1"), delete_whole="derived"), copies=aggregates).plan()
    assert actions(whole)[0] is Action.VAULT_DELETE


def test_descriptions_that_tell_who_it_is_stand_in_no_plan() -> None:
    named = lake(state(archive("1", description="anita@example.org")), named={"glacier://r/cold": 1})
    plan = named.plan()
    assert "anita" not in plan.model_dump_json()
    assert not plan.applyable
    assert any(g.kind == "object_names" for g in plan.gaps)


def test_a_vault_of_something_else_or_with_nothing_of_it_is_no_copy() -> None:
    for found in (state(archive("1"), of="elsewhere"), state(archive("1", of_others=True)), state()):
        assert not steps(lake(found).plan())


@pytest.mark.parametrize(("days", "months"), [(400, 0), (60, 1), (0, 3)])
def test_deleting_before_ninety_days_costs_the_rest(days: int, months: int) -> None:
    prices = Prices(storage_gb_month=10, restore_gb=2, archive_object=5)
    plan = lake(state(archive("1", days))).plan(prices=prices)
    cost = {s.action: s.estimate.cost for s in steps(plan)}
    assert cost[Action.VAULT_RETRIEVE] == 2
    assert cost[Action.VAULT_REWRITE] == 5
    assert cost[Action.VAULT_DELETE] == pytest.approx(10 * months, abs=0.2)
