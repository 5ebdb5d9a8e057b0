"""What erasing would take from other people with a table's history blocks the plan, before anything is written."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.inventory import (
    Expiry,
    Inventory,
    InventoryGap,
    Ref,
    RefKind,
    TableState,
)
from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.model.datasets import Column, Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.review.drift import compare
from planners.copies.scan_evidence import Evidence
from planners.schedule.step_dates import Retention
from tests.planners.smalllake import NOW, Lake, dataset, hold, kinds, touched
from tests.waivers import waivers_of

ID = "c-prod.a@tag.q1"
TAG = Ref(name="q1", kind=RefKind.TAG, at="7", lost=("note",))
AUDIT = Ref(name="audit", kind=RefKind.BRANCH, at="7")
STATE: dict[str, Any] = {"format": ICEBERG, "refs": (TAG, AUDIT)}
SOON = NOW + timedelta(days=9)


def plan(*holds: Any, state: dict[str, Any] | None = None, **changes: Any) -> ErasurePlan:
    return Lake(states={"a": STATE | (state or {})}).plan(*holds, **changes)


def test_a_reference_with_columns_that_the_table_lacks_is_blocked() -> None:
    made = plan()
    assert made.copy_by_id(ID).strategy is Strategy.BLOCKED
    assert made.copy_by_id("c-prod.a@branch.audit").strategy is Strategy.REWRITE_REF
    assert ID not in touched(made)
    (gap,) = made.gaps
    assert (gap.kind, gap.dataset) == ("ref_schema", dataset("a"))
    assert "the tag q1 has columns" in gap.reason
    assert (
        "(note). A rewrite of the tag would lose other people's values in these columns. Drop the tag"
    ) in gap.reason
    assert not made.applyable


def test_a_waiver_does_not_free_it() -> None:
    (gap,) = plan().gaps
    made = plan(waivers=waivers_of([gap], SOON))
    assert made.complete
    assert not made.applyable
    assert ID not in touched(made)


def test_a_reference_of_a_masked_table_is_blocked_too() -> None:
    columns = tuple(Column(name=c, type="bigint") for c in ("uid", "amount"))
    made = plan(hold("prod.a", columns=["uid"]), state={"columns": columns})
    assert made.copy_by_id("c-prod.a").strategy is Strategy.MASK_COLUMNS
    assert made.copy_by_id(ID).strategy is Strategy.BLOCKED
    assert "ref_schema" in kinds(made)


def test_what_is_held_whole_or_lapses_is_not_written_and_not_blocked() -> None:
    assert "ref_schema" not in kinds(plan(hold("prod.a")))
    lapsing = TAG.model_copy(update={"lapses": (NOW + timedelta(days=3)).isoformat()})
    job = {"job": "upkeep", "does": "expire_snapshots", "tables": ["prod.a"], "every_days": 1}
    lake = Lake(states={"a": STATE | {"refs": (lapsing,), "expiry": Expiry(ran=True)}}, maintenance=(job,))
    assert kinds(lake.plan(retention=Retention.RETAIN)) == []
    assert kinds(lake.plan()) == ["ref_schema"]


def staged(name: str) -> InventoryGap:
    return InventoryGap(
        dataset=dataset(name), kind=GapKind.STAGED_SNAPSHOT, reason="rows staged would be lost", evidence="snapshot 9"
    )


def test_staged_rows_hold_a_copy_back_until_the_gap_is_waived() -> None:
    lake = Lake(states={"a": {"format": ICEBERG, "staged": ("9",)}}, gaps=(staged("a"),))
    made = lake.plan()
    (gap,) = made.gaps
    assert (gap.kind, made.applyable) == (GapKind.STAGED_SNAPSHOT, False)
    assert lake.plan(waivers=waivers_of([gap], SOON)).applyable
    # nothing is written where everything is held
    assert GapKind.STAGED_SNAPSHOT not in kinds(lake.plan(hold("prod.a")))


def test_staged_rows_of_a_table_without_the_person_are_nobodys_business() -> None:
    clean = {"/w/b": Evidence(files=1, files_with_person=0, bytes=1, strong=frozenset())}
    lake = Lake(states={"b": {"format": ICEBERG, "staged": ("9",)}}, gaps=(staged("b"),), seen=clean)
    made = lake.plan()
    assert (kinds(made), made.applyable) == ([], True)
    assert "c-prod.b" not in touched(made)


def test_what_is_staged_after_planning_stops_the_run() -> None:
    made = Lake(copies={"a": Subtype.IDENTITY}, states={"a": {"format": ICEBERG, "staged": ("9",)}}).plan()

    def drift(*ids: str) -> list[str]:
        fields = {"dataset": dataset("a"), "table": "prod.a", "location": "/w/a", "format": ICEBERG}
        columns = (Column(name="uid", type="bigint"),)
        state = TableState(**fields, snapshot="1", columns=columns, staged=ids)  # type: ignore[arg-type]
        return [i.kind for i in compare(made, Inventory(tables=(state,))) if i.target == "/w/a"]

    assert drift("9") == []
    assert drift() == [], "published, dropped, or expired by the run itself"
    assert drift("9", "10") == ["staged"]
