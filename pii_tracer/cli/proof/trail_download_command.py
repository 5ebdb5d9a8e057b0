"""`attest trail`: fetch the logs that Amazon keeps of an erasure, for a check that then needs no network."""

from __future__ import annotations

from pathlib import Path

import click

from pii_tracer.cli.options import state_option
from pii_tracer.common.plurals import counted
from pii_tracer.model.errors import ExitCode


@click.command()
@click.argument("run", required=False)
@state_option
@click.option("--bucket", required=True, help="the bucket that the trail writes to")
@click.option("--prefix", default="", help="what lies before AWSLogs/ in it")
@click.option("--region", required=True, help="the trail's home region")
@click.option("--out", type=click.Path(path_type=Path), help="folder  [default: trail in the run's folder]")
def trail(run: str | None, state: Path, bucket: str, prefix: str, region: str, out: Path | None) -> int:
    """Fetch a CloudTrail trail's log and digest files of the days of a RUN, and the keys to check them with.

    Credentials come from the environment, as boto3 finds them. `attest verify --trail` checks the folder offline.
    """
    from pii_tracer.app.proof.trail_of_run import fetch_trail_of

    found = fetch_trail_of(state, run, bucket=bucket, prefix=prefix, region=region, out=out)
    place = found.folder
    files = f"{counted(found.digests, 'digest')}, {counted(found.logs, 'log file')} and {counted(found.keys, 'key')}"
    click.echo(f"{files} in {place}", err=True)
    click.echo(f"--trail {place} --trail-keys {found.keys_file}")
    return int(ExitCode.DONE)
