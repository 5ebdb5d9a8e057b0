"""The harvested graph, and the datasets and columns of it that a name means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.app.settings import Settings
from pii_tracer.common.plurals import counted
from pii_tracer.model.errors import UsageError

if TYPE_CHECKING:
    from pii_tracer.lineage.graph.lineage_graph import LineageGraph
    from pii_tracer.model.datasets import DatasetId


_MOST_NAMES = 20


def harvested_graph(settings: Settings) -> tuple[LineageGraph, Path]:
    """The graph of the last harvest, and its file.

    Raises:
        UsageError: there is none.
        LineageError: it cannot be read.
    """
    from pii_tracer.app.planning.plan_creation import graph_file
    from pii_tracer.lineage.graph.graph_file import load

    file = graph_file(settings)
    if not file.exists():
        raise UsageError("there is no harvested lineage", where=str(file), todo="run `pii-tracer harvest`")
    return load(file), file


def place_of(graph: LineageGraph, name: str, where: str) -> tuple[DatasetId, str | None]:
    """The dataset, and the column, that a name means."""
    found = graph.candidates(name)
    table, _, column = name.rpartition(".")
    if found or not graph.candidates(table):
        return dataset_of(graph, name, found, where), None
    tables = graph.candidates(table)
    having = tuple(d for d in tables if _spelled(graph, d, column))
    dataset = dataset_of(graph, table, having or tables, where)
    spelled = _spelled(graph, dataset, column)
    if not spelled:
        names = [c.name for c in graph.columns(dataset)]
        raise UsageError(
            f"{_shown(str(dataset))} has no column `{_shown(column)}`",
            where=where,
            todo=f"use one of: {_listed(names)}",
        )
    return dataset, spelled


def _spelled(graph: LineageGraph, dataset: DatasetId, column: str) -> str | None:
    """The column as lineage writes it: Spark's names know no case."""
    names = [c.name for c in graph.columns(dataset)]
    plain = column.replace("`", "").strip()
    return next((n for n in names if n == plain), next((n for n in names if n.lower() == plain.lower()), None))


def dataset_of(graph: LineageGraph, name: str, found: tuple[DatasetId, ...], where: str) -> DatasetId:
    """The one dataset that a name means, of those that were found. Raises `UsageError` where it is none or several."""
    if not found:
        raise UsageError(
            f"`{_shown(name)}` is not in the lineage",
            where=where,
            todo="run `pii-tracer harvest`, or name another table or column",
        )
    if len(found) > 1:
        names = [f"{d}" + (f" ({', '.join(graph.aliases_of(d))})" if graph.aliases_of(d) else "") for d in found]
        raise UsageError(
            f"`{_shown(name)}` can mean {counted(len(found), 'dataset')}",
            where=where,
            todo=f"name one of: {_listed(names)}",
        )
    return found[0]


def _listed(names: list[str]) -> str:
    more = f", and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(_shown(n) for n in names[:_MOST_NAMES]) + more


def _shown(text: str) -> str:
    from reports.lineage.trace_formats import plain

    return plain(text)
