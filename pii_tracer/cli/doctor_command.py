"""`pii-tracer doctor`: what is missing on this machine, and how to mend it."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pii_tracer.app.installation_checks import Level, examine
from pii_tracer.cli.options import estate_option, format_option
from pii_tracer.model.errors import ExitCode


@click.command()
@click.option("--fetch", is_flag=True, help="start Spark once, so that its jars are fetched and known to work")
@estate_option
@format_option("text", "json")
def doctor(fetch: bool, estate_file: Path, fmt: str) -> int:
    """Look at Python, packages, Java, Spark's jars, the estate file, catalogs and credentials; wipe leftovers."""
    findings = examine(estate_file, fetch=fetch)
    if fmt == "json":
        click.echo(json.dumps([{**vars(f), "level": f.level.value} for f in findings], indent=2))
    else:
        for finding in findings:
            mark = {Level.OK: "✔", Level.WARNING: "!", Level.MISSING: "✘"}[finding.level]
            click.echo(f"{mark} {finding.what}: {finding.detail}")
            if finding.mend:
                click.echo(f"    fix: {finding.mend}")
    bad = any(f.level is Level.MISSING for f in findings)
    return int(ExitCode.ERROR if bad else ExitCode.DONE)
