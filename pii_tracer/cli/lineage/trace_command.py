"""`trace` and `gaps`: reading the harvested graph."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pii_tracer.app.settings import Settings
from pii_tracer.cli.options import estate_option, format_option, state_option
from pii_tracer.model.errors import ExitCode

_PAGE_LINKS = 2000


@click.command()
@click.argument("name")
@click.option("--up", "direction", flag_value="up", help="where it comes from")
@click.option("--down", "direction", flag_value="down", default=True, help="where it goes to  [default]")
@click.option("--influence", is_flag=True, help="for a column: also where it only filters rows or decides other values")
@estate_option
@state_option
@format_option("text", "json", "mermaid", "dot", "html")
def trace(name: str, direction: str, influence: bool, estate_file: Path, state: Path, fmt: str) -> int:
    """Where NAME (a table, or table.column) comes from or goes to, from the harvested graph."""
    from pii_tracer.app.lineage.graph_names import harvested_graph, place_of
    from pii_tracer.lineage.graph.trace import trace as walk
    from pii_tracer.lineage.graph.trace import without_literals
    from reports.lineage import trace_formats

    graph, file = harvested_graph(Settings(estate_file, state))
    dataset, column = place_of(graph, name, str(file))
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
    from pii_tracer.app.lineage.graph_names import dataset_of, harvested_graph
    from reports.lineage.trace_formats import gaps_as_text

    graph, file = harvested_graph(Settings(estate_file, state))
    found = graph.gaps
    if name is not None:
        dataset = dataset_of(graph, name, graph.candidates(name), str(file))
        found = tuple(gap for gap in found if gap.dataset == dataset)
    if fmt == "json":
        click.echo(json.dumps([gap.model_dump(mode="json") for gap in found], ensure_ascii=False, indent=2))
    else:
        click.echo(gaps_as_text(found))
    return int(ExitCode.DONE)
