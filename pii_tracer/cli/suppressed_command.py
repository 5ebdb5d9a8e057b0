"""`suppressed`: a loader asks, key by key, who must not come back."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import click

from pii_tracer.app.settings import Settings
from pii_tracer.cli.options import estate_option, state_option
from pii_tracer.model.errors import ExitCode, UsageError
from pii_tracer.run.suppression_list import FILE, SuppressionList


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
    settings = Settings(estate_file, state)
    declared = {s.name: s for s in settings.estate().subjects}
    if subject not in declared:
        raise UsageError(
            f"the estate declares no subject `{subject}`", todo=f"use one of: {', '.join(sorted(declared))}"
        )
    known = SuppressionList(state / FILE, settings.key())
    key_set = f"{subject}.{column or declared[subject].key}"
    if known.entries and key_set not in known.key_sets:
        raise UsageError(
            f"nothing of `{key_set}` is on the suppression list: every value would be free",
            todo=f"use a column of: {', '.join(sorted(known.key_sets))}",
        )
    found = 0
    for value in _values(file):
        hit = known.find(key_set, value) is not None
        found += hit
        if not check:
            click.echo("suppressed" if hit else "free")
    click.echo(f"{found} suppressed", file=sys.stderr)
    return int(ExitCode.RESIDUE if found else ExitCode.DONE)


def _values(file: TextIO) -> Iterator[str]:
    """The lines of the file. Raises `UsageError` where it has another encoding: nothing in it would be known."""
    try:
        for line in file:
            if "\0" in line:  # letters of UTF-16 and UTF-32 are letters and zeros in UTF-8
                raise _not_utf8(file)
            yield line.rstrip("\r\n")
    except UnicodeDecodeError:
        raise _not_utf8(file) from None


def _not_utf8(file: TextIO) -> UsageError:
    return UsageError(
        "the file with the values is not UTF-8, so that none of them would be known",
        where=str(getattr(file, "name", "-")),
        todo="save it as UTF-8 (with `iconv -f UTF-16 -t UTF-8`, for example) and ask again",
    )
