"""`parse`, `harvest` and `receive`: lineage on the command line."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

import click

from pii_tracer.app.settings import Settings
from pii_tracer.cli.options import estate_option, format_option, state_option
from pii_tracer.model.errors import ExitCode, LineageError, UsageError


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True), default="-")
@click.option("--format", "fmt", type=click.Choice(["jsonl"]), default="jsonl", show_default=True)
@click.option("--dialect", default="spark", show_default=True, help="for plain .sql files")
@click.option("--schema", "schema_file", type=click.Path(path_type=Path), help="JSON: table to list of columns")
def parse(file: Path, fmt: str, dialect: str, schema_file: Path | None) -> int:
    """Column lineage of SQL, as JSON lines: requests from FILE (or -), or the statements of a .sql file."""
    from pii_tracer.lineage.sql.parse_lines import parse_lines

    if str(file) == "-":
        parse_lines(sys.stdin, sys.stdout)
        return int(ExitCode.DONE)
    text = _text(file)
    if file.suffix.lower() == ".sql":
        schemas = _schemas(schema_file) if schema_file else {}
        text = json.dumps({"id": file.name, "sql": text, "dialect": dialect, "schemas": schemas})
    parse_lines(text.splitlines(), sys.stdout)
    return int(ExitCode.DONE)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
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
@click.option("--spark", "on_spark", is_flag=True, help="parse the texts of query logs on the estate's Spark session")
def harvest(estate_file: Path, state: Path, fmt: str, on_spark: bool) -> int:
    """Read the estate's lineage sources into the graph, and say what could not be resolved."""
    from pii_tracer.app.planning.plan_creation import graph_file, take_inventory, take_lineage
    from pii_tracer.lineage.graph.graph_file import save
    from pii_tracer.lineage.sources.dataset_notes import save_notes
    from reports.escape import visible
    from reports.progress import Progress

    settings = Settings(estate_file, state)
    estate = settings.estate()
    with Progress() as progress:
        progress.step("inventory", "schemas from the catalogs")
        inventory = take_inventory(estate, settings.base, progress.step)
        progress.step("harvest")
        if on_spark:
            from executors.engine.spark_session import open_session
            from pii_tracer.lineage.sources.query_logs_spark import parser_on

            spark = open_session(estate, settings.base)
            try:
                found = take_lineage(settings, estate, inventory, progress.step, parser_on(spark))
            finally:
                spark.stop()
        else:
            found = take_lineage(settings, estate, inventory, progress.step)
    save(found.graph, graph_file(settings))
    save_notes(found.notes, settings.state / "lineage" / "notes.json")
    if fmt == "json":
        gaps = [gap.model_dump(mode="json") for gap in found.graph.gaps]
        click.echo(json.dumps(asdict(found.summary) | {"digest": found.graph.digest(), "gap_list": gaps}, indent=2))
        return int(ExitCode.DONE)
    for source in found.summary.sources:
        files = f" in {source.files} files" if source.files > 1 else ""
        click.echo(visible(f"{source.source}: {source.read} {source.unit}{files}"))
    click.echo(summary_text(found.summary))
    for gap in found.graph.gaps:
        click.echo(visible(f"gap: {gap.dataset or gap.kind}: {gap.reason}"))
        click.echo(visible(f"     seen in {gap.evidence}; {gap.closes}"))
    return int(ExitCode.DONE)


@click.command()
@click.option("--listen", default="127.0.0.1:5000", show_default=True, metavar="HOST:PORT", help="port 0: any free one")
@click.option("--count", type=click.IntRange(min=1), help="stop after so many events")
@click.option("--seconds", type=click.FloatRange(min=0), help="stop after so many seconds")
@state_option
def receive(listen: str, count: int | None, seconds: float | None, state: Path) -> int:
    """Take OpenLineage events over HTTP into the event log, which `harvest` reads. Ends with Ctrl-C.

    PII_TRACER_RECEIVE_KEY: the bearer token senders must give; needed to listen on other than loopback addresses.
    """
    from pii_tracer.lineage.sources.openlineage.event_log import EventLog
    from pii_tracer.lineage.sources.openlineage.http_receiver import Receiver

    host, _, port = listen.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise UsageError(f"`{listen}` is not HOST:PORT", todo="write it as 127.0.0.1:5000")
    log = EventLog(state / "lineage" / "events")
    receiver = Receiver(host.strip("[]"), int(port), log, os.environ.get("PII_TRACER_RECEIVE_KEY"))
    click.echo(f"listening on http://{receiver.address}/api/v1/lineage", err=True)
    try:
        receiver.run(count, seconds)
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
    got = receiver.received
    click.echo(f"{got.stored} events stored, {got.known} known before, {got.refused} requests refused")
    if got.repaired:
        click.echo(f"{got.repaired} torn lines of an earlier crash were cut off; they were never acknowledged")
    return int(ExitCode.DONE)


def summary_text(summary: object) -> str:
    """One line: what was read, what was resolved, what was not."""
    told = vars(summary)
    return (
        f"{told['events']} events, {told['statements']} statements: {told['resolved']} resolved,"
        f" {told['partial']} partial, {told['opaque']} opaque; {told['gaps']} gaps"
    )
