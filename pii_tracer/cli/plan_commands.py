"""`plan`, `show`, `approve`, `drift`: everything between a request and the run."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from pii_tracer.app.settings import Settings, moment
from pii_tracer.cli.options import estate_option, format_option, state_option, watching
from pii_tracer.common.plurals import counted
from pii_tracer.model.errors import ExitCode, UsageError
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.review.plan_file import load_plan


@click.command()
@click.argument("requests", nargs=-1, type=click.Path(path_type=Path))
@click.option("--requests", "due", is_flag=True, help="for those of the request store that are due first")
@click.option("--carried-over", is_flag=True, help="for those of the request store that were carried over, alone")
@estate_option
@state_option
@click.option("--policy", type=click.Path(path_type=Path), help="policy file  [default: policy.yaml beside the estate]")
@click.option("--as-of", help="the time to plan for, with a time zone  [default: now]")
@click.option("--retention", type=click.Choice(["retain", "immediate"]), default="retain", show_default=True)
@click.option("--reason", default="", help="why time travel ends at once (needed with `immediate`)")
@click.option("--planner", envvar="PII_TRACER_PLANNER", default="", help="who plans; cannot be the only approver")
@click.option("--waivers", type=click.Path(path_type=Path), help="YAML: gap id to {who, why, until, of}")
@click.option("--write-waivers", type=click.Path(path_type=Path), help="new YAML file: the open gaps, to be filled in")
@click.option("--budget", type=click.FloatRange(min=0), help="most that erasing may cost a week (with `retain`)")
@click.option(
    "--source-erased", is_flag=True, help="an earlier run erased the source: plan for what is left, by the key"
)
@click.option("--only", multiple=True, help="plan for this COPY or DATASET alone (repeatable); never complete")
@click.option(
    "--out", type=click.Path(path_type=Path), help="plan file, ends in .plan.json  [default: in the state folder]"
)
@click.option("--diff", "old", type=click.Path(path_type=Path), help="say what changed against this older plan")
@format_option("text", "json", "markdown", "html")
def plan(
    requests: tuple[Path, ...],
    due: bool,
    carried_over: bool,
    estate_file: Path,
    state: Path,
    policy: Path | None,
    as_of: str | None,
    retention: str,
    reason: str,
    planner: str,
    waivers: Path | None,
    write_waivers: Path | None,
    budget: float | None,
    source_erased: bool,
    only: tuple[str, ...],
    out: Path | None,
    old: Path | None,
    fmt: str,
) -> int:
    """Make the erasure plan for REQUESTS (YAML files), or for the request store's: plan file, Markdown, HTML, sealed
    manifest."""
    from pii_tracer.app.intake.due_requests_plan import plan_due
    from pii_tracer.app.planning.erasure_plan import plan as make
    from pii_tracer.app.planning.plan_files import draft_waivers, manifest_path, refuse_existing
    from reports.requests_text import planned_lines

    if bool(requests) == (due or carried_over):
        raise UsageError("name request files or `--requests` (for the request store), but not both")
    refuse_existing(write_waivers)
    settings = Settings(estate_file, state)
    before = load_plan(old).plan if old else None
    with watching() as progress:
        options: dict[str, Any] = {
            "as_of": moment(as_of),
            "retention": retention,
            "reason": reason,
            "planner": planner,
            "policy": policy,
            "waivers": waivers,
            "budget": budget,
            "source_erased": source_erased,
            "only": only,
            "out": out,
            "show": progress,
        }
        found = None if requests else plan_due(settings, carried_over=carried_over, **options)
        made = found.written if found else make(settings, requests, **options)
    for line in planned_lines(found) if found else ():
        click.echo(line, err=True)
    if made is None:
        return int(ExitCode.DONE)
    sealed = manifest_path(made.path).name
    click.echo(f"wrote {made.path}, with .md and .html, and {sealed} (the persons' values, encrypted)", err=True)
    if write_waivers is not None:
        count = draft_waivers(made.plan, settings.policy(policy)[0].unwaivable, write_waivers)
        click.echo(f"wrote {write_waivers}: {counted(count, 'gap')} to be decided by a named person", err=True)
    print_plan(made.plan, made.path, fmt, settings.options(policy))
    for line in made.idle_waivers:
        click.echo(line, err=True)
    if before is not None:
        from pii_tracer.cli.diff_command import rendered

        on_stdout = fmt in ("text", "markdown")  # the others are one document, and this is another
        click.echo("\n" + rendered(before, made.plan, fmt if on_stdout else "text"), err=not on_stdout)
    return int(ExitCode.DONE if made.plan.complete else ExitCode.INCOMPLETE)


def print_plan(made: ErasurePlan, path: Path, fmt: str, options: Sequence[str] = ()) -> None:
    """A plan on stdout in one of the formats."""
    if fmt == "json":
        sys.stdout.write(made.to_bytes().decode())
    elif fmt == "markdown":
        from reports.plan.plan_markdown import render_plan_markdown

        click.echo(render_plan_markdown(made, plan_file=str(path), options=options))
    elif fmt == "html":
        from reports.plan.plan_html import render_plan_html

        click.echo(render_plan_html(made, plan_file=str(path), options=options))
    else:
        from rich.console import Console

        from reports.plan.plan_text import print_plan as show_text

        show_text(made, Console(highlight=False), plan_file=str(path), options=options)


@click.command()
@click.argument("plan_file", type=click.Path(path_type=Path))
@format_option("text", "json", "markdown", "html")
def show(plan_file: Path, fmt: str) -> int:
    """Show a plan: the verdict first, then what cannot be undone, then every copy."""
    loaded = load_plan(plan_file)
    print_plan(loaded.plan, plan_file, fmt)
    return int(ExitCode.DONE if loaded.plan.complete else ExitCode.INCOMPLETE)


@click.command()
@click.argument("plan_file", type=click.Path(path_type=Path))
@estate_option
@state_option
@click.option("--policy", type=click.Path(path_type=Path))
@click.option("--approver", required=True, help="who approves")
@click.option("--role", required=True, help="in which role, e.g. `data protection officer`")
@click.option("--reason", required=True, help="why this plan is right")
@click.option("--key", "key_file", type=click.Path(path_type=Path), help="Ed25519 private key (PEM)")
@click.option(
    "--ssh-key", type=click.Path(path_type=Path), help="or an SSH key, e.g. ~/.ssh/id_ed25519; its .pub: from the agent"
)
@click.option("--unsigned", is_flag=True, help="without a key; counts in an estate of environment `local` alone")
@click.option(
    "--hours", type=click.IntRange(min=1), default=24, show_default=True, help="for how long the approval is valid"
)
def approve(
    plan_file: Path,
    estate_file: Path,
    state: Path,
    policy: Path | None,
    approver: str,
    role: str,
    reason: str,
    key_file: Path | None,
    ssh_key: Path | None,
    unsigned: bool,
    hours: int,
) -> int:
    """Sign the exact bytes of a plan. Writes NAME.approval-APPROVER.json beside it (APPROVER-ROLE where that is taken);
    with an SSH key, also the signed bytes and their signature for `ssh-keygen -Y verify`."""
    from pii_tracer.app.review.plan_approval import approve as sign

    settings = Settings(estate_file, state)
    path = sign(
        settings,
        plan_file,
        approver=approver,
        role=role,
        reason=reason,
        key=key_file,
        ssh_key=ssh_key,
        unsigned=unsigned,
        hours=hours,
        policy=policy,
    )
    click.echo(str(path))
    again = shlex.join(["pii-tracer", "apply", str(plan_file), *settings.options(policy), "--trusted", "APPROVERS"])
    click.echo(f"next: `{again}`, where APPROVERS is the file with the public keys that count", err=True)
    return int(ExitCode.DONE)


@click.command()
@click.argument("plan_file", type=click.Path(path_type=Path))
@estate_option
@state_option
@format_option("text", "json")
def drift(plan_file: Path, estate_file: Path, state: Path, fmt: str) -> int:
    """Compare every precondition of a plan with the world: expected and found. Exit 6 where one stops a run."""
    from pii_tracer.app.review.plan_drift import drift_of, drift_verdict
    from reports.escape import visible

    items = drift_of(Settings(estate_file, state), plan_file)
    if fmt == "json":
        click.echo(json.dumps([vars(i) for i in items], indent=2, default=str))
    else:
        for item in items:
            click.echo(f"{'hard' if item.hard else 'soft'}: {visible(item.copy or item.target)}: {item.kind}")
            click.echo(f"    expected: {visible(item.expected)}\n    found:    {visible(item.found)}")
        click.echo(drift_verdict(items))
    return int(ExitCode.DRIFT if any(i.hard for i in items) else ExitCode.DONE)
