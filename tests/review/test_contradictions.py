"""Plans that were edited by hand into what no planner writes are refused, each by the rule that is meant."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import CopyKind, ElementAccess, Match, MatchTerm, Strategy
from pii_tracer.model.errors import ReviewError
from pii_tracer.model.non_key_columns import NotKeys
from pii_tracer.model.plan import ErasurePlan, Exemption, Gap, HeldColumn, Mask, Mention, Override, PlannedHold, Totals
from pii_tracer.model.waivers import Waiver
from pii_tracer.review.plan_consistency import contradiction
from pii_tracer.review.plan_file import parse_plan
from tests.review.plans import DEADLINE, NOW, acts, copy, plan, snapshot, step

EXEMPTION = Exemption(holds=("h1",), until=None)
KEPT = copy("c2", strategy=Strategy.EXEMPT, exemption=EXEMPTION)
MASK = Mask(columns=("mail",), held=(HeldColumn(name="pan", holds=("h1",), until=None),), found_by=())
MENTION = Mention(match=Match(terms=()), mask=Mask(columns=("payee",), held=()))
NOTHING = Mention(match=Match(terms=()), mask=Mask(columns=(), held=()))
IN_LIST = Match(
    terms=(MatchTerm(column="riders", access=(ElementAccess(name="element"),), key_set="rider.id", type="string"),)
)
OPEN = Gap(id="g1", dataset=None, kind="unreadable", reason="r", evidence="e")
WAIVED = OPEN.model_copy(update={"waiver": Waiver(who="asha", why="w", until=DEADLINE)})
BACKUP = copy("b1", kind=CopyKind.BACKUP, strategy=Strategy.CONFIRM)
ROWS = [
    step("c1/1", preconditions=[snapshot("/lake/c1")]),
    step("c1/2", after=["c1/1"], action=Action.VERIFY_COPY),
]


def hold(*copies: str) -> PlannedHold:
    fields: dict[str, Any] = {"id": "h1", "kind": "legal", "basis": "b", "citation": "c", "from": NOW, "until": None}
    return PlannedHold(**fields, approver="dpo", copies=copies)


def totals(**changes: Any) -> Callable[[ErasurePlan], ErasurePlan]:
    return lambda made: made.model_copy(update={"totals": Totals(**{**made.totals.model_dump(), **changes})})


def of(**changes: Any) -> Callable[[ErasurePlan], ErasurePlan]:
    return lambda made: made.model_copy(update=changes)


FOUND_BY = Match(terms=(MatchTerm(column="Rider", key_set="rider.id", type="string"),))
NUMBERS = NotKeys(
    table="lake.c1",
    column="driver",
    dataset=copy().dataset,
    location="/lake/c1",
    labels=("driver",),
    key_sets=("rider.id",),
    owner="Ravi Nair",
    reason="drivers",
)
SHOWN = (Override(kind="not_keys", reason=NUMBERS.told),)
ELSEWHERE = NUMBERS.model_copy(update={"labels": ("driver", "rider")})


RIGHT = {
    "one copy": plan(),
    "rows with their snapshot": plan(ROWS),
    "kept by a hold": plan(copies=[copy(), KEPT], holds=(hold("c2"),)),
    "kept in part": plan(
        copies=[copy(strategy=Strategy.MASK_COLUMNS, exemption=EXEMPTION, mask=MASK)], holds=(hold("c1"),)
    ),
    "cleared in rows of others": plan(copies=[copy(strategy=Strategy.CLEAR_MENTIONS, mentions=(MENTION,))]),
    "a list without her in rows of others": plan(
        copies=[copy(strategy=Strategy.CLEAR_MENTIONS, mentions=(NOTHING.model_copy(update={"match": IN_LIST}),))]
    ),
    "numbers of others": plan(copies=[copy(match=FOUND_BY)], not_keys=(NUMBERS,), overrides=SHOWN),
    "a gap is open": plan(gaps=[OPEN]),
    "a gap is waived": plan(gaps=[WAIVED]),
    "a backup": plan([step("b1/1", "b1", action=Action.BACKUP_CONFIRM)], [BACKUP]),
}

WRONG: dict[str, tuple[str, Callable[[ErasurePlan], ErasurePlan], str]] = {
    "a folder above": ("one copy", of(plan_id="../plan"), "cannot be the name of a file"),
    "a row that stays, and nothing that goes from it": (
        "cleared in rows of others",
        of(copies=(copy(strategy=Strategy.CLEAR_MENTIONS, mentions=(NOTHING,)),)),
        "does not say what becomes of these",
    ),
    "rows that go by one of a list": (
        "one copy",
        of(copies=(copy(match=IN_LIST),)),
        "takes rows for the persons' that have them in a list",
    ),
    "one id twice": ("one copy", of(copies=(copy(), copy())), "have one id"),
    "a step of nobody": ("one copy", of(copies=()), "for a copy that is not there"),
    "a wait for nothing": ("one copy", of(steps=acts(copy())[1:]), "waits for a step that is not there"),
    "a path of nothing": ("one copy", totals(critical_path=("c9/1",)), "the critical path names"),
    "no look": ("one copy", of(steps=acts(copy())[:1]), "copies.0 has no verification"),
    "no steps": ("one copy", of(steps=()), "copies.0 has no verification"),
    "a look too early": (
        "one copy",
        of(steps=(acts(copy())[0], step("c1/2", action=Action.VERIFY_COPY))),
        "verified before its last step",
    ),
    "exempt and erased": (
        "kept by a hold",
        lambda made: made.model_copy(update={"steps": (*made.steps, step("c2/1", "c2"))}),
        "copies.1 is kept or blocked, and has steps",
    ),
    "a backup nobody is asked for": ("a backup", of(steps=()), "nobody is asked to confirm"),
    "a table that is confirmed": (
        "one copy",
        of(copies=(copy(strategy=Strategy.CONFIRM),)),
        "is a backup and is not confirmed",
    ),
    "exempt without a hold": ("kept by a hold", of(holds=()), "kept by a hold that the plan does not have"),
    "exempt by another's hold": ("kept by a hold", of(holds=(hold("c1"),)), "or that keeps something else"),
    "exempt by no hold": (
        "kept by a hold",
        of(copies=(copy(), KEPT.model_copy(update={"exemption": Exemption(holds=(), until=None)}))),
        "kept by a hold that the plan does not have",
    ),
    "exempt without a reason": (
        "kept by a hold",
        of(copies=(copy(), KEPT.model_copy(update={"exemption": None}))),
        "kept without an exemption",
    ),
    "masked without columns": (
        "kept in part",
        lambda made: made.model_copy(update={"copies": (made.copies[0].model_copy(update={"mask": None}),)}),
        "does not say which columns are kept",
    ),
    "cleared without a column": (
        "cleared in rows of others",
        of(copies=(copy(strategy=Strategy.CLEAR_MENTIONS),)),
        "says that every row stays",
    ),
    "numbers of others, unseen": ("numbers of others", of(overrides=()), "is not what it shows to its reviewers"),
    "the key called a number": (
        "numbers of others",
        of(not_keys=(ELSEWHERE,), overrides=(Override(kind="not_keys", reason=ELSEWHERE.told),)),
        "not_keys.0 is a column by which rows of the persons are found",
    ),
    "a gap taken out": ("a gap is open", of(gaps=()), "do not agree"),
    "a gap called complete": ("a gap is open", of(complete=True), "do not agree"),
    "a gap made applyable": ("a gap is open", of(applyable=True), "a gap is open"),
    "a waiver taken out": ("a gap is waived", of(gaps=(OPEN,), complete=False), "a gap is open"),
    "a waiver of something else": (
        "a gap is waived",
        of(gaps=(WAIVED.model_copy(update={"seen": "g0"}),)),
        "was given for something else",
    ),
    "blocked and applyable": (
        "one copy",
        of(copies=(copy(strategy=Strategy.BLOCKED),), steps=()),
        "a copy is blocked",
    ),
    "fewer copies counted": ("one copy", totals(copies=0), "totals.copies"),
    "fewer irreversible": ("one copy", totals(irreversible=0), "totals.irreversible"),
    "fewer gaps": ("a gap is open", totals(gaps=0), "totals.gaps"),
    "fewer waived": ("a gap is waived", totals(waived=0), "totals.waived"),
    "cheaper": ("one copy", totals(cost=-1.0), "totals.cost"),
    "done earlier": ("one copy", totals(finish=NOW - timedelta(days=1)), "totals.finish"),
    "a later deadline": ("one copy", totals(deadline=DEADLINE + timedelta(days=1)), "totals.deadline"),
    "more slack": ("one copy", totals(slack_days=31.0), "totals.slack_days"),
    "no snapshot": (
        "rows with their snapshot",
        of(steps=(step("c1/1"), *ROWS[1:])),
        "not compared with what was planned",
    ),
    "a soft snapshot": (
        "rows with their snapshot",
        of(steps=(step("c1/1", preconditions=[snapshot("/lake/c1", hard=False)]), *ROWS[1:])),
        "not compared with what was planned",
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_a_planner_writes_is_read(name: str) -> None:
    assert contradiction(RIGHT[name]) is None
    assert parse_plan(RIGHT[name].to_bytes(), name).plan == RIGHT[name]


@pytest.mark.parametrize("name", WRONG)
def test_what_no_planner_writes_is_refused_by_its_rule(name: str) -> None:
    base, edit, words = WRONG[name]
    edited = edit(RIGHT[base])
    assert words in (contradiction(edited) or "")
    with pytest.raises(ReviewError, match="was not made by a planner"):
        parse_plan(edited.to_bytes(), name)


def test_the_refusal_shows_nothing_that_was_edited_in() -> None:
    data = json.loads(plan().to_bytes())
    data["copies"][0]["id"] = "../asha.rao@example.org"
    with pytest.raises(ReviewError) as refused:
        parse_plan(json.dumps(data).encode(), "p")
    assert "asha" not in str(refused.value)


def test_ids_of_a_plan_may_be_what_planners_make() -> None:
    for name in ("copy-1", "lake.prod.customers", "a b", "käse", "x" * 200):
        assert contradiction(plan(copies=[copy(name)])) is None
    assert contradiction(plan(copies=[copy("x" * 201)])) is not None
