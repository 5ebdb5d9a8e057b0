"""`diff`: what changed between two plans, in a reviewer's words."""

from __future__ import annotations

from pathlib import Path

import click

from pii_tracer.cli.options import format_option
from pii_tracer.model.errors import ExitCode
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.review.plan_changes import changes
from pii_tracer.review.plan_file import load_plan


@click.command()
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@format_option("text", "markdown", "json")
def diff(old: Path, new: Path, fmt: str) -> int:
    """Compare the plan OLD with the plan NEW: copies, strategies, gaps, steps, dates, cost. Always exits 0."""
    click.echo(rendered(load_plan(old).plan, load_plan(new).plan, fmt))
    return int(ExitCode.DONE)


def rendered(old: ErasurePlan, new: ErasurePlan, fmt: str) -> str:
    """The differences in one of the formats, without the last newline."""
    from reports.plan.plan_changes import render_changes_json, render_changes_markdown, render_changes_text

    found = changes(old, new)
    if fmt == "json":
        return render_changes_json(found)
    if fmt == "markdown":
        return render_changes_markdown(found, old.plan_id, new.plan_id).rstrip("\n")
    return render_changes_text(found)
