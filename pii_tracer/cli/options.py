"""Options of the commands: flags come before PII_TRACER_* variables, these before the defaults."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from pii_tracer.app.settings import DEFAULT_ESTATE, DEFAULT_STATE
from pii_tracer.model.errors import UsageError
from reports.watch.command_watch import CommandWatch
from reports.watch.watch import Watch

F = TypeVar("F", bound=Callable[..., Any])


def estate_option(command: F) -> F:
    """`--estate FILE`, also PII_TRACER_ESTATE."""
    return click.option(
        "--estate",
        "estate_file",
        type=click.Path(path_type=Path),
        envvar="PII_TRACER_ESTATE",
        default=DEFAULT_ESTATE,
        show_default=True,
        help="the estate file",
    )(command)


def _state_folder(context: click.Context, parameter: click.Parameter, path: Path) -> Path:
    if os.path.lexists(path) and not path.is_dir():
        raise UsageError(
            "the state folder is not a folder", where=str(path), todo="name the folder that contains `runs`"
        )
    return path


def state_option(command: F) -> F:
    """`--state DIR`, also PII_TRACER_STATE. A folder that is not there yet is made by what needs it."""
    return click.option(
        "--state",
        type=click.Path(path_type=Path),
        envvar="PII_TRACER_STATE",
        default=DEFAULT_STATE,
        show_default=True,
        callback=_state_folder,
        help="folder for keys, plans, runs and logs",
    )(command)


def watching(stages: int | None = None) -> Watch:
    """Shows the progress of the command that runs, and tells those of it that somebody asked for: logs and traces.

    stages: how many there will be, to number them. Use it as a context manager.
    """
    context = click.get_current_context()
    name = context.command_path.partition(" ")[2]
    return context.ensure_object(CommandWatch).show(name, stages)


def metrics_option(command: F) -> F:
    """`--metrics FILE`, of the commands that run a plan."""
    return click.option(
        "--metrics",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Prometheus text file that is written during the run and at its end",
    )(command)


def trusted_option(command: F) -> F:
    """`--trusted FILE`, of the commands that run a plan."""
    return click.option(
        "--trusted", type=click.Path(path_type=Path), help="YAML of trusted approvers and their public keys"
    )(command)


def show_or_write(text: str, out: Path | None) -> None:
    """A report: in a file where one is named (`--out`), otherwise on stdout."""
    if out is None:
        click.echo(text, nl=False)
    else:
        from pii_tracer.common.atomic_files import write_atomic

        write_atomic(out, text.encode())


def format_option(*choices: str) -> Callable[[F], F]:
    """`--format`, text first."""

    def decorate(command: F) -> F:
        return click.option(
            "--format",
            "fmt",
            type=click.Choice(choices),
            envvar="PII_TRACER_FORMAT",
            default=choices[0],
            show_default=True,
        )(command)

    return decorate
