"""`init`, `inventory` and `retention`: the estate itself."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pii_tracer.app.settings import Settings
from pii_tracer.cli.options import estate_option, format_option, state_option
from pii_tracer.model.errors import ExitCode


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path())
@state_option
def init(folder: Path, state: Path) -> int:
    """Write what is not there yet of a first estate file and a policy into FOLDER, and of the estate's key."""
    from pii_tracer.app.first_estate import write_first_estate

    made = write_first_estate(folder, state)
    for path, written in made.files.items():
        click.echo(f"wrote {path}" if written else f"{path} is here already and stays as it is")
    click.echo(f"the estate's key is {made.key}; keep it secret and keep it: plans are sealed with it")
    click.echo("next: describe your estate in pii-tracer.yaml, then run `pii-tracer doctor` and `pii-tracer inventory`")
    return int(ExitCode.DONE)


@click.command()
@estate_option
@state_option
@format_option("text", "json")
def inventory(estate_file: Path, state: Path, fmt: str) -> int:
    """Show what really exists: tables, folders, archives, replicas, and what could not be read."""
    from pii_tracer.app.planning.estate_inventory import inventory as look
    from reports.progress import Progress

    with Progress() as progress:
        found = look(Settings(estate_file, state), show=progress)
    if fmt == "json":
        click.echo(json.dumps(found.model_dump(mode="json"), indent=2, sort_keys=True))
    else:
        from reports.inventory_text import print_inventory

        print_inventory(found)
    return int(ExitCode.INCOMPLETE if found.gaps else ExitCode.DONE)
