"""`kept`: which branches and commits of a lakeFS repository keep an object alive, until when, and what lets it go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from pii_tracer.app.settings import Settings, moment
from pii_tracer.cli.options import estate_option, format_option, state_option
from pii_tracer.common.plurals import counted
from pii_tracer.model.errors import ExitCode, UsageError


@click.command()
@click.argument("repository")
@click.argument("path")
@estate_option
@state_option
@click.option("--by", help="also say what would let it go by this time  [default: at once]")
@click.option("--as-of", help="as of when  [default: now]")
@format_option("text", "json")
def kept(
    repository: str, path: str, estate_file: Path, state: Path, by: str | None, as_of: str | None, fmt: str
) -> int:
    """For everything that was ever under PATH in REPOSITORY (its name, or SERVER/NAME). Changes nothing."""
    from pii_tracer.app.lakefs_object_keepers import explain, known_repository

    now = moment(as_of)
    found = known_repository(Settings(estate_file, state), repository)
    told = explain(found, path, now, moment(by) if by else now)
    if not told["objects"]:
        raise UsageError(
            "no known commit contains a file under this path",
            where=found.location,
            todo="give a path that a commit of the repository contains",
        )
    click.echo(json.dumps(told, indent=2) if fmt == "json" else "\n".join(_lines(told)))
    return int(ExitCode.DONE)


def _lines(told: dict[str, Any]) -> list[str]:
    from reports.escape import visible

    lines = []
    for found in told["objects"]:
        free = found["free_from"]
        end = f"may be collected from {free}" if free else "stays as long as nothing is changed"
        lines.append(f"{visible(found['address'])}: named by {counted(found['commits'], 'commit')}, {end}")
        for keeper in found["kept_by"]:
            where = visible(keeper["branch"]) if keeper["branch"] else "a commit that no branch leads to"
            until = keeper["until"] or ("it is changed there" if keeper["why"] == "head" else "there are rules")
            lines.append(f"  {keeper['why']:<9} {where}, commit {keeper['commit'][:12]}, until {until}")
        change = found["to_let_go"]
        days = ", ".join(f"{visible(branch)} {days}" for branch, days in change["days"].items())
        default = "as it is" if change["default_days"] is None else f"{change['default_days']}"
        deleted = ", ".join(visible(b) for b in change["delete_on"]) or "nowhere"
        lines.append(
            f"  to let it go by {change['by']}: delete on {deleted}; days: default {default}, {days or 'no other'}"
        )
        lines.append(
            f"    {counted(change['commits_that_expire_earlier'], 'other commit')} would expire earlier with it"
        )
    if told["unknown"]:
        lines.append(f"commits that no branch leads to are not known: {told['unknown']}")
    return lines
