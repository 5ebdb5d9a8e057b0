"""`plan`, `show`, `check`, `approve`, `drift`: everything between a request and the run."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import click
import yaml
from pydantic import ValidationError

from pii_tracer.cli.settings import Settings, estate_option, format_option, moment, state_option
from pii_tracer.config import load_request
from pii_tracer.errors import ConfigError, ExitCode, UsageError
from pii_tracer.plan import ErasurePlan, Waiver
from pii_tracer.review.planfile import LoadedPlan, load_plan


@click.command()
@click.argument("requests", nargs=-1, required=True, type=click.Path(path_type=Path))
@estate_option
@state_option
@click.option("--policy", type=click.Path(path_type=Path), help="policy file  [default: policy.yaml beside the estate]")
@click.option("--as-of", help="the time to plan for, with a time zone  [default: now]")
@click.option("--retention", type=click.Choice(["retain", "immediate"]), default="retain", show_default=True)
@click.option("--reason", default="", help="why time travel ends at once (needed with `immediate`)")
@click.option("--planner", envvar="PII_TRACER_PLANNER", default="", help="who plans; cannot be the only approver")
@click.option("--waivers", type=click.Path(path_type=Path), help="YAML: gap id to {who, why, until}")
@click.option(
    "--out", type=click.Path(path_type=Path), help="plan file, ends in .plan.json  [default: in the state folder]"
)
@click.option("--diff", "old", type=click.Path(path_type=Path), help="say what changed against this older plan")
@format_option("text", "json", "markdown", "html")
def plan(
    requests: tuple[Path, ...],
    estate_file: Path,
    state: Path,
    policy: Path | None,
    as_of: str | None,
    retention: str,
    reason: str,
    planner: str,
    waivers: Path | None,
    out: Path | None,
    old: Path | None,
    fmt: str,
) -> int:
    """Make the erasure plan for REQUESTS (YAML files): plan file, Markdown, HTML, sealed manifest."""
    from pii_tracer.cli.planning import make_plan
    from planners.schedule import Retention
    from reports.progress import Progress

    settings = Settings(estate_file, state)
    loaded = [load_request(path) for path in requests]
    _, policy_file = settings.policy(policy)
    before = load_plan(old).plan if old else None
    with Progress() as progress:
        progress.stage("plan")
        planned = make_plan(
            settings,
            loaded,
            moment(as_of),
            Retention(retention),
            reason,
            planner,
            policy_file,
            read_waivers(waivers) if waivers else {},
            progress.step,
        )
    path = out or state / "plans" / f"{planned.plan.plan_id}.plan.json"
    if not path.name.endswith(".plan.json"):
        raise UsageError("a plan file's name ends in .plan.json", where=str(path), todo="name it so")
    options = settings.options(policy)
    write_plan(planned.plan, planned.sealed, path, options)
    print_plan(planned.plan, path, fmt, options)
    if before is not None:
        from planners.diff import describe

        click.echo("\n".join(describe(before, planned.plan)), err=fmt != "text")
    return int(ExitCode.DONE if planned.plan.complete else ExitCode.INCOMPLETE)


def read_waivers(path: Path) -> dict[str, Waiver]:
    """Waivers by gap id.

    Raises:
        ConfigError: missing, not YAML, or a waiver without who, why or until.
    """
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        return {str(gap): Waiver.model_validate(item) for gap, item in dict(data).items()}
    except (OSError, yaml.YAMLError, TypeError, ValueError, ValidationError) as error:
        raise ConfigError(
            f"the waivers file cannot be read: {type(error).__name__}",
            where=str(path),
            todo="write it as `gap-id: {who: …, why: …, until: 2026-12-31T00:00:00Z}`",
        ) from None


def write_plan(made: ErasurePlan, sealed: bytes, path: Path, options: Sequence[str]) -> None:
    """The plan file, with its sealed manifest, Markdown and HTML beside it; each whole or not at all."""
    from pii_tracer.files import write_atomic
    from reports.plan_html import render_plan_html
    from reports.plan_markdown import render_plan_markdown

    write_atomic(manifest_path(path), sealed, mode=0o600)
    write_atomic(sibling(path, ".md"), render_plan_markdown(made, plan_file=str(path), options=options).encode())
    write_atomic(sibling(path, ".html"), render_plan_html(made, plan_file=str(path), options=options).encode())
    write_atomic(path, made.to_bytes())


def sibling(path: Path, ending: str) -> Path:
    """A file beside the plan, with the plan's name and another ending."""
    return path.with_name(path.name.removesuffix(".plan.json") + ending)


def manifest_path(path: Path) -> Path:
    """The sealed manifest beside a plan."""
    return sibling(path, ".subjects.sealed")


