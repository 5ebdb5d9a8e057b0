"""A plan of some copies: it says what it leaves out, harms nobody who is left out, and is never the whole erasure."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.inventory import Ref, RefKind
from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.model.errors import PlanError
from pii_tracer.model.waivers import Waiver
from tests.planners.smalllake import NOW, Lake, archive, hold, kinds, strategies, touched

WAIVER = Waiver(who="w", why="y", until=NOW + timedelta(days=9))


@pytest.mark.parametrize("name", ["c-prod.a", "prod.a", "Prod.A", "/w/a"])
def test_only_the_named_copy_is_planned_and_the_rest_is_said(name: str) -> None:
    plan = Lake().plan(only=[name])
    assert touched(plan) == {"c-prod.a"}
    assert [g.id for g in plan.gaps] == ["gap-left_out-prod.b", "gap-left_out-prod.users"]
    assert (plan.complete, plan.applyable, plan.only) == (False, True, ("c-prod.a",))
    assert plan.plan_id != Lake().plan().plan_id


def test_everything_named_is_the_whole_erasure() -> None:
    plan = Lake().plan(only=["prod.users", "prod.a", "prod.b"])
    assert (plan.complete, plan.gaps) == (True, ())


def test_what_hangs_from_a_copy_comes_with_it_and_brings_it() -> None:
    refs = (Ref(name="audit", kind=RefKind.BRANCH, at="7"),)
    lake = Lake(states={"a": {"format": ICEBERG, "refs": refs}}, objects=(archive(),))
    assert touched(lake.plan(only=["prod.a"])) == {"c-prod.a", "c-prod.a@branch.audit"}
    assert touched(lake.plan(only=["c-prod.a@branch.audit"])) == {"c-prod.a", "c-prod.a@branch.audit"}
    assert touched(lake.plan(only=["c-b-p-versions"])) == {"c-b-p", "c-b-p-versions"}


def test_left_out_cannot_be_waived() -> None:
    with pytest.raises(PlanError, match="cannot be waived"):
        Lake().plan(only=["prod.a"], waivers={"gap-left_out-prod.b": WAIVER})


def test_a_clone_that_is_left_out_is_not_destroyed() -> None:
    lake = Lake(states={"b": {"clone_of": "/w/a"}})
    with pytest.raises(PlanError, match="would make the clone unreadable"):
        lake.plan(only=["prod.a"])
    assert touched(lake.plan(only=["prod.b"])) == {"c-prod.b"}
    assert touched(lake.plan(only=["prod.a", "prod.b"])) == {"c-prod.a", "c-prod.b"}


def test_nothing_is_rebuilt_from_what_is_left_out() -> None:
    lake = Lake(
        copies={"a": Subtype.IDENTITY, "sums": Subtype.AGGREGATION},
        sql={"sums": "INSERT OVERWRITE TABLE sums SELECT SUM(amount) FROM users"},
    )
    with pytest.raises(PlanError, match="this plan does not erase the person there"):
        lake.plan(only=["prod.sums"])
    assert touched(lake.plan(only=["prod.sums", "prod.users"])) == {"c-prod.sums", "c-prod.users"}


def test_gaps_of_the_named_copies_still_block_and_those_of_the_others_do_not() -> None:
    lake = Lake(copies={"a": Subtype.AGGREGATION, "b": Subtype.IDENTITY})  # no statement writes the whole of a
    plan = lake.plan(only=["prod.b"])
    assert set(kinds(plan)) == {"left_out"}
    assert plan.applyable
    plan = lake.plan(only=["prod.a"])
    assert "cannot_be_proved" in kinds(plan)
    assert not plan.applyable


def test_holds_of_what_is_left_out_are_not_in_the_plan() -> None:
    both = hold("prod.a", "prod.b")
    assert [h.copies for h in Lake().plan(both, only=["prod.a", "prod.users"]).holds] == [("c-prod.a",)]
    plan = Lake().plan(both, only=["prod.users"])
    assert (plan.holds, plan.totals.exempt, strategies(plan)) == ((), 0, {"c-prod.users": "delete_by_key"})


@pytest.mark.parametrize(("name", "words"), [("prod.none", "no copy with the name"), ("/t", "could be")])
def test_a_name_must_mean_one_copy(name: str, words: str) -> None:
    lake = Lake(states={"a": {"location": "/x/t"}, "b": {"location": "/y/t"}})
    with pytest.raises(PlanError, match=words):
        lake.plan(only=[name])
