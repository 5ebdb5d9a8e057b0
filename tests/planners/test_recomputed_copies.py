"""Tables of aggregates that no step writes again: a waiver with a task has their owner compute them again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import pytest

from pii_tracer.lake.formats.delta.vocabulary import DELTA, DELTA_VACUUM
from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.model.actions import COMPUTES, SOURCES
from pii_tracer.model.datasets import Carries, CopyKind, Format, Strategy
from pii_tracer.model.errors import PlanError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import ErasurePlan, Gap
from pii_tracer.model.waivers import OwnerTask
from pii_tracer.review.plan_consistency import contradiction
from planners.copies.scan_evidence import Evidence
from reports.plan.plan_view import PlanView
from tests.planners.smalllake import Lake, copy, hold, strategies
from tests.waivers import waivers_of

UNTIL = datetime(2031, 1, 1, tzinfo=timezone.utc)
NOBODY = Evidence(files=2, files_with_person=0, bytes=9)
TASK = {"owner": "sales team", "act": "run the job of prod.counts again"}
COUNTS = "c-prod.counts"


def lake(**changes: Any) -> Lake:
    """Events with the key, counts of them in CSV files, and sums of the counts in a Delta table."""
    made: dict[str, Any] = {
        "copies": {"events": Subtype.IDENTITY, "counts": Subtype.AGGREGATION, "sums": Subtype.AGGREGATION},
        "inputs": {"counts": "events", "sums": "counts"},
        "sql": {
            "counts": "INSERT OVERWRITE counts SELECT SUM(amount) AS amount FROM events",
            "sums": "INSERT OVERWRITE sums SELECT SUM(amount) AS amount FROM counts",
        },
        "states": {"counts": {"format": Format.CSV, "columns": ()}},
        "seen": {"/w/counts": NOBODY, "/w/sums": NOBODY},
    }
    return Lake(**{**made, **changes})


def waived(lake: Lake, *holds: Any, task: Any = TASK, of: str = "gap-no_way-prod.counts", **more: Any) -> ErasurePlan:
    gaps = [gap for gap in lake.plan(*holds).gaps if gap.id == of]
    assert gaps, "the gap is there"
    others = [gap for gap in lake.plan(*holds).gaps if gap.id != of]
    said = OwnerTask.model_validate(task) if task else None
    return lake.plan(*holds, waivers={**waivers_of(gaps, UNTIL, task=said), **waivers_of(others, UNTIL)}, **more)


def gap_of(plan: ErasurePlan) -> Gap:
    (gap,) = [gap for gap in plan.gaps if gap.id == "gap-no_way-prod.counts"]
    return gap


def test_its_owner_computes_it_again_between_its_sources_and_what_is_made_of_it() -> None:
    plan = waived(lake())
    assert strategies(plan) == {
        "c-prod.users": "delete_by_key",
        "c-prod.events": "delete_by_key",
        COUNTS: "recomputed",
        "c-prod.sums": "rebuild",
    }
    assert (plan.complete, plan.applyable, contradiction(plan)) == (True, True, None)
    steps = {step.id: step for step in plan.steps}
    (task,) = [step for step in plan.steps if step.action == "owner_task"]
    note, look = steps[f"{COUNTS}/01-note-files"], steps[f"{COUNTS}/99-verify"]
    assert {"c-prod.users/99-verify", "c-prod.events/99-verify"} <= set(note.depends_on)
    assert (note.action, note.executor, note.irreversible, note.preconditions) == ("note_files", "verify", False, ())
    assert note.id in task.depends_on
    assert {note.id, task.id} <= set(look.depends_on)
    first = next(step for step in plan.steps if step.copy_ == "c-prod.sums")
    assert look.id in first.depends_on
    assert "recomputes it" in copy(plan, "counts").reason
    (shown,) = PlanView(plan).tasks
    assert "after prod.events, prod.users; before prod.counts" in shown.when


def test_without_a_task_nothing_changes() -> None:
    for plan in (lake().plan(), waived(lake(), task=None)):
        assert (copy(plan, "counts").strategy, plan.applyable) == (Strategy.BLOCKED, False)
        assert not [step for step in plan.steps if step.copy_ == COUNTS]


def test_the_gap_says_what_to_write() -> None:
    assert "task: {owner: TEAM, act: run the job of prod.counts again}" in gap_of(lake().plan()).reason


@pytest.mark.parametrize(
    "seen",
    [
        Evidence(files=2, files_with_person=1, bytes=9, strong=frozenset({"user.uid"})),
        Evidence(files=2, files_with_person=0, bytes=9, unread=("1.csv: torn",)),
        Evidence(files=2, files_with_person=0, bytes=9, weak=frozenset({"text"})),
    ],
    ids=["person", "unread", "digits"],
)
def test_one_in_which_the_search_does_not_find_nobody_stays_blocked(seen: Evidence) -> None:
    plan = waived(lake(seen={"/w/counts": seen, "/w/sums": NOBODY}))
    assert (copy(plan, "counts").strategy, plan.applyable) == (Strategy.BLOCKED, False)
    assert "ask the owner to recompute it" not in gap_of(plan).reason


def test_one_computed_from_what_a_hold_keeps_stays_blocked() -> None:
    plan = waived(lake(), hold("prod.events"))
    assert strategies(plan)["c-prod.events"] == "exempt"
    assert copy(plan, "counts").strategy is Strategy.BLOCKED


def test_one_computed_from_a_blocked_one_stays_blocked() -> None:
    made = lake(states={name: {"format": Format.CSV, "columns": ()} for name in ("counts", "sums")})
    plan = waived(made, of="gap-no_way-prod.sums")
    assert strategies(plan)[COUNTS] == strategies(plan)["c-prod.sums"] == "blocked"


def test_a_part_of_a_plan_computes_nothing_again() -> None:
    plan = waived(lake(), only=("prod.counts",))
    assert copy(plan, "counts").strategy is Strategy.BLOCKED


def test_its_carriage_is_that_of_an_aggregate() -> None:
    assert copy(lake().plan(), "counts").carries is Carries.AGGREGATE


def test_a_task_says_further_copies_before_and_after() -> None:
    made = lake()
    made.copies["calls"] = Subtype.IDENTITY
    plan = waived(made, task={**TASK, "after": ["prod.calls"]})
    (task,) = [step for step in plan.steps if step.action == "owner_task"]
    assert {"c-prod.calls/99-verify", f"{COUNTS}/01-note-files"} <= set(task.depends_on)


NOTE, LOOK, TASK_STEP = f"{COUNTS}/01-note-files", f"{COUNTS}/99-verify", "tasks/01-owner-task"


def stepped(plan: ErasurePlan, step_id: str, **changes: Any) -> ErasurePlan:
    steps = tuple(s.model_copy(update=changes) if s.id == step_id else s for s in plan.steps)
    return plan.model_copy(update={"steps": steps})


def waiting(plan: ErasurePlan, step_id: str, *without: str) -> ErasurePlan:
    """The plan, where a step waits no more for some others."""
    (step,) = [step for step in plan.steps if step.id == step_id]
    assert set(without) <= set(step.depends_on)
    return stepped(plan, step_id, depends_on=tuple(d for d in step.depends_on if d not in without))


def told(plan: ErasurePlan, step_id: str, name: str, value: Any) -> ErasurePlan:
    """The plan, where a step has another parameter."""
    (step,) = [step for step in plan.steps if step.id == step_id]
    return stepped(plan, step_id, parameters={**step.parameters, name: value})


def copied(plan: ErasurePlan, copy_id: str = COUNTS, **changes: Any) -> ErasurePlan:
    copies = tuple(c.model_copy(update=changes) if c.id == copy_id else c for c in plan.copies)
    return plan.model_copy(update={"copies": copies})


def with_more(plan: ErasurePlan) -> ErasurePlan:
    """The plan, where the copy has one step more before its verification."""
    (note,) = [step for step in plan.steps if step.id == NOTE]
    more = note.model_copy(update={"id": f"{COUNTS}/02", "action": DELTA_VACUUM, "executor": "delta"})
    (look,) = [step for step in plan.steps if step.id == LOOK]
    waits = stepped(plan, LOOK, depends_on=(*look.depends_on, more.id))
    return waits.model_copy(update={"steps": (*waits.steps, more)})


def gapped(plan: ErasurePlan, **changes: Any) -> ErasurePlan:
    gaps = tuple(g.model_copy(update=changes) if g.id == "gap-no_way-prod.counts" else g for g in plan.gaps)
    return plan.model_copy(update={"gaps": gaps})


EVENTS, USERS = "c-prod.events/99-verify", "c-prod.users/99-verify"
EDITS: dict[str, tuple[Callable[[ErasurePlan], ErasurePlan], str]] = {
    "no base table": (lambda p: copied(p, kind=CopyKind.SOURCE), "no bare table of aggregates"),
    "a key": (lambda p: copied(p, carries=Carries.KEY), "no bare table of aggregates"),
    "delta": (lambda p: copied(p, format=DELTA), "no bare table of aggregates"),
    "columns": (lambda p: copied(p, columns=copy(p, "events").columns), "has columns of the persons"),
    "match": (lambda p: copied(p, match=copy(p, "events").match), "has columns of the persons"),
    "one step more": (with_more, "other steps than"),
    "another executor": (lambda p: stepped(p, NOTE, executor="people"), "other steps than"),
    "look before the task": (lambda p: waiting(p, LOOK, TASK_STEP), "before its owner computed it again"),
    "look before the note": (lambda p: waiting(p, LOOK, NOTE), "verified before its last step"),
    "task before the note": (lambda p: waiting(p, TASK_STEP, NOTE), "before its owner computed it again"),
    "note before a source": (lambda p: waiting(p, NOTE, EVENTS), "noted before what it is computed from"),
    "note before all": (lambda p: waiting(p, NOTE, EVENTS, USERS), "noted before what it is computed from"),
    "no sources": (lambda p: told(waiting(p, NOTE, EVENTS, USERS), NOTE, SOURCES, []), "what is not erased"),
    "sources of no kind": (lambda p: told(p, NOTE, SOURCES, 7), "what is not erased"),
    "itself": (lambda p: told(p, NOTE, SOURCES, [COUNTS]), "what is not erased"),
    "a kept source": (lambda p: copied(p, "c-prod.events", strategy=Strategy.DESTROY_KEY), "what is not erased"),
    "another gap": (lambda p: gapped(p, dataset=copy(p, "events").dataset), "before its owner computed it again"),
    "another kind of gap": (lambda p: gapped(p, kind=GapKind.LINEAGE), "before its owner computed it again"),
    "a task for another": (lambda p: told(p, TASK_STEP, COMPUTES, ["c-prod.sums"]), "other copies again"),
    "a task for no copy": (lambda p: told(p, TASK_STEP, COMPUTES, []), "other copies again"),
    "not computed again": (lambda p: copied(p, strategy=Strategy.REBUILD), "its files are noted"),
    "a source instead": (lambda p: copied(p, "c-prod.events", strategy=Strategy.RECOMPUTED), "no bare table"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_plan_that_was_edited_is_refused(edit: str) -> None:
    changed, why = EDITS[edit]
    plan = waived(lake())
    assert contradiction(plan) is None
    assert why in str(contradiction(changed(plan)))


def chained(*acts: str) -> ErasurePlan:
    """Counts and the sums of these, both in bare files, each with a task."""
    made = lake(states={name: {"format": Format.CSV, "columns": ()} for name in ("counts", "sums")})
    waivers = {}
    for gap, act in zip(made.plan().gaps, acts, strict=True):
        waivers |= waivers_of([gap], UNTIL, task=OwnerTask(owner="sales team", act=act))
    return made.plan(waivers=waivers)


def test_what_is_computed_from_one_of_them_is_noted_when_that_one_was_verified() -> None:
    plan = chained("run counts", "run sums")
    assert plan.applyable
    (note,) = [step for step in plan.steps if step.id == "c-prod.sums/01-note-files"]
    assert f"{COUNTS}/99-verify" in note.depends_on


def test_one_task_for_both_of_them_is_refused() -> None:
    with pytest.raises(
        PlanError, match=r"prod\.sums uses the same words as a task to recompute its source prod\.counts"
    ) as refused:
        chained("run both", "run both")
    assert "in different words" in str(refused.value.todo)


@pytest.mark.parametrize(
    ("sql", "offered"),
    [
        ("INSERT OVERWRITE counts SELECT SUM(amount) AS amount FROM events", True),
        ("INSERT OVERWRITE counts SELECT SUM(amount) AS amount, current_date() AS day FROM events", True),
        ("CREATE OR REPLACE TABLE counts AS SELECT SUM(amount) AS amount FROM events", True),
        ("CREATE TABLE counts AS SELECT SUM(amount) AS amount FROM events", True),
        ("INSERT INTO counts SELECT SUM(amount) AS amount FROM events", False),
        ("INSERT OVERWRITE counts PARTITION (day = '1') SELECT SUM(amount) AS amount FROM events", False),
        ("MERGE INTO counts USING events ON FALSE WHEN NOT MATCHED THEN INSERT *", False),
        ("", False),
    ],
)
def test_only_a_job_that_overwrites_the_whole_table_is_offered(sql: str, offered: bool) -> None:
    """Appended to an old file, new counts would stand beside old ones."""
    plan = waived(lake(sql={**lake().sql, "counts": sql}))
    assert copy(plan, "counts").strategy is (Strategy.RECOMPUTED if offered else Strategy.BLOCKED)
    assert ("some of its jobs have no recorded statement that overwrites" in gap_of(plan).reason) is not offered
    assert contradiction(plan) is None


def test_one_of_which_the_plan_erases_no_source_stays_blocked() -> None:
    """An earlier run erased them: no step of this plan shows it, so the note of the files could wait for nothing."""
    made = lake(seen={f"/w/{name}": NOBODY for name in ("users", "events", "counts", "sums")})
    plan = waived(made)
    assert not {"c-prod.users", "c-prod.events"} & set(strategies(plan))
    assert (copy(plan, "counts").strategy, contradiction(plan)) == (Strategy.BLOCKED, None)
    assert "this plan erases none of its sources" in gap_of(plan).reason
