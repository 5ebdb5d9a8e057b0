"""`completion`: the shell's own completion script."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from pii_tracer.model.errors import ExitCode


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print the completion script for SHELL; source it in the shell's start file."""
    from pii_tracer.cli.main import cli

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(kind(cli, {}, "pii-tracer", "_PII_TRACER_COMPLETE").source())
    return int(ExitCode.DONE)
