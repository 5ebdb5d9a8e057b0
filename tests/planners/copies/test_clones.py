"""Shallow clones in which the person is not: their origins' clean-up would tear their files away."""

from __future__ import annotations

from pii_tracer.lake.formats.delta.vocabulary import DELTA, DELTA_VACUUM
from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.model.datasets import Strategy
from planners.copies.scan_evidence import Evidence
from tests.planners.smalllake import Lake

CLEAN = Evidence(files=3, files_with_person=0, bytes=0)


def lake(**changes: dict[str, object]) -> Lake:
    states = {"b": {"clone_of": "/w/a", "format": DELTA}, "a": {"format": DELTA}}
    return Lake(states=states | changes, seen={"/w/b": CLEAN})  # type: ignore[arg-type]


def test_a_clean_clone_of_a_copy_takes_its_files_before_the_origin_is_vacuumed() -> None:
    plan = lake().plan()
    (clone,) = [c for c in plan.copies if c.location == "/w/b"]
    assert clone.strategy is Strategy.DELETE_BY_KEY
    assert "copies these files into the clone" in clone.reason
    assert "/w/b" not in [e.dataset.name for e in plan.examined]
    mine = [s for s in plan.steps if s.copy_ == clone.id]
    assert mine[0].parameters["materialise"]
    (vacuum,) = [s for s in plan.steps if s.action is DELTA_VACUUM and s.copy_ == "c-prod.a"]
    before, todo = set[str](), [vacuum.id]
    by_id = {s.id: s for s in plan.steps}
    while todo:
        before |= {*by_id[todo[-1]].depends_on}
        todo = [*todo[:-1], *by_id[todo[-1]].depends_on]
    assert {s.id for s in mine} <= before


def test_a_clone_of_a_clone_is_taken_along_too() -> None:
    small = lake(c={"clone_of": "/w/b", "format": DELTA})
    small.copies["c"] = Subtype.IDENTITY
    small.seen["/w/c"] = CLEAN
    assert {c.location for c in small.plan().copies} == {"/w/users", "/w/a", "/w/b", "/w/c"}


def test_where_the_origin_is_no_copy_its_clean_clone_is_none() -> None:
    small = lake()
    small.seen["/w/a"] = CLEAN
    plan = small.plan()
    assert {c.location for c in plan.copies} == {"/w/users"}
    assert plan.gaps == ()


def test_a_clean_clone_that_no_step_can_take_along_blocks() -> None:
    refuses = {"delta.appendOnly": "true"}
    small = lake(b={"clone_of": "/w/a", "format": DELTA, "properties": refuses})
    plan = small.plan()
    (gap,) = [g for g in plan.gaps if g.kind == "clone_reads_files"]
    assert "files of prod.a" in gap.reason
    assert not plan.applyable
