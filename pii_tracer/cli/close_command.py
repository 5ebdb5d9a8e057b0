"""`close`: the request is answered, and the persons' values that its plan needed are destroyed."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pii_tracer.app.execution.sealed_values_destruction import Closed, close_run
from pii_tracer.cli.options import format_option, state_option
from pii_tracer.model.errors import ExitCode


@click.command()
@click.argument("run", required=False)
@state_option
@format_option("text", "json")
def close(run: str | None, state: Path, fmt: str) -> int:
    """Destroy the sealed manifest of a RUN (a plan id) that is over. Without RUN, the newest.

    Its plan can erase and verify nothing after that; attestation, deletion log and `recheck` need no values."""
    _show(close_run(state, run), fmt)
    return int(ExitCode.DONE)


def _show(closed: Closed, fmt: str) -> None:
    plan, manifest, destroyed, at = closed.plan, closed.manifest, closed.destroyed, closed.at
    if fmt == "json":
        told = {"plan_id": plan.plan_id, "closed_at": at, "manifest": str(manifest), "destroyed": destroyed}
        click.echo(json.dumps({**told, "others": [str(path) for path in closed.others]}, sort_keys=True))
        return
    if destroyed:
        click.echo(f"{plan.plan_id} is closed: its sealed manifest is destroyed ({manifest})")
    else:
        click.echo(f"{plan.plan_id} was closed on {at}: its sealed manifest is not there")
    for path in closed.others:
        click.echo(f"    still there, of another plan for the same persons: {path}")
    click.echo("yours to destroy: the request file, and copies of the manifest in version control and backups")
