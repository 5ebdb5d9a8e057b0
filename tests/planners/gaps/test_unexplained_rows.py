"""Where persons' rows may have gone unseen: which datasets take part, and what a plan says of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lineage.dataset_names import VIEW
from pii_tracer.lineage.graph.canonical_facts import Facts
from pii_tracer.lineage.graph.edges import Edge, EdgeType, LineageGap, Subtype
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import Carries, ColumnId, DatasetId, Format
from pii_tracer.model.gap_kinds import GapKind, LineageGapKind
from planners.copies.match_key_resolution import SourceRows, Wanted, resolve
from planners.gaps.unexplained_rows import made_of_unseen, said, unseen
from planners.locate.identifier_traces import ColumnCarriage
from planners.locate.key_location import Carriage
from planners.locate.subject_survey import Survey, World
from tests.planners.estates import PERSON

KEYS = resolve(
    PERSON,
    SourceRows({"user_id": ["4711-user"], "email": ["a@x.example"], "phone": ["+4911122233"], "order_id": ["order-1"]}),
    [Wanted("R", "subj", "4711-user")],
)


def at(name: str) -> DatasetId:
    return DatasetId(namespace=VIEW if name.startswith("v_") else "file", name=f"/lake/{name}")


def edge(source: str, target: str, subtype: Subtype = Subtype.IDENTITY, type_: EdgeType = EdgeType.DIRECT) -> Edge:
    ends = {"source": ColumnId(dataset=at(source), column="x"), "target": ColumnId(dataset=at(target), column="x")}
    return Edge(type=type_, subtype=subtype, **ends)


def gap(name: str, same_as: str | None = None) -> LineageGap:
    other = at(same_as) if same_as else None
    kind = LineageGapKind.UNREADABLE_EVENT
    return LineageGap(dataset=at(name), kind=kind, reason="a gap", evidence="etl.sql:1", same_as=other)


def found(*names: str, persons: tuple[str, ...] = ("users",), ended: tuple[str, ...] = ()) -> Survey:
    def carriage(name: str) -> Carriage:
        columns = {"a": ColumnCarriage(), "b": ColumnCarriage(ended=frozenset({"email"}))} if name in ended else {}
        carries = Carries.KEY if name in persons else Carries.NONE
        return Carriage(at(name), carries, (), columns, (), "nothing of the persons")

    return Survey(PERSON, at("users"), {at(name): carriage(name) for name in names}, KEYS, {})


def dark(survey: Survey, edges: list[Edge], gaps: list[LineageGap]) -> dict[str, str | None]:
    seen = unseen(survey, LineageGraph(Facts(edges=tuple(edges), gaps=tuple(gaps))))
    return {d.name[6:]: None if origin is None else origin.name[6:] for d, origin in seen.items()}


def test_a_gap_counts_where_an_input_holds_persons_or_is_unseen_itself() -> None:
    edges = [edge("users", "a"), edge("a", "b"), edge("nobodys", "c")]
    survey = found("users", "a", "b", "c", "nobodys")
    assert dark(survey, edges, [gap("a"), gap("b"), gap("c")]) == {"a": None, "b": None}
    assert dark(survey, edges, [gap("a", same_as="users")]) == {}
    assert dark(survey, edges, [gap("elsewhere")]) == {}


def test_a_dataset_is_no_input_of_itself_and_the_source_is_none_of_them() -> None:
    held = found("users", "a", persons=("users", "a"))
    assert dark(held, [edge("a", "a")], [gap("a")]) == {}
    assert dark(held, [edge("a", "users"), edge("users", "a")], [gap("users")]) == {}


def test_what_takes_values_of_an_unseen_dataset_is_unseen_too() -> None:
    names = ("users", "a", "b", "held", "ended", "sum", "filtered")
    survey = found(*names, persons=("users", "held"), ended=("ended",))
    edges = [edge("users", "a"), *(edge("a", name) for name in ("b", "held", "ended"))]
    edges += [edge("a", "sum", Subtype.AGGREGATION), edge("a", "filtered", Subtype.FILTER, EdgeType.INDIRECT)]
    assert dark(survey, edges, [gap("a")]) == {"a": None, "b": "a"}


def test_the_order_of_the_survey_hides_nothing() -> None:
    """One that comes before what it takes from needs another round, and one skipped does not end the round."""
    edges = [edge("users", "a"), edge("a", "b"), edge("b", "c"), edge("a", "d"), edge("b", "d"), edge("0", "d")]
    survey = found("d", "c", "users", "b", "a", "0")
    assert dark(survey, edges, [gap("a")]) == {"a": None, "b": "a", "c": "b", "d": "a"}


def test_nothing_else_claims_that_an_unseen_dataset_holds_nothing() -> None:
    survey = found("users", "a", "b")
    told = said(survey, {at("a"): None, at("users"): None})
    reasons = {d.name[6:]: c.reason for d, c in told.carriages.items()}
    unknown = "lineage does not show which values of the persons' rows were copied here"
    assert reasons == {"users": "nothing of the persons", "a": unknown, "b": "nothing of the persons"}
    assert [c.carries for c in told.carriages.values()] == [Carries.KEY, Carries.NONE, Carries.NONE]
    assert (told.source, told.subject, told.keys) == (survey.source, survey.subject, survey.keys)


def table(name: str, **changes: Any) -> TableState:
    fields = {"table": f"lake.{name}", "format": Format("delta"), "snapshot": "1", "columns": ()}
    return TableState(**{"dataset": at(name), "location": f"/lake/{name}", **fields, **changes})


def gaps_of(survey: Survey, seen: Mapping[str, str | None], *tables: TableState) -> dict[str, tuple[str, str]]:
    world = World(LineageGraph(Facts()), Inventory(tables=tables), {}, lambda _: False)
    made = made_of_unseen(survey, world, {at(d): at(origin) if origin else None for d, origin in seen.items()})
    assert all(one.kind is GapKind.LINEAGE and one.dataset for one in made)
    assert all(one.id.startswith("gap-lineage-") and one.id.endswith("-unseen") for one in made)
    assert len({one.id for one in made}) == len(made)
    return {
        one.dataset.name[6:]: (one.reason.partition(",")[0].removeprefix("it is made from "), one.evidence)
        for one in made
        if one.dataset
    }


def test_each_unseen_dataset_has_one_gap_which_names_where_the_way_begins() -> None:
    survey = found("users", "a", "b", "c", "v_x")
    seen = {"a": None, "b": "a", "c": "b", "v_x": "a"}
    assert gaps_of(survey, seen, table("a")) == {
        "b": ("lake.a", "the gap of lake.a"),
        "c": ("/lake/b", "the gap of lake.a"),
    }


def test_a_table_that_holds_files_of_an_unseen_one_has_a_gap_too() -> None:
    survey = found("users", "a", "held", "known", "quiet", persons=("users", "held"))
    tables = (
        table("users"),
        table("known", clone_of="/lake/a"),
        table("far", clone_of="/lake/elsewhere"),
        table("of_held", clone_of="/lake/held"),
        table("clone", clone_of="/lake/a"),
        table("copy", same_files_as="/lake/a"),
        table("parts", partitions_of=(at("a"),)),
        table("of_quiet", clone_of="/lake/quiet"),
        table("quiet"),
        table("a"),
        table("held"),
    )
    told = ("lake.a", "the gap of lake.a")
    assert gaps_of(survey, {"a": None, "held": None}, *tables) == {"clone": told, "copy": told, "parts": told}
