"""Tables of aggregates whose owner's word would prove nothing: what they are computed from may hold the persons."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.lineage.dataset_names import VIEW
from pii_tracer.lineage.graph.canonical_facts import collect
from pii_tracer.lineage.graph.edges import Edge, EdgeType, JobRef, LineageGap, Membership, Subtype
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import ColumnId, CopyKind, DatasetId, Format, Strategy
from pii_tracer.model.gap_kinds import GapKind, LineageGapKind
from pii_tracer.model.plan import STAYS, ErasurePlan
from planners.copies.scan_evidence import Evidence
from planners.gaps.recomputed_sources import against, free_of_persons
from planners.step_drafts import CopyDraft, verification
from tests.planners.smalllake import Lake, copy, dataset, hold
from tests.planners.test_recomputed_copies import NOBODY, gap_of, lake, waived

OFFER = "ask the owner to recompute it"


def refused(plan: ErasurePlan) -> str:
    """Why the gap offers nothing; a waiver with a task changes nothing."""
    assert (copy(plan, "counts").strategy, plan.applyable) == (Strategy.BLOCKED, False)
    assert not [step for step in plan.steps if step.copy_ == "c-prod.counts"]
    reason = gap_of(plan).reason
    assert OFFER not in reason
    return reason


def reading(*more: str, **changes: Any) -> Lake:
    return lake(reads={"counts": more}, **changes)


def test_a_job_that_reads_its_own_table() -> None:
    assert "it is computed from itself" in refused(waived(reading("counts")))


def test_a_job_that_reads_what_is_made_of_its_table() -> None:
    made = reading("sums", states=BOTH)
    assert "it is computed from itself" in refused(waived(made))


def test_an_input_that_nobody_searched() -> None:
    assert "/w/faraway" in refused(waived(reading("faraway")))


def test_an_input_of_an_input_that_nobody_searched() -> None:
    assert "/w/faraway" in refused(waived(lake(reads={"events": ("faraway",)})))


def test_an_input_that_was_searched_alone_can_hold_the_person_before_the_job_runs() -> None:
    """Days lie between a plan and its run, and no step looks at it again."""
    plan = waived(reading("rates", loose=("rates",), seen={**lake().seen, "/w/rates": NOBODY}))
    assert "prod.rates, which no step verifies before the job runs" in refused(plan)


@pytest.mark.parametrize(
    "seen",
    [
        Evidence(files=1, files_with_person=1, bytes=1, strong=frozenset({"user.uid"})),
        Evidence(files=1, files_with_person=0, bytes=1, unread=("1.csv: torn",)),
        Evidence(files=1, files_with_person=0, bytes=1, weak=frozenset({"text"})),
    ],
    ids=["person", "unread", "digits"],
)
def test_an_input_beside_that_may_hold_the_person_and_is_waived(seen: Evidence) -> None:
    made = reading("legacy", loose=("legacy",), seen={**lake().seen, "/w/legacy": seen})
    assert "prod.legacy" in refused(waived(made))


def test_an_input_that_a_hold_keeps() -> None:
    assert "prod.events" in refused(waived(lake(), hold("prod.events")))
    assert "prod.users" in refused(waived(lake(), hold("prod.users")))


def test_an_input_with_a_gap_of_its_own_that_is_waived() -> None:
    gap = InventoryGap(dataset=dataset("events"), kind=GapKind.EXTERNAL_FILES, reason="files elsewhere", evidence="e")
    plan = waived(lake(gaps=(gap,)))
    assert all(one.waiver for one in plan.gaps)
    assert "prod.events" in refused(plan)
    assert "also concerns this copy" in refused(
        waived(lake(gaps=(gap.model_copy(update={"dataset": dataset("counts")}),)))
    )


def test_an_input_that_stays_blocked() -> None:
    made = lake(
        copies={**lake().copies, "mid": Subtype.AGGREGATION},
        inputs={**lake().inputs, "mid": "events", "counts": "mid"},
        sql={**lake().sql, "mid": "INSERT INTO mid SELECT 1"},
        seen={**lake().seen, "/w/mid": NOBODY},
    )
    plan = waived(made)
    assert copy(plan, "mid").strategy is Strategy.BLOCKED
    assert "prod.mid" in refused(plan)


@pytest.mark.parametrize(("about", "same_as"), [("events", None), (None, None), ("elsewhere", "events")])
def test_lineage_that_is_not_complete(about: str | None, same_as: str | None) -> None:
    gap = LineageGap(
        dataset=dataset(about) if about else None,
        same_as=dataset(same_as) if same_as else None,
        kind=LineageGapKind.SQL_PARTIAL,
        reason="unclear",
        evidence="j:1",
    )
    assert "lineage is not complete" in refused(waived(lake(dark=(gap,))))


def test_lineage_of_something_else_that_is_not_complete() -> None:
    gap = LineageGap(dataset=dataset("sums"), kind=LineageGapKind.SQL_PARTIAL, reason="unclear", evidence="j:1")
    assert copy(waived(lake(dark=(gap,))), "counts").strategy is Strategy.RECOMPUTED


@pytest.mark.parametrize(
    "changed",
    [
        lake(sql={**lake().sql, "counts": "INSERT OVERWRITE counts SELECT MAX(amount) AS amount FROM events"}),
        lake(sql={**lake().sql, "events": "INSERT INTO events SELECT 2"}),
        reading("rates", loose=("rates",), seen={**lake().seen, "/w/rates": NOBODY}),
    ],
    ids=["statement", "statement of a source", "source"],
)
def test_a_waiver_is_for_the_job_and_the_sources_that_its_author_saw(changed: Lake) -> None:
    assert gap_of(changed.plan()).seen != gap_of(lake().plan()).seen
    assert (
        gap_of(lake(sql={**lake().sql, "sums": "INSERT OVERWRITE sums SELECT 3"}).plan()).seen
        == gap_of(lake().plan()).seen
    ), "what is made of it is another matter"


BOTH = {n: {"format": Format.CSV, "columns": ()} for n in ("counts", "sums")}


def test_what_is_made_of_a_table_that_cannot_be_computed_again() -> None:
    own = InventoryGap(dataset=dataset("counts"), kind=GapKind.EXTERNAL_FILES, reason="files elsewhere", evidence="e")
    for made in (reading("counts", states=BOTH), lake(states=BOTH, gaps=(own,))):
        plan = waived(made, of="gap-no_way-prod.sums")
        (gap,) = [gap for gap in plan.gaps if gap.id == "gap-no_way-prod.sums"]
        assert "it is computed from prod.counts" in gap.reason
        assert copy(plan, "sums").strategy is Strategy.BLOCKED


@pytest.mark.parametrize(
    ("strategy", "drafted", "free"),
    [
        (Strategy.DELETE_BY_KEY, True, True),
        (Strategy.DELETE_BY_KEY, False, False),
        *((strategy, True, False) for strategy in sorted({*STAYS, Strategy.BLOCKED})),
    ],
)
def test_only_what_is_erased_and_verified_is_free_of_the_persons(strategy: Strategy, drafted: bool, free: bool) -> None:
    item = CopyDraft(copy(lake().plan(), "events").model_copy(update={"strategy": strategy}))
    item = replace(item, drafts=(verification(item, ()),) if drafted else ())
    history = item.copy.model_copy(update={"kind": CopyKind.TABLE_HISTORY, "strategy": Strategy.EXEMPT})
    old = item.copy.model_copy(update={"kind": CopyKind.OBJECT_VERSION, "strategy": Strategy.EXEMPT})
    assert free_of_persons([item, CopyDraft(old)], []) == ({dataset("events")} if free else set())
    assert free_of_persons([item, CopyDraft(history)], []) == set(), "a job can read a branch"


# -- small graphs against a slow model ---------------------------------------------------------------------------------

NODES = 5
PAIRS = st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1))
LINKS = st.dictionaries(PAIRS, st.sampled_from(["job", "column", "rows"]), max_size=7)
KINDS = st.lists(st.sampled_from(["free", "view", "asked", "unknown"]), min_size=NODES, max_size=NODES)
DARK = st.sets(st.integers(0, NODES - 1), max_size=1)


def slow(node: int, links: Collection[tuple[int, int]], kinds: list[str], dark: set[int]) -> bool:
    """Whether a table may be computed again: by every pair of datasets, as often as there are datasets."""
    above = {source for source, target in links if target == node}
    for _ in range(NODES):
        above |= {source for source, target in links if target in above}
    if not above or node in above or dark & {node, *above}:
        return False
    for other in above:
        fed = any(target == other for _, target in links)
        fine = {
            "free": True,
            "unknown": False,
            "view": fed,
            "asked": kinds[other] == "asked" and slow(other, links, kinds, dark),
        }
        if not fine[kinds[other]]:
            return False
    return True


@given(LINKS, KINDS, DARK)
@example({(0, 1): "job"}, ["free", "asked", "free", "free", "free"], set())
@example({(0, 1): "job", (1, 1): "column"}, ["free", "asked", "free", "free", "free"], set())
@example({(0, 1): "job", (1, 1): "rows"}, ["free", "asked", "free", "free", "free"], set())
@example({(0, 1): "job"}, ["view", "asked", "free", "free", "free"], set())
@example({(0, 1): "job", (2, 0): "rows"}, ["view", "asked", "free", "free", "free"], set())
@example({(0, 1): "job", (1, 1): "job", (1, 2): "job"}, ["free", "asked", "asked", "free", "free"], set())
def test_random_lineage_is_judged_as_by_the_slow_model(
    links: dict[tuple[int, int], str], kinds: list[str], dark: set[int]
) -> None:
    ids = [DatasetId(namespace=VIEW if kind == "view" else "file", name=f"/{n}") for n, kind in enumerate(kinds)]
    columns = [ColumnId(dataset=one, column="n") for one in ids]
    told = {how: [pair for pair, said in links.items() if said == how] for how in ("job", "column", "rows")}
    graph = LineageGraph(
        collect(
            columns={},
            edges=[
                Edge(source=columns[s], target=columns[t], type=EdgeType.DIRECT, subtype=Subtype.AGGREGATION)
                for s, t in told["column"]
            ],
            memberships=[Membership(source=columns[s], target=ids[t], subtype=Subtype.FILTER) for s, t in told["rows"]],
            jobs=[JobRef(job=f"j{s}{t}", sql=None, inputs=(ids[s],), output=ids[t]) for s, t in told["job"]],
            gaps=[
                LineageGap(dataset=ids[n], kind=LineageGapKind.SQL_PARTIAL, reason="unclear", evidence="j:1")
                for n in dark
            ],
            aliases={},
        )
    )
    asked = [n for n, kind in enumerate(kinds) if kind == "asked"]
    free = {ids[n] for n, kind in enumerate(kinds) if kind == "free"}
    wrong = against({ids[n] for n in asked}, free, graph, str)
    assert {n for n in asked if ids[n] not in wrong} == {n for n in asked if slow(n, links, kinds, dark)}
