"""`trace` and `gaps`: reading the harvested graph."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pii_tracer.app.settings import Settings
from pii_tracer.cli.options import estate_option, format_option, state_option
from pii_tracer.model.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from pii_tracer.lineage.graph.lineage_graph import LineageGraph
    from pii_tracer.model.identities import DatasetId

_MOST_NAMES = 20
_PAGE_LINKS = 2000


@click.command()
@click.argument("name")
@click.option("--up", "direction", flag_value="up", help="where it comes from")
@click.option("--down", "direction", flag_value="down", default=True, help="where it goes to  [default]")
@click.option("--influence", is_flag=True, help="of a column: also where it only decides about other values or rows")
@estate_option
@state_option
@format_option("text", "json", "mermaid", "dot", "html")
def trace(name: str, direction: str, influence: bool, estate_file: Path, state: Path, fmt: str) -> int:
    """Where NAME (a table, or table.column) comes from or goes to, from the harvested graph."""
    from pii_tracer.lineage.graph.trace import trace as walk
    from pii_tracer.lineage.graph.trace import without_literals
    from reports.lineage import trace_formats

    graph, file = _graph(estate_file, state)
    dataset, column = _place(graph, name, str(file))
    most = {"text": trace_formats.TEXT_LINKS, "mermaid": trace_formats.MERMAID_LINKS, "html": _PAGE_LINKS}.get(fmt)
    found = walk(graph, dataset, "up" if direction == "up" else "down", column, influence=influence, most=most)
    made = without_literals(found)
    if fmt == "html":
        from reports.lineage.trace_html import render_trace_html

        click.echo(render_trace_html(made, {d: graph.aliases_of(d) for d in made.datasets}))
        return int(ExitCode.DONE)
    shown = {
        "text": trace_formats.as_text,
        "json": trace_formats.as_json,
        "mermaid": trace_formats.as_mermaid,
        "dot": trace_formats.as_dot,
    }
    click.echo(shown[fmt](made))
    return int(ExitCode.DONE)


@click.command()
@click.argument("name", required=False)
@estate_option
@state_option
@format_option("text", "json")
def gaps(name: str | None, estate_file: Path, state: Path, fmt: str) -> int:
    """Where lineage is not complete, by dataset, with what would close each gap; of NAME alone, when it is given."""
    from reports.lineage.trace_formats import gaps_as_text

    graph, file = _graph(estate_file, state)
    found = graph.gaps
    if name is not None:
        dataset = _one(graph, name, graph.candidates(name), str(file))
        found = tuple(gap for gap in found if gap.dataset == dataset)
    if fmt == "json":
        click.echo(json.dumps([gap.model_dump(mode="json") for gap in found], ensure_ascii=False, indent=2))
    else:
        click.echo(gaps_as_text(found))
    return int(ExitCode.DONE)


def _graph(estate_file: Path, state: Path) -> tuple[LineageGraph, Path]:
    from pii_tracer.app.planning.plan_creation import graph_file
    from pii_tracer.lineage.graph.graph_file import load

    file = graph_file(Settings(estate_file, state))
    if not file.exists():
        raise UsageError("there is no harvested lineage", where=str(file), todo="run `pii-tracer harvest`")
    return load(file), file


def _place(graph: LineageGraph, name: str, where: str) -> tuple[DatasetId, str | None]:
    """The dataset, and the column, that a name means."""
    found = graph.candidates(name)
    table, _, column = name.rpartition(".")
    if found or not graph.candidates(table):
        return _one(graph, name, found, where), None
    tables = graph.candidates(table)
    having = tuple(d for d in tables if _spelled(graph, d, column))
    dataset = _one(graph, table, having or tables, where)
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


def _one(graph: LineageGraph, name: str, found: tuple[DatasetId, ...], where: str) -> DatasetId:
    if not found:
        raise UsageError(
            f"the lineage knows no `{_shown(name)}`", where=where, todo="`pii-tracer harvest`, or another name"
        )
    if len(found) > 1:
        names = [f"{d}" + (f" ({', '.join(graph.aliases_of(d))})" if graph.aliases_of(d) else "") for d in found]
        raise UsageError(
            f"`{_shown(name)}` can mean {len(found)} datasets", where=where, todo=f"name one of: {_listed(names)}"
        )
    return found[0]


def _listed(names: list[str]) -> str:
    more = f", and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(_shown(n) for n in names[:_MOST_NAMES]) + more


def _shown(text: str) -> str:
    from reports.lineage.trace_formats import plain

    return plain(text)
