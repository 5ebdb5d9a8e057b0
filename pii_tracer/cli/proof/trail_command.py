"""`attest trail`: fetch the logs that Amazon keeps of an erasure, for a check that then needs no network."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import click

from pii_tracer.app.execution.run_folder import choose_run
from pii_tracer.cli.settings import state_option
from pii_tracer.model.errors import ExitCode, ProofError


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
    from pii_tracer.lake.stores.aws import aws_client
    from pii_tracer.proof.cloudtrail.trail_download import KEYS_NAME, fetch_trail
    from pii_tracer.proof.untrusted_json import read_limited
    from pii_tracer.run.journal import parse

    folder = choose_run(state, run, unfinished=False)
    records, _ = parse(read_limited(folder.journal), str(folder.journal))
    if not records:
        raise ProofError("the run has not begun", where=str(folder.path), todo="`pii-tracer resume`")
    place = out or folder.path / "trail"
    prefix = prefix if not prefix or prefix.endswith("/") else prefix + "/"
    clients = (aws_client("s3", region), aws_client("cloudtrail", region))
    found = fetch_trail(bucket, prefix, records[0].time, datetime.now(timezone.utc), place, *clients)
    click.echo(f"{found.digests} digest(s), {found.logs} log file(s) and {found.keys} key(s) in {place}", err=True)
    click.echo(f"--trail {place} --trail-keys {place / KEYS_NAME}")
    return int(ExitCode.DONE)