def print_plan(made: ErasurePlan, path: Path, fmt: str, options: Sequence[str] = ()) -> None:
    """A plan on stdout in one of the formats."""
    if fmt == "json":
        sys.stdout.write(made.to_bytes().decode())
    elif fmt == "markdown":
        from reports.plan_markdown import render_plan_markdown

        click.echo(render_plan_markdown(made, plan_file=str(path), options=options))
    elif fmt == "html":
        from reports.plan_html import render_plan_html

        click.echo(render_plan_html(made, plan_file=str(path), options=options))
    else:
        from rich.console import Console

        from reports.plan_text import print_plan as show_text

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
@format_option("text", "json")
def check(plan_file: Path, estate_file: Path, state: Path, policy: Path | None, fmt: str) -> int:
    """Check a plan against the policy."""
    from pii_tracer.review.policy import Level, evaluate

    settings = Settings(estate_file, state)
    loaded = load_plan(plan_file)
    rules, policy_file = settings.policy(policy)
    production = settings.estate().environment == "production"
    findings = evaluate(loaded.plan, rules, production=production, now=moment(None))
    if fmt == "json":
        click.echo(json.dumps([vars(f) for f in findings], indent=2))
    else:
        for finding in findings:
            click.echo(f"{finding.level.value}: {finding.rule}: {finding.message}")
        click.echo(f"{len(findings)} finding(s) against {policy_file}")
    if not loaded.plan.complete:
        return int(ExitCode.INCOMPLETE)
    return int(ExitCode.POLICY_DENIED if any(f.level is Level.DENY for f in findings) else ExitCode.DONE)


@click.command()
@click.argument("plan_file", type=click.Path(path_type=Path))
@estate_option
@state_option
@click.option("--policy", type=click.Path(path_type=Path))
@click.option("--approver", required=True, help="who approves")
@click.option("--role", required=True, help="in which role, e.g. `data protection officer`")
@click.option("--reason", required=True, help="why this plan is right")
@click.option("--key", "key_file", required=True, type=click.Path(path_type=Path), help="Ed25519 private key (PEM)")
@click.option("--hours", default=24, show_default=True, help="for how long the approval is valid")
def approve(
    plan_file: Path,
    estate_file: Path,
    state: Path,
    policy: Path | None,
    approver: str,
    role: str,
    reason: str,
    key_file: Path,
    hours: int,
) -> int:
    """Sign the exact bytes of a plan. Writes NAME.approval-APPROVER.json beside it."""
    settings = Settings(estate_file, state)
    path = sign_plan(settings, load_plan(plan_file), plan_file, policy, approver, role, reason, key_file, hours)
    click.echo(str(path))
    return int(ExitCode.DONE)


def sign_plan(
    settings: Settings,
    loaded: LoadedPlan,
    plan_file: Path,
    policy: Path | None,
    approver: str,
    role: str,
    reason: str,
    key_file: Path,
    hours: int,
) -> Path:
    """Write an approval beside the plan and return its path. Raises `NotApproved` where the plan cannot be approved."""
    import secrets

    from pii_tracer.config import file_digest
    from pii_tracer.files import write_atomic
    from pii_tracer.review.approval import approve as sign
    from pii_tracer.review.keys import load_private
    from planners.drafts import slug

    rules, policy_file = settings.policy(policy)
    if hours > rules.max_approval_hours:
        raise UsageError(
            f"the policy lets an approval live {rules.max_approval_hours} hours at most", todo="choose fewer `--hours`"
        )
    now = moment(None)
    envelope = sign(
        loaded,
        load_private(key_file),
        approver=approver,
        role=role,
        reason=reason,
        expires=now + timedelta(hours=hours),
        policy_digest=file_digest(policy_file),
        now=now,
        nonce=secrets.token_hex(16),
    )
    path = sibling(plan_file, f".approval-{slug(approver)}.json")
    write_atomic(path, envelope)
    return path


@click.command()
@click.argument("plan_file", type=click.Path(path_type=Path))
@estate_option
@state_option
@format_option("text", "json")
def drift(plan_file: Path, estate_file: Path, state: Path, fmt: str) -> int:
    """Compare every precondition of a plan with the world: expected and found."""
    from pii_tracer.cli.planning import take_inventory
    from pii_tracer.review.drift import compare

    settings = Settings(estate_file, state)
    loaded = load_plan(plan_file)
    items = compare(loaded.plan, take_inventory(settings.estate(), settings.base, lambda _: None))
    if fmt == "json":
        click.echo(json.dumps([vars(i) for i in items], indent=2, default=str))
    else:
        for item in items:
            click.echo(f"{'hard' if item.hard else 'soft'}: {item.copy}: {item.kind}")
            click.echo(f"    expected: {item.expected}\n    found:    {item.found}")
        click.echo("no drift" if not items else f"{len(items)} difference(s); make a new plan")
    return int(ExitCode.DRIFT if any(i.hard for i in items) else ExitCode.DONE)
