"""`suppressed`: a loader asks, key by key, who must not come back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TextIO

import click

from pii_tracer.app.settings import Settings
from pii_tracer.cli.options import estate_option, state_option
from pii_tracer.model.errors import ExitCode


@click.command()
@click.argument("file", type=click.File(encoding="utf-8-sig"), default="-")
@estate_option
@state_option
@click.option("--subject", required=True, help="the kind of person, as the estate file declares it")
@click.option("--column", help="the column the values are of  [default: the subject's key]")
@click.option("--check", is_flag=True, help="print nothing; exit 9 where any value is suppressed")
def suppressed(file: TextIO, estate_file: Path, state: Path, subject: str, column: str | None, check: bool) -> int:
    """Read one value a line from FILE (or standard input) and answer `suppressed` or `free`, line by line.

    Values are never printed. Exit 9 where any of them belongs to an erased person.
    """
    from pii_tracer.app.erased_persons.suppressed_keys import suppressed as look

    found = 0
    for hit in look(Settings(estate_file, state), file, subject, column):
        found += hit
        if not check:
            click.echo("suppressed" if hit else "free")
    click.echo(f"{found} suppressed", file=sys.stderr)
    return int(ExitCode.RESIDUE if found else ExitCode.DONE)
