"""`init`, `inventory` and `retention`: the estate itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from pii_tracer.app.settings import Settings
from pii_tracer.cli.options import estate_option, format_option, state_option
from pii_tracer.model.errors import ExitCode, UsageError

ESTATE_TEMPLATE = """\
version: 1
estate: my-lakehouse
environment: local            # local | production (production needs signed approvals)
catalogs:
  lake:                       # the name Spark SQL knows it by
    type: iceberg-hadoop
    warehouse: warehouse/lake
  spark_catalog:              # tables that are known by a path
    type: declared
    tables: []                # - {name: prod.customers, format: delta, location: warehouse/delta/customers}
roots: [warehouse]            # every table and file below these is found, registered or not
lineage:
  events: []                  # OpenLineage events: NDJSON files or folders
  sql: []                     # SQL files or folders
subjects:
  - name: customer
    source: lake.prod.customers
    key: customer_id          # a request names a person by this column
    identifiers: []           # - {column: phone, category: phone}
    record_keys: []           # columns unique to one row of one person, e.g. order_id
    tables: []                # further tables with the key: - {table: prod.tickets, key: customer_id}
"""

POLICY_TEMPLATE = """\
version: 1
min_slack_days: 2
allow_immediate_retention: false
max_approval_hours: 72
production_approvers: 2
"""


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path())
@state_option
def init(folder: Path, state: Path) -> int:
    """Write what is not there yet of a first estate file and a policy into FOLDER, and of the estate's key."""
    from pii_tracer.common.atomic_files import write_atomic

    files = {folder / "pii-tracer.yaml": ESTATE_TEMPLATE, folder / "policy.yaml": POLICY_TEMPLATE}
    settings = Settings(folder / "pii-tracer.yaml", state)
    key = settings.key_file()
    _refuse_init([*files, key], state)
    for path, text in files.items():
        if path.exists():
            click.echo(f"{path} is here already and stays as it is")
        else:
            write_atomic(path, text.encode())
            click.echo(f"wrote {path}")
    settings.key(create=True)
    click.echo(f"the estate's key is {key}; keep it secret and keep it: plans are sealed with it")
    click.echo("next: describe your estate in pii-tracer.yaml, then run `pii-tracer doctor` and `pii-tracer inventory`")
    return int(ExitCode.DONE)


def _refuse_init(files: Sequence[Path], state: Path) -> None:
    """Where nothing is to be made, and where another key would not open what the old one sealed."""
    if all(path.exists() for path in files):
        raise UsageError("nothing to make: all is already here", where=str(files[0]), todo="edit it")
    *_, key = files
    if not key.exists() and any((state / "runs").glob("*")):
        raise UsageError(
            "the state folder knows runs, and the key of their plans is not there: a new one opens none of them",
            where=str(key),
            todo="put the key back, or name its file (PII_TRACER_ESTATE_KEY); for a new estate use another --state",
        )


@click.command()
@estate_option
@state_option
@format_option("text", "json")
def inventory(estate_file: Path, state: Path, fmt: str) -> int:
    """Show what really exists: tables, folders, archives, replicas, and what could not be read."""
    from pii_tracer.app.planning.plan_creation import take_inventory
    from pii_tracer.app.planning.s3_table_search import with_remote
    from pii_tracer.lake.dataset_paths import EstatePaths
    from reports.progress import Progress

    settings = Settings(estate_file, state)
    estate, base = settings.estate(), settings.base
    with Progress() as progress:
        found = take_inventory(estate, base, progress.step)
        found = with_remote(found, estate, EstatePaths(estate, base), progress.step)
    if fmt == "json":
        click.echo(json.dumps(found.model_dump(mode="json"), indent=2, sort_keys=True))
    else:
        from reports.inventory_text import print_inventory

        print_inventory(found)
    return int(ExitCode.INCOMPLETE if found.gaps else ExitCode.DONE)
