"""`inform`: an erasure is passed on to the recipients of the data."""

from __future__ import annotations

from pathlib import Path

import click

from pii_tracer.app.settings import Settings
from pii_tracer.cli.options import estate_option, state_option
from pii_tracer.common.plurals import counted
from pii_tracer.model.errors import ExitCode

_NAMED = 5
"""Requests that are named; there may be any number."""


@click.command()
@click.argument("run", required=False)
@estate_option
@state_option
def inform(run: str | None, estate_file: Path, state: Path) -> int:
    """Inform the `recipients` of the estate file whom a RUN erases, each once. Call it again after a failure.

    Exit 7 when one could not be informed. `pii-tracer confirm RECIPIENT` then takes its confirmation.

    \b
    Example:
      pii-tracer inform plan-1ec2010e57a0
    """
    from pii_tracer.app.recipients.erased_data import Withheld
    from pii_tracer.app.recipients.informing import inform as tell

    failed, ended = False, ""
    for one in tell(Settings(estate_file, state), run):
        told = one.told
        if told is None:
            failed, said = failed or one.withheld is Withheld.LATER, f"not informed: {one.withheld}"
        elif told.at is None:
            failed, said = True, f"not informed: {told.problem}"
        elif not told.requests:
            said = "not informed: the plan has no persons of a kind that it knows"
        else:
            when = f"on {told.at:%Y-%m-%d %H:%M} UTC, has to confirm by {told.confirm_by:%Y-%m-%d}"
            said = f"{'informed' if one.now else 'informed before'} by {told.how} {when}"
        if told and told.unnamed:
            failed = True
            number = counted(len(told.unnamed), "request")
            said += f"; not informed of {number}, first {told.unnamed[0]}: none of its identifiers is known"
        click.echo(f"{one.recipient}: {said}")
        ended = ended or ", ".join(one.ended[:_NAMED])
    if ended:
        click.echo(f"no recipient was informed of requests that were withdrawn or refused: {ended}", err=True)
    return int(ExitCode.PARTIAL if failed else ExitCode.DONE)
