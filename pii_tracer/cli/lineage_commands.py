"""`parse`, `harvest` and `trace`: lineage on the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from pii_tracer.cli.settings import Settings, estate_option, format_option, state_option
from pii_tracer.errors import ExitCode, LineageError, UsageError


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True), default="-")
@click.option("--format", "fmt", type=click.Choice(["jsonl"]), default="jsonl", show_default=True)
@click.option("--dialect", default="spark", show_default=True, help="for plain .sql files")
@click.option("--schema", "schema_file", type=click.Path(path_type=Path), help="JSON: table to list of columns")
def parse(file: Path, fmt: str, dialect: str, schema_file: Path | None) -> int:
    """Column lineage of SQL, as JSON lines: requests from FILE (or -), or the statements of a .sql file."""
    from pii_tracer.lineage.parse import parse_lines

    if str(file) == "-":
        parse_lines(sys.stdin, sys.stdout)
        return int(ExitCode.DONE)
    text = _text(file)
    if file.suffix == ".sql":
        schemas = _schemas(schema_file) if schema_file else {}
        text = json.dumps({"id": file.name, "sql": text, "dialect": dialect, "schemas": schemas})
    parse_lines(text.splitlines(), sys.stdout)
    return int(ExitCode.DONE)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LineageError(
            f"the file cannot be read: {error}", where=str(file), todo="check the path and its encoding"
        ) from None


def _schemas(file: Path) -> dict[str, list[str]]:
    try:
        data = json.loads(_text(file))
        return {str(table): [str(column) for column in columns] for table, columns in data.items()}
    except (ValueError, AttributeError, TypeError):
        raise LineageError(
            "the schema file is not a JSON object of lists", where=str(file), todo='write {"table": ["column", …]}'
        ) from None


@click.command()
@estate_option
@state_option
@format_option("text", "json")
def harvest(estate_file: Path, state: Path, fmt: str) -> int:
    """Read the estate's events and SQL into the lineage graph, and say what could not be resolved."""
    from pii_tracer.cli.planning import graph_file, take_inventory, take_lineage
    from pii_tracer.lineage.store import save
    from reports.progress import Progress

    settings = Settings(estate_file, state)
    estate = settings.estate()
    with Progress() as progress:
        progress.step("inventory", "schemas from the catalogs")
        inventory = take_inventory(estate, settings.base, progress.step)
        progress.step("harvest", "events and SQL")
        graph, summary = take_lineage(estate, settings.base, inventory)
    save(graph, graph_file(settings))
    if fmt == "json":
        gaps = [gap.model_dump(mode="json") for gap in graph.gaps]
        click.echo(json.dumps(vars(summary) | {"digest": graph.digest(), "gap_list": gaps}, indent=2))
    else:
        click.echo(summary_text(summary))
        for gap in graph.gaps:
            click.echo(f"gap: {gap.dataset or gap.kind}: {gap.reason}\n     seen in {gap.evidence}; {gap.closes}")
    return int(ExitCode.DONE)


def summary_text(summary: object) -> str:
    """One line: what was read, what was resolved, what was not."""
    told = vars(summary)
    return (
        f"{told['events']} events, {told['statements']} statements: {told['resolved']} resolved,"
        f" {told['partial']} partial, {told['opaque']} opaque; {told['gaps']} gaps"
    )


@click.command()
@click.argument("name")
@click.option("--up", "direction", flag_value="up", help="where it comes from")
@click.option("--down", "direction", flag_value="down", default=True, help="where it goes to  [default]")
@estate_option
@state_option
@format_option("text", "json", "mermaid", "dot")
def trace(name: str, direction: str, estate_file: Path, state: Path, fmt: str) -> int:
    """Where NAME (a table, or table.column) comes from or goes to, from the harvested graph."""
    from pii_tracer.cli.planning import graph_file
    from pii_tracer.lineage import render
    from pii_tracer.lineage.store import load

    settings = Settings(estate_file, state)
    file = graph_file(settings)
    if not file.exists():
        raise UsageError("there is no harvested lineage", where=str(file), todo="run `pii-tracer harvest`")
    graph = load(file)
    dataset, column = graph.resolve(name), None
    if dataset is None and "." in name:
        table, _, column = name.rpartition(".")
        dataset = graph.resolve(table)
    if dataset is None:
        raise UsageError(
            f"the lineage knows no `{name}`", where=str(file), todo="`pii-tracer harvest`, or another name"
        )
    way: render.Direction = "up" if direction == "up" else "down"
    links = render.trace(graph, dataset, way, column)
    shown = {
        "text": lambda: render.as_text(links, dataset, way),
        "json": lambda: render.as_json(links, dataset, way),
        "mermaid": lambda: render.as_mermaid(links, dataset),
        "dot": lambda: render.as_dot(links, dataset),
    }
    click.echo(shown[fmt]())
    return int(ExitCode.DONE)
