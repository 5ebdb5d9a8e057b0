"""`parse`, `harvest` and `receive`: lineage on the command line."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

import click

from pii_tracer.app.settings import Settings
from pii_tracer.cli.options import estate_option, format_option, state_option, watching
from pii_tracer.model.errors import ExitCode, UsageError


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True), default="-")
@click.option("--format", "fmt", type=click.Choice(["jsonl"]), default="jsonl", show_default=True)
@click.option("--dialect", default="spark", show_default=True, help="for plain .sql files")
@click.option("--schema", "schema_file", type=click.Path(path_type=Path), help="JSON: table to list of columns")
def parse(file: Path, fmt: str, dialect: str, schema_file: Path | None) -> int:
    """Column lineage of SQL, as JSON lines: requests from FILE (or -), or the statements of a .sql file."""
    from pii_tracer.app.lineage.sql_parsing import parse_file
    from pii_tracer.lineage.sql.parse_lines import parse_lines

    if str(file) == "-":
        parse_lines(sys.stdin, sys.stdout)
    else:
        parse_file(file, sys.stdout, dialect, schema_file)
    return int(ExitCode.DONE)


@click.command()
@estate_option
@state_option
@format_option("text", "json")
@click.option(
    "--on-spark",
    "--spark",
    "on_spark",
    is_flag=True,
    help="parse the texts of query logs on the estate's Spark session",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    help="processes that parse query logs [default: as many as there are cores]",
)
def harvest(estate_file: Path, state: Path, fmt: str, on_spark: bool, workers: int | None) -> int:
    """Read the estate's lineage sources into the graph, and say what could not be resolved."""
    from pii_tracer.app.lineage.lineage_harvest import harvest as read_sources
    from pii_tracer.app.lineage.lineage_harvest import summary_text
    from pii_tracer.common.plurals import counted
    from reports.escape import visible

    with watching() as progress:
        found = read_sources(Settings(estate_file, state), on_spark=on_spark, workers=workers, show=progress)
    if fmt == "json":
        gaps = [gap.model_dump(mode="json") for gap in found.graph.gaps]
        click.echo(json.dumps(asdict(found.summary) | {"digest": found.graph.digest(), "gap_list": gaps}, indent=2))
        return int(ExitCode.DONE)
    for source in found.summary.sources:
        files = f" in {counted(source.files, 'file')}" if source.files > 1 else ""
        read = counted(source.read, source.unit.removesuffix("s"), source.unit)
        click.echo(visible(f"{source.source}: {read}{files}"))
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
