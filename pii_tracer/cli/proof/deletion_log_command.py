"""`log`: the estate's deletion log, looked at, exported, and cut off where its own retention has passed."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pii_tracer.app.settings import Settings, moment
from pii_tracer.cli.options import estate_option, format_option, state_option
from pii_tracer.common.plurals import counted
from pii_tracer.model.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from pii_tracer.proof.deletions.entries import Entry

F = TypeVar("F", bound=Callable[..., Any])
_AT_ONCE = 1_000
_STATES = ("erased", "partial", "deferred", "blocked", "exempt", "confirmed")


@click.group()
def log() -> None:
    """The deletion log: who was erased where, when and how. A run writes it by itself."""


def _selecting(command: F) -> F:
    for option in (
        click.option("--newest", is_flag=True, help="of each step only its last row"),
        click.option("--until", help="steps that ran before this time"),
        click.option("--since", help="steps that ran at this time or later (ISO 8601 with a time zone)"),
        click.option("--state-is", "standing", type=click.Choice(_STATES), help="only rows in this state"),
        click.option("--action", help="one kind of step, e.g. files_rewrite"),
        click.option("--dataset", help="datasets, with * and ?"),
        click.option("--copy", help="a copy of a plan"),
        click.option("--plan", help="a plan's id"),
        click.option("--subject", help="a person's keyed reference"),
        click.option("--request", help="a request's id"),
    ):
        command = option(command)
    return command


@log.command()
@estate_option
@state_option
@_selecting
@format_option("text", "json", "csv")
def show(estate_file: Path, state: Path, fmt: str, **asked: Any) -> int:
    """Rows of the log, the oldest first."""
    from pii_tracer.app.proof.deletion_log_access import open_log, selection
    from pii_tracer.proof.deletions.deletion_log_export import as_csv

    log, asked_for = open_log(Settings(estate_file, state)), selection(**asked)
    if fmt == "csv":
        for piece in as_csv(log.rows(asked_for)):
            click.echo(piece, nl=False)
    elif fmt == "json":
        _tell_machines(log.numbered(asked_for))
    else:
        _tell(log.numbered(asked_for))
    return int(ExitCode.DONE)


def _tell_machines(rows: Iterable[tuple[int, Entry]]) -> None:
    """A list in JSON, each row as it comes."""
    before = "["
    for seq, entry in rows:
        text = json.dumps({"seq": seq, **entry.model_dump(mode="json")}, indent=2)
        click.echo(before + "\n" + textwrap.indent(text, "  "), nl=False)
        before = ","
    click.echo("[]" if before == "[" else "\n]")


@log.command()
@click.argument("file", type=click.Path(path_type=Path))
@estate_option
@state_option
@_selecting
def export(file: Path, estate_file: Path, state: Path, **asked: Any) -> int:
    """Write rows of the log to FILE, which ends in .csv or .parquet."""
    from pii_tracer.app.proof.deletion_log_access import open_log, selection
    from pii_tracer.proof.deletions.deletion_log_export import export as write

    if file.suffix not in (".csv", ".parquet"):
        raise UsageError(
            "the deletion log is exported as CSV or Parquet", where=str(file), todo="name it .csv or .parquet"
        )
    write(open_log(Settings(estate_file, state)).rows(selection(**asked)), file)
    click.echo(str(file))
    return int(ExitCode.DONE)


@log.command()
@estate_option
@state_option
@click.option("--as-of", help="the time to count from  [default: now]")
@format_option("text", "json")
def prune(estate_file: Path, state: Path, as_of: str | None, fmt: str) -> int:
    """Remove the rows that are older than `deletion_log: {keep_days: …}` of the estate file.

    Rows of requests that are still open, or whose law keeps them on record for longer, stay. So do all later
    rows. Recheck no longer knows the persons whose rows are gone.
    """
    from pii_tracer.app.proof.deletion_log_access import prune_log, stops_pruning

    settings, now = Settings(estate_file, state), moment(as_of)
    done = prune_log(settings, now)
    if request := stops_pruning(settings, now):
        click.echo(
            f"the rows of the request {request} stay, and all later ones: it is open, its law keeps them, or something"
            " of its person is kept. End the hold, or let a plan erase what it kept",
            err=True,
        )
    if fmt == "json":
        click.echo(json.dumps(done.model_dump(mode="json") if done else None))
    elif done:
        click.echo(f"removed {counted(done.rows, 'row')} from before {done.before:%Y-%m-%d}; digest: {done.digest}")
    else:
        click.echo("no row was removed" if request else "no row is old enough to be removed")
    return int(ExitCode.DONE)


def _tell(rows: Iterable[tuple[int, Entry]]) -> None:
    """Tables of so many rows each, which are as wide as their rows need."""
    left = iter(rows)
    number = _tell_some(islice(left, _AT_ONCE))
    while some := list(islice(left, _AT_ONCE)):
        number += _tell_some(some)
    click.echo(counted(number, "row"))


def _tell_some(rows: Iterable[tuple[int, Entry]]) -> int:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from reports.escape import visible

    table = Table(box=box.SIMPLE_HEAD)
    for name in ("#", "when", "request", "state", "dataset", "step", "files", "bytes", "from", "to"):
        table.add_column(name, justify="right" if name in ("#", "files", "bytes") else "left", overflow="fold")
    for seq, e in rows:
        numbers = ("" if n is None else f"{n:,}" for n in (e.files_removed, e.bytes_removed))
        words = (e.state.value, e.dataset, e.action.value if e.action else e.reason or "")
        versions = (e.snapshot_before or "", e.snapshot_after or "")
        cells = (str(seq), f"{e.run_at:%Y-%m-%d %H:%M}", e.request_id, *words, *numbers, *versions)
        table.add_row(*(_plain(visible(cell)) for cell in cells))
    Console(highlight=False).print(table)
    return table.row_count


def _plain(text: str) -> Any:
    from rich.text import Text

    return Text(text)
