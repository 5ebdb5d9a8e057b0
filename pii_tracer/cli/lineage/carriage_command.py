"""`carriage`: where is the key? For every dataset downstream of a subject, how it carries the person."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pii_tracer.app.settings import Settings
from pii_tracer.cli.options import estate_option, format_option, state_option, watching
from pii_tracer.model.datasets import Carries
from pii_tracer.model.errors import ExitCode, UsageError


@click.command()
@click.argument("table", required=False)
@estate_option
@state_option
@format_option("text", "json")
def carriage(table: str | None, estate_file: Path, state: Path, fmt: str) -> int:
    """Where is the key? How every dataset downstream of a subject carries the person; TABLE: one of them in full.

    Reads lineage and schemas, not the persons. Exit code 3 when the answer for a dataset is unknown.
    """
    from pii_tracer.app.lineage.key_location import look
    from reports.lineage.key_location_text import print_carriage, print_witnesses

    settings = Settings(estate_file, state)
    with watching() as progress:
        found = look(settings, progress.step)
    datasets = [d for one in found for d in one.datasets]
    if table is not None:
        datasets = [d for d in datasets if table.lower() in (d.table.lower(), d.dataset.name.lower())]
        if not datasets:
            raise UsageError(
                f"no subject's data goes to `{table}`",
                where=str(estate_file),
                todo="`pii-tracer carriage` lists the tables; `pii-tracer trace` shows all lineage",
            )
    if fmt == "json":
        shown = [one.model_copy(update={"datasets": tuple(d for d in one.datasets if d in datasets)}) for one in found]
        click.echo(json.dumps({"subjects": [one.model_dump(mode="json") for one in shown]}, indent=2, sort_keys=True))
    elif table is not None:
        for dataset in datasets:
            print_witnesses(dataset)
    else:
        for one in found:
            print_carriage(one)
    unknown = any(d.carries is Carries.UNKNOWN for d in datasets)
    return int(ExitCode.INCOMPLETE if unknown else ExitCode.DONE)
