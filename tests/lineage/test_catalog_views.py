"""Views of catalogs as lineage: their queries lead from the tables behind them to the jobs that read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pii_tracer.config.lineage import LineageSources
from pii_tracer.lake.catalogs.base import CatalogView
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.lineage.harvest import Given, harvest_all
from pii_tracer.model.datasets import Column, DatasetId

PEOPLE, COPY = (DatasetId(namespace="file", name=f"/lake/{name}") for name in ("people", "copy"))
ALIASES = {
    "main.sales.people": PEOPLE,
    "dev.sales.people": DatasetId(namespace="file", name="/dev"),
    "main.mart.copy": COPY,
}
SCHEMAS = {name: (Column(name="uid", type="bigint"), Column(name="mail", type="string")) for name in ALIASES}


def view(query: str, name: str = "main.sales.seen", written_in: tuple[str, ...] = ("main", "sales")) -> CatalogView:
    return CatalogView("uc", name, query, "databricks", written_in)


def harvested(tmp_path: Path, *views: CatalogView) -> LineageGraph:
    (tmp_path / "jobs.sql").write_text("INSERT OVERWRITE main.mart.copy SELECT who AS uid, mail FROM main.sales.seen")
    given = Given(base=tmp_path, aliases=ALIASES, schemas=SCHEMAS, views=views)
    return harvest_all(LineageSources(sql=("jobs.sql",)), given).graph


def origins(graph: LineageGraph, column: str = "uid") -> set[str]:
    """The columns that a column of the copy comes from, through views."""
    found, waiting = set(), [(COPY, column)]
    while waiting:
        dataset, name = waiting.pop()
        edges = [e for e in graph.edges_into(dataset) if e.target.column == name]
        found |= {f"{e.source.dataset.name}.{e.source.column}" for e in edges if e.source.dataset.namespace == "file"}
        waiting += [(e.source.dataset, e.source.column) for e in edges if e.source.dataset.namespace == "view"]
    return found


def test_a_job_that_reads_a_view_reads_the_tables_behind_it(tmp_path: Path) -> None:
    assert origins(harvested(tmp_path)) == set()
    assert origins(harvested(tmp_path, view("SELECT uid AS who, mail FROM main.sales.people"))) == {"/lake/people.uid"}


def test_names_in_a_query_are_those_of_where_it_was_written(tmp_path: Path) -> None:
    query = "SELECT uid AS who, mail FROM people"
    assert origins(harvested(tmp_path, view(query))) == {"/lake/people.uid"}
    assert origins(harvested(tmp_path, view(query, written_in=("dev", "sales")))) == {"/dev.uid"}


def test_a_view_of_a_view(tmp_path: Path) -> None:
    inner = view("SELECT uid, mail FROM people", "main.sales.base")
    outer = view("SELECT `uid` AS who, mail FROM sales.base")
    assert origins(harvested(tmp_path, inner, outer)) == {"/lake/people.uid"}


def test_a_query_that_cannot_be_read_is_a_gap(tmp_path: Path) -> None:
    graph = harvested(tmp_path, view("SELECT uid AS who FROM (("))
    assert [gap.kind for gap in graph.gaps if "catalog uc, view main.sales.seen" in str(gap)] != []


WITH_NAMES = tuple(Column(name=name, type="string") for name in ("who", "mail"))
SWAPPED = tuple(Column(name=name, type="string") for name in ("mail", "who"))


@pytest.mark.parametrize("dialect", ["databricks", "hive", "spark", "trino"])
@pytest.mark.parametrize(
    ("query", "columns", "found"),
    [
        ("SELECT uid, mail FROM main.sales.people", WITH_NAMES, {"/lake/people.uid"}),
        ("SELECT * FROM main.sales.people", WITH_NAMES, {"/lake/people.uid"}),
        ("SELECT uid AS who, mail FROM main.sales.people", SWAPPED, {"/lake/people.mail"}),
        ("SELECT uid AS who, mail, 1 AS later FROM main.sales.people", WITH_NAMES, {"/lake/people.uid"}),
    ],
)
def test_the_names_that_a_view_gives_its_columns(
    tmp_path: Path, query: str, columns: tuple[Column, ...], found: set[str], dialect: str
) -> None:
    """Catalogs keep the query without the names of `CREATE VIEW v (who, mail)`."""
    renamed = CatalogView("uc", "main.sales.seen", query, dialect, ("main", "sales"), columns)
    assert origins(harvested(tmp_path, renamed)) == found
