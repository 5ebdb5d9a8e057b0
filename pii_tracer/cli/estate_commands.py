"""`init`, `inventory` and `estimate`: the estate itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pii_tracer.app.settings import Settings, moment
from pii_tracer.cli.options import estate_option, format_option, state_option, watching
from pii_tracer.model.errors import ExitCode
from pii_tracer.model.estimate import TOUCHED

if TYPE_CHECKING:
    from pii_tracer.app.estate_draft.store_sections import Reach


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path())
@state_option
@click.option("--discover", "places", multiple=True, metavar="PLACE", help="make the file from this; may be repeated")
@click.option("--warehouse", help="for a catalog among the places that needs one")
@click.option(
    "--lineage", multiple=True, type=click.Path(path_type=Path), help="SQL, OpenLineage events or a dbt project there"
)
@click.option("--region", help="of S3  [default: as boto3 finds it]")
@click.option(
    "--webhdfs", multiple=True, metavar="ADDRESS", help="of a NameNode; may be repeated  [default: port 9870]"
)
@click.option("--hdfs-user", help="whom HDFS takes the requests for; NAME@REALM for Kerberos  [default: as Hadoop's]")
@click.option("--hdfs-ca", metavar="FILE", help="certificates of who signs those of HDFS's servers")
@click.option("--endpoint", metavar="ADDRESS", help="of gs:// and abfss:// stores; of S3 and Glue: AWS_ENDPOINT_URL")
@click.option("--name", default="my-lakehouse", show_default=True, help="of the estate, with --discover")
def init(
    folder: Path,
    state: Path,
    places: tuple[str, ...],
    warehouse: str | None,
    lineage: tuple[Path, ...],
    region: str | None,
    webhdfs: tuple[str, ...],
    hdfs_user: str | None,
    hdfs_ca: str | None,
    endpoint: str | None,
    name: str,
) -> int:
    """Write what is not there yet of a first estate file and a policy into FOLDER, and of the estate's key.

    With --discover the estate file is made from what is there. Name a folder, s3://BUCKET/PREFIX,
    hdfs://HOST:PORT/PATH, gs://BUCKET/PREFIX, abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX,
    thrift://HOST:PORT (Hive metastore), glue:REGION, or sqlite:///FILE or postgresql://…
    (Iceberg SQL). http(s)://… is Iceberg REST, Nessie where it ends in /v2, Unity Catalog where it ends in
    /unity-catalog. Guesses are marked for you to correct.

    \b
    Example:
      pii-tracer init --discover /data/lake --discover thrift://metastore.internal:9083
    """
    from pii_tracer.app.estate_draft.store_sections import Reach
    from pii_tracer.app.first_estate import refuse_written, write_first_estate

    refuse_written(folder, state, drafted=bool(places))
    reach = Reach(webhdfs, hdfs_user, hdfs_ca, endpoint)
    drafted = _draft(folder, places, warehouse, lineage, region, reach, name) if places else None
    made = write_first_estate(folder, state, drafted)
    for path, written in made.files.items():
        click.echo(f"wrote {path}" if written else f"{path} is here already and stays as it is")
    click.echo(f"the estate's key is {made.key}; keep it secret and keep it: plans are sealed with it")
    what = "confirm the guesses" if drafted else "describe your estate"
    click.echo(f"next: {what} in pii-tracer.yaml, then run `pii-tracer doctor` and `pii-tracer inventory`")
    return int(ExitCode.DONE)


def _draft(
    folder: Path,
    places: tuple[str, ...],
    warehouse: str | None,
    lineage: tuple[Path, ...],
    region: str | None,
    reach: Reach,
    name: str,
) -> str:
    """The text of an estate file from what the places hold; what was found is said."""
    from pii_tracer.app.estate_draft.draft_estate_file import draft_estate
    from pii_tracer.app.estate_draft.given_places import read_places
    from pii_tracer.common.atomic_files import real_path
    from reports.estate_draft import draft_lines, estate_yaml

    base = real_path(folder / "pii-tracer.yaml").parent
    with watching() as progress:
        named = read_places(places, base, warehouse=warehouse, region=region, lineage=lineage, reach=reach)
        found = draft_estate(name, named, base, progress.step)
    for line in draft_lines(found):
        click.echo(line)
    return estate_yaml(found)


@click.command()
@estate_option
@state_option
@format_option("text", "json")
def inventory(estate_file: Path, state: Path, fmt: str) -> int:
    """Show what really exists: tables, folders, archives, replicas, and what could not be read."""
    from pii_tracer.app.planning.estate_inventory import inventory as look

    with watching() as progress:
        found = look(Settings(estate_file, state), show=progress)
    if fmt == "json":
        click.echo(json.dumps(found.model_dump(mode="json"), indent=2, sort_keys=True))
    else:
        from reports.inventory_text import print_inventory

        print_inventory(found)
    return int(ExitCode.INCOMPLETE if found.gaps else ExitCode.DONE)


@click.command()
@estate_option
@state_option
@click.option("--persons", type=click.IntRange(1), required=True, help="how many persons are erased together")
@click.option("--executors", type=click.IntRange(1), default=1, show_default=True, help="cores that work at once")
@click.option(
    "--touched",
    type=click.FloatRange(0, 1, min_open=True),
    default=TOUCHED,
    show_default=True,
    help="share of a table's files that one person is in: an assumption, which the output repeats",
)
@click.option(
    "--rate", type=float, help="MiB of files that one executor searches in a second  [default: measured here]"
)
@click.option("--as-of", help="when the erasure would begin, with a time zone  [default: now]")
@format_option("text", "json")
def estimate(
    estate_file: Path,
    state: Path,
    persons: int,
    executors: int,
    touched: float,
    rate: float | None,
    as_of: str | None,
    fmt: str,
) -> int:
    """Estimate how long an erasure would take, and what it would cost (exit 3 where not everything is known).

    Only listings and the metadata of tables are read: no file with data is opened, and no person is needed.

    \b
    Example:
      pii-tracer estimate --persons 50 --executors 16 --touched 0.02
    """
    from pii_tracer.app.cost_estimate.estate_estimate import estimate as made_of

    with watching() as progress:
        found = made_of(
            Settings(estate_file, state),
            persons=persons,
            executors=executors,
            touched=touched,
            rate=rate,
            as_of=moment(as_of),
            show=progress,
        )
    if fmt == "json":
        click.echo(json.dumps(found.model_dump(mode="json"), indent=2))
    else:
        from reports.estimate_text import render_estimate_text

        click.echo(render_estimate_text(found), nl=False)
    return int(ExitCode.INCOMPLETE if found.at_least else ExitCode.DONE)
