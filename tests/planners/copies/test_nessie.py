"""Tables under Nessie in the plan: every reference is a copy, and what cannot be treated everywhere is treated nowhere."""

from __future__ import annotations

import pytest

from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG, ICEBERG_REMOVE_ORPHANS, ICEBERG_REWRITE_REF
from pii_tracer.lake.inventory import (
    Inventory,
    NessieTable,
    Ref,
    RefKind,
    Sharing,
    TableState,
)
from pii_tracer.model.datasets import (
    Carries,
    CopyKind,
    DatasetId,
    Match,
    MatchTerm,
    Strategy,
)
from pii_tracer.model.plan import Copy, Step
from pii_tracer.review.drift import World, hard, step_drift
from planners.copies.archives_and_branches import with_history
from planners.copies.executor_support import unsupported
from planners.schedule.step_order import order
from planners.step_drafts import CopyDraft, Draft
from planners.steps import write_steps
from tests.reports.example import example_plan

PLACE = "/lake/db/people"
DEV = Ref(name="dev", kind=RefKind.NESSIE_BRANCH, at="7", table="nes.db.people@dev")
TAG = Ref(name="q1", kind=RefKind.NESSIE_TAG, at="7", table="nes.db.people@q1")
MAIN = NessieTable(catalog="nes", ref="main", kind=RefKind.NESSIE_BRANCH)
SHARER = Sharing(table="lake.a", location="/lake/a", format=ICEBERG, files=("/lake/a/1.parquet",))


def state(*refs: Ref, **changes: object) -> TableState:
    base = TableState(
        dataset=DatasetId(namespace="file", name=PLACE),
        table="nes.db.people",
        location=PLACE,
        format=ICEBERG,
        snapshot="8",
        columns=(),
        refs=refs,
        nessie=MAIN,
        properties={"gc.enabled": "false"},
    )
    return base.model_copy(update=changes)


def drafts(found: TableState) -> tuple[Draft, ...]:
    copy = Copy(
        id="c-people",
        kind=CopyKind.SOURCE,
        dataset=found.dataset,
        table=found.table,
        location=found.location,
        format=found.format,
        carries=Carries.KEY,
        strategy=Strategy.DELETE_BY_KEY,
        columns=(),
        lineage=(),
        reason="",
        match=Match(terms=(MatchTerm(column="uid", access=(), key_set="uid", type="string"),)),
        facts={"nessie": "nes"},
    )
    return order(write_steps(with_history([CopyDraft(copy=copy, state=found)]), "plan-1"), ["uid"])


def test_nothing_is_removed_before_every_reference_is_erased() -> None:
    steps = drafts(state(DEV, TAG))
    ids = [draft.id for draft in steps]
    sweep = next(d for d in steps if d.action is ICEBERG_REMOVE_ORPHANS)
    rewritten = [d for d in steps if d.action is ICEBERG_REWRITE_REF]
    assert [(d.parameters["table"], d.parameters["kind"]) for d in rewritten] == [
        ("nes.db.people@dev", "nessie-branch"),
        ("nes.db.people@q1", "nessie-tag"),
    ]
    assert all(ids.index(d.id) < ids.index(sweep.id) for d in rewritten)
    assert sweep.parameters["references"] == ["nessie-branch dev", "nessie-branch main", "nessie-tag q1"]
    assert {d.executor for d in steps if d.copy} == {"nessie", "verify"}


def test_references_whose_names_are_alike_are_two_copies() -> None:
    first = DEV.model_copy(update={"name": "a/b", "table": "nes.db.people@a/b"})
    second = DEV.model_copy(update={"name": "a-b", "table": "nes.db.people@a-b"})
    steps = drafts(state(first, second))
    assert len({d.copy for d in steps if d.action is ICEBERG_REWRITE_REF}) == 2


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (state(nessie=NessieTable(catalog="nes", ref="q1", kind=RefKind.NESSIE_TAG)), "only tags"),
        (state(Ref(name="dev/own", kind=RefKind.BRANCH, at="7")), "has Iceberg branches or tags"),
        (state(Ref(name="own", kind=RefKind.TAG, at="7")), "has Iceberg branches or tags"),
        (state(DEV, TAG.model_copy(update={"name": "v1.0", "table": None})), "first v1.0"),
        (state(table=None), "with a name that SQL cannot write"),
        (state(sharing=(SHARER,)), "shares data files"),
        (state(outside=("/lake/a/1.parquet",)), "shares data files"),
    ],
)
def test_what_cannot_be_treated_on_every_reference_is_blocked(found: TableState, told: str) -> None:
    reason = unsupported(found)
    assert reason is not None
    assert told in reason


def test_branches_and_tags_are_treated() -> None:
    assert unsupported(state(DEV, TAG)) is None


def test_a_branch_made_after_planning_is_drift() -> None:
    first = next(d for d in drafts(state(DEV)) if d.preconditions)
    plain = example_plan().steps[0]
    step: Step = plain.model_copy(update={"id": first.id, "copy_": first.copy, "preconditions": first.preconditions})
    assert step_drift(step, World.of(Inventory(tables=(state(DEV),)))) == []
    late = DEV.model_copy(update={"name": "late", "table": "nes.db.people@late"})
    (found,) = hard(step_drift(step, World.of(Inventory(tables=(state(DEV, late),)))))
    assert found.kind == "refs"
