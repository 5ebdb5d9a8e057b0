"""Rebuilds that write the persons again: their values stay in a column from which the rebuilt one is filled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lineage.graph.canonical_facts import collect
from pii_tracer.lineage.graph.edges import Edge, EdgeType, Subtype
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import Carries, Column, ColumnId, CopyKind, DatasetId, Strategy
from pii_tracer.model.plan import Copy, Gap
from planners.copies.scan_evidence import Evidence, OthersRows, Place
from planners.gaps.remaining_values import written_again
from planners.locate.subject_survey import World
from planners.step_drafts import CopyDraft

HERS = Place(file="f", key_set="user.mail", column="mail")


def at(name: str) -> DatasetId:
    return DatasetId(namespace="file", name=f"/w/{name}")


def state(name: str, column: str) -> TableState:
    return TableState(
        dataset=at(name),
        table=f"prod.{name}",
        location=f"/w/{name}",
        format=DELTA,
        snapshot="1",
        columns=(Column(name=column, type="string"),),
    )


def draft(name: str, strategy: Strategy, column: str, **more: Any) -> CopyDraft:
    copy = Copy(
        id=f"c-{name}",
        kind=CopyKind.DERIVED,
        dataset=at(name),
        table=f"prod.{name}",
        location=f"/w/{name}",
        format=DELTA,
        carries=Carries.IDENTIFIERS,
        strategy=strategy,
        columns=(),
        lineage=(),
        reason="",
    )
    return CopyDraft(copy=copy, **{"state": state(name, column), **more})


def edge(source: str, target: str) -> Edge:
    (source_name, _, source_column), (target_name, _, target_column) = source.partition("."), target.partition(".")
    return Edge(
        source=ColumnId(dataset=at(source_name), column=source_column),
        target=ColumnId(dataset=at(target_name), column=target_column),
        type=EdgeType.DIRECT,
        subtype=Subtype.IDENTITY,
        masking=False,
        expression=source_column,
        evidence=(),
    )


def found(
    drafts: list[CopyDraft],
    *edges: Edge,
    seen: Mapping[str, Place],
    others: Mapping[str, tuple[OthersRows, ...]] | None = None,
    tables: tuple[TableState, ...] = (),
) -> list[Gap]:
    states = tuple(one.state for one in drafts if one.state) + tables
    graph = LineageGraph(collect(columns={}, edges=list(edges), memberships=[], jobs=[], gaps=[], aliases={}))
    evidence = {
        f"/w/{name}": Evidence(files=1, files_with_person=1, bytes=1, places=frozenset({place}))
        for name, place in seen.items()
    }
    world = World(graph, Inventory(tables=states), evidence, lambda _: False, others=others or {})
    return written_again(drafts, world)


MART = draft("mart", Strategy.REBUILD, "mail")
BY_KEY = draft("raw", Strategy.DELETE_BY_KEY, "mail")
STRAY = {"/w/raw": (OthersRows(column="MAIL", rows=2),)}
BOTH = {"mart": HERS, "raw": HERS}


def test_rows_of_others_that_stay_in_the_source_of_a_rebuild() -> None:
    (gap,) = found([MART, BY_KEY], edge("raw.mail", "mart.mail"), seen=BOTH, others=STRAY)
    assert found([BY_KEY, MART], edge("raw.mail", "mart.mail"), seen=BOTH, others=STRAY) == [gap]
    assert (gap.dataset, gap.id) == (at("mart"), "gap-others_rows-mart-mail")
    assert "prod.raw.mail" in gap.reason


@pytest.mark.parametrize(
    "changed",
    [
        {"others": {}},  # every row with her goes
        {"others": {"/w/raw": (OthersRows(column="note", rows=2),)}},
        {"seen": {"raw": HERS}},  # she is not in the rebuilt column
        {"seen": {"mart": HERS}},
        {"seen": BOTH | {"raw": Place(file="f", key_set="user.mail", column="other")}},
        {"seen": BOTH | {"raw": Place(file="f", key_set="user.mail", column="mail", weak=True)}},
        {"seen": BOTH | {"raw": Place(file="f", key_set="user.mail", column="mailbox")}},
    ],
)
def test_nothing_of_her_comes_again(changed: dict[str, Any]) -> None:
    given: dict[str, Any] = {"seen": BOTH, "others": STRAY, **changed}
    assert found([MART, BY_KEY], edge("raw.mail", "mart.mail"), **given) == []


@pytest.mark.parametrize("label", ["mail", "MAIL", "mail.box", "mail[]"])
def test_members_of_a_column_are_in_it(label: str) -> None:
    place = Place(file="f", key_set="user.mail", column=label)
    assert len(found([MART, BY_KEY], edge("raw.mail", "mart.mail"), seen=BOTH | {"raw": place}, others=STRAY)) == 1


@pytest.mark.parametrize("strategy", [Strategy.BLOCKED, Strategy.EXEMPT])
def test_a_source_that_nothing_deletes_from(strategy: Strategy) -> None:
    drafts = [MART, draft("raw", strategy, "mail")]
    assert len(found(drafts, edge("raw.mail", "mart.mail"), seen=BOTH)) == 1


def test_a_source_that_is_no_copy_of_the_plan() -> None:
    other = state("raw", "mail")
    assert len(found([MART], edge("raw.mail", "mart.mail"), seen=BOTH, tables=(other,))) == 1


def test_a_rebuild_of_a_rebuild_and_a_circle() -> None:
    middle = draft("middle", Strategy.REBUILD, "mail")
    way = (edge("raw.mail", "middle.mail"), edge("middle.mail", "mart.mail"))
    seen = BOTH | {"middle": HERS}
    gaps = found([MART, middle, BY_KEY], *way, seen=seen, others=STRAY)
    assert {gap.dataset for gap in gaps} == {at("mart"), at("middle")}
    assert all("prod.raw.mail" in gap.reason for gap in gaps)
    circle = (edge("middle.mail", "mart.mail"), edge("mart.mail", "middle.mail"), edge("mart.mail", "mart.mail"))
    assert found([MART, middle, BY_KEY], *circle, seen=seen, others=STRAY) == []


def test_a_clean_source_before_another_one() -> None:
    """Not only the first source of a column counts."""
    clean = draft("clean", Strategy.DELETE_BY_KEY, "mail")
    edges = (edge("clean.mail", "mart.mail"), edge("zraw.mail", "mart.mail"))
    dirty = draft("zraw", Strategy.DELETE_BY_KEY, "mail")
    others = {"/w/zraw": (OthersRows(column="mail", rows=1),)}
    for seen in ({"mart": HERS, "clean": HERS, "zraw": HERS}, {"mart": HERS, "zraw": HERS}):
        assert len(found([MART, clean, dirty], *edges, seen=seen, others=others)) == 1


def test_copies_that_are_not_rebuilt_or_hang_from_another() -> None:
    assert found([BY_KEY], edge("raw.mail", "raw.mail"), seen=BOTH, others=STRAY) == []
    stateless = draft("mart", Strategy.REBUILD, "mail", state=None)
    assert found([stateless, BY_KEY], edge("raw.mail", "mart.mail"), seen=BOTH, others=STRAY) == []
