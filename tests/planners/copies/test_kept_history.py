"""An Iceberg table under `keep_history`: planned as a whole with its history, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.inventory import KeptHistory, Ref, RefKind, Sharing
from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.plan import KEEPS_HISTORY, ErasurePlan
from planners.schedule.step_dates import Retention
from tests.planners.smalllake import Lake, copy, hold, kinds

REFS = (Ref(name="q1", kind=RefKind.TAG, at="7", lost=("note",)), Ref(name="dev", kind=RefKind.BRANCH, at="7"))


def lake(kept: KeptHistory | None = None, **state: Any) -> Lake:
    told = {"format": ICEBERG, "refs": REFS, "versions": 4, "kept_history": kept or KeptHistory(), **state}
    return Lake(states={"a": told})


def steps(plan: ErasurePlan) -> list[str]:
    return [s.action.value for s in plan.steps if s.copy_ == "c-prod.a"]


def blocked(plan: ErasurePlan) -> str:
    """Why the table is."""
    assert copy(plan, "a").strategy is Strategy.BLOCKED
    assert not plan.applyable
    (gap,) = (g for g in plan.gaps if g.dataset is not None and g.dataset.name == "/w/a")
    return gap.reason


def test_every_snapshot_branch_and_tag_is_written_again_in_one_step() -> None:
    plan = lake().plan()
    assert steps(plan) == ["iceberg_rewrite_history", "iceberg_remove_orphans", "verify_copy"]
    assert plan.applyable
    assert kinds(plan) == [], "that the tag has a column more is no loss now"
    assert {c.id for c in plan.copies} == {"c-prod.users", "c-prod.a", "c-prod.b"}
    assert copy(plan, "a").facts == {KEEPS_HISTORY: True}
    rewrite, sweep, _ = (s for s in plan.steps if s.copy_ == "c-prod.a")
    assert (rewrite.irreversible, sweep.irreversible) == (False, True)
    assert rewrite.parameters["snapshots"] == 4
    for told in ("every snapshot, branch and tag", "summaries", "Statistics files", "are removed"):
        assert told in rewrite.reason


def test_without_the_word_snapshots_expire() -> None:
    plan = Lake(states={"a": {"format": ICEBERG}}).plan()
    assert "iceberg_expire_snapshots" in steps(plan)
    assert "iceberg_rewrite_history" not in steps(plan)
    assert copy(plan, "a").facts == {}


def test_nothing_waits_for_time_travel_to_end() -> None:
    dates = {}
    for made in (lake(), Lake(states={"a": {"format": ICEBERG, "versions": 4}})):
        plan = made.plan(retention=Retention.RETAIN, override_reason="")
        dates[len(dates)] = max(s.earliest_finish for s in plan.steps if s.copy_ == "c-prod.a")
    assert dates[0] < dates[1]


def test_what_stands_against_it_blocks_the_table() -> None:
    why = blocked(lake(KeptHistory(obstacles=("its format version is 3", "second"))).plan())
    assert "whose history must be kept (`keep_history`), and its format version is 3" in why
    assert "remove the table from `keep_history`; then a step expires its snapshots" in why


def test_shared_files_block_it() -> None:
    sharing = (Sharing(table="prod.twin", location="/w/twin", format=ICEBERG, files=("/w/a/f.parquet",)),)
    assert "it shares data files with prod.twin" in blocked(lake(sharing=sharing).plan())


@pytest.mark.parametrize(("late", "stays"), [(("amount",), True), (("uid",), False)])
def test_a_key_that_is_younger_than_a_snapshot_blocks_it(late: tuple[str, ...], stays: bool) -> None:
    plan = lake(KeptHistory(late=late)).plan()
    if stays:
        assert plan.applyable
    else:
        assert "its columns with a key (uid) are younger than some of its snapshots" in blocked(plan)


def test_a_table_without_a_key_is_not_rebuilt() -> None:
    made = Lake(
        copies={"a": Subtype.AGGREGATION},
        states={"a": {"format": ICEBERG, "kept_history": KeptHistory()}},
        sql={"a": "INSERT OVERWRITE a SELECT SUM(amount) AS amount FROM users"},
    )
    assert "its query does not produce its older snapshots" in blocked(made.plan())


def test_a_hold_on_columns_does_not_mask_it() -> None:
    plan = lake().plan(hold("prod.a", columns=["uid"]))
    assert copy(plan, "a").strategy is not Strategy.MASK_COLUMNS
    assert not steps(plan) or "iceberg_mask_rows" not in steps(plan)
