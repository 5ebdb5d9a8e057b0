"""`laws`: what each law says of an erasure, and where it says so."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pii_tracer.app.settings import DEFAULT_STATE, Settings, moment
from pii_tracer.cli.options import estate_option, format_option
from pii_tracer.model.errors import ExitCode


@click.command()
@click.argument("law", required=False)
@estate_option
@click.option("--received", help="the rules for a request that came in then, with a time zone  [default: now]")
@format_option("text", "json")
def laws(law: str | None, estate_file: Path, received: str | None, fmt: str) -> int:
    """Show what laws say of an erasure (all, or one LAW): deadline, extension, notice, records, whom to inform.

    \b
    Example:
      pii-tracer laws DPDP --received 2027-06-01T00:00:00+05:30
    """
    from pii_tracer.app.intake.known_laws import known_laws
    from reports.laws_text import law_lines

    found = known_laws(Settings(estate_file, DEFAULT_STATE), moment(received), law)
    if fmt == "json":
        told = [
            {"law": one.name, "title": one.title, "checked": str(one.checked), **rules.model_dump(mode="json")}
            for one, rules in found
        ]
        click.echo(json.dumps(told, indent=2))
    else:
        click.echo("\n\n".join("\n".join(law_lines(one, rules)) for one, rules in found))
    return int(ExitCode.DONE)
