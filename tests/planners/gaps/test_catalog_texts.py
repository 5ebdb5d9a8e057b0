"""What a catalog keeps of its tables, and was not read: one gap for each catalog and cause, and a waiver for these tables."""

from __future__ import annotations

from pii_tracer.lake.inventory import Inventory
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.plan import Gap
from planners.copies.scan_evidence import CatalogEvidence
from planners.gaps.table_descriptions import table_texts
from planners.locate.subject_survey import World
from tests.planners.estates import graph_of

NO_CALL = "column statistics (500)"


def unread(*tables: str, cause: str = NO_CALL) -> list[Gap]:
    graph: LineageGraph = graph_of("INSERT INTO prod.out SELECT email FROM prod.users")
    told = tuple(CatalogEvidence(f"catalog {table}", (), (cause,), "") for table in tables)
    return list(table_texts((), World(graph, Inventory(tables=()), {}, lambda _: False, catalogs=told)))


def test_a_call_that_fails_for_every_table_is_one_gap() -> None:
    one, other = unread("glue.crm.users", "glue.crm.orders", "ice.crm.users")
    assert NO_CALL in one.reason
    assert one.evidence == "catalog glue.crm.users, catalog glue.crm.orders"
    assert (other.reason, other.evidence) == (one.reason, "catalog ice.crm.users")
    assert one.id != other.id


def test_another_cause_is_another_gap() -> None:
    [one] = unread("glue.crm.users")
    [other] = unread("glue.crm.users", cause="old versions (AccessDenied)")
    assert one.id != other.id


def test_a_waiver_of_some_tables_is_none_of_more() -> None:
    """The gap names the first of them alone."""
    named = [f"glue.crm.t{number}" for number in range(12)]
    [one], [more] = unread(*named), unread(*named[:11], "glue.crm.later")
    assert (one.evidence, one.id) == (more.evidence, more.id)
    assert "and 4 more" in one.evidence
    assert one.seen != more.seen
