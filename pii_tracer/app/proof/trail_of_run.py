"""The logs that Amazon keeps of an erasure, fetched for a check that then needs no network."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from pii_tracer.app.execution.run_folder import choose_run
from pii_tracer.model.errors import ProofError


@dataclass(frozen=True)
class TrailOfRun:
    """What was fetched: numbers of files, and where they lie."""

    digests: int
    logs: int
    keys: int
    folder: Path
    keys_file: Path


def fetch_trail_of(
    state: Path, run: str | None = None, *, bucket: str, prefix: str = "", region: str, out: Path | None = None
) -> TrailOfRun:
    """Fetch a CloudTrail trail's log and digest files of the days of a run, and the keys to check them with.

    bucket: the trail writes to it. prefix: what lies before AWSLogs/ there. region: the trail's home region.

    Raises:
        UsageError: there is no such run.
        ProofError: the run has not begun, or AWS refuses.
    """
    from pii_tracer.lake.stores.aws_clients import aws_client
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
    return TrailOfRun(found.digests, found.logs, found.keys, place, place / KEYS_NAME)
