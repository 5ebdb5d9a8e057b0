"""`plan`, `show`, `approve`, `drift`: everything between a request and the run."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click
from pydantic import ValidationError

from pii_tracer.app.settings import Settings, moment
from pii_tracer.cli.options import estate_option, format_option, state_option
from pii_tracer.config.estate_file import load_request
from pii_tracer.config.strict_yaml import load_yaml
from pii_tracer.model.errors import (
    ConfigError,
    ExitCode,
    NotApproved,
    UsageError,
)
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import ErasurePlan, Waiver
from pii_tracer.review.drift import DriftItem
from pii_tracer.review.dsse import PrivateKey
from pii_tracer.review.plan_file import LoadedPlan, load_plan

if TYPE_CHECKING:
    from pii_tracer.scan.value_forms import Patterns


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
    estate_file: Path,
    state: Path,
    policy: Path | None,
    as_of: str | None,
    retention: str,
    reason: str,
    planner: str,
    waivers: Path | None,
    budget: float | None,
    source_erased: bool,
    only: tuple[str, ...],
    out: Path | None,
    old: Path | None,
    fmt: str,
) -> int:
    """Make the erasure plan for REQUESTS (YAML files): plan file, Markdown, HTML, sealed manifest."""
    from pii_tracer.app.planning.plan_creation import make_plan
    from planners.schedule.step_dates import Retention
    from reports.progress import Progress

    if out is not None:
        refuse_foreign_files(out)
    if budget is not None and (not math.isfinite(budget) or retention == "immediate"):
        raise UsageError(
            "a budget is a number, and spreads the work of the retention `retain` alone",
            where="--budget",
            todo="give one, or leave out `--budget`",
        )
    settings = Settings(estate_file, state)
    loaded = [load_request(path) for path in requests]
    _, policy_file = settings.policy(policy)
    before = load_plan(old).plan if old else None
    waived = read_waivers(waivers) if waivers else {}
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
            waived,
            progress.step,
            only,
            budget,
            source_erased=source_erased,
            out=out,
        )
    path = out or state / "plans" / f"{planned.plan.plan_id}.plan.json"
    options = settings.options(policy)
    write_plan(planned.plan, planned.sealed, path, options)
    print_plan(planned.plan, path, fmt, options)
    for line in without_effect(waived, planned.plan):
        click.echo(line, err=True)
    if before is not None:
        from pii_tracer.cli.diff_command import rendered

        on_stdout = fmt in ("text", "markdown")  # the others are one document, and this is another
        click.echo("\n" + rendered(before, planned.plan, fmt if on_stdout else "text"), err=not on_stdout)
    return int(ExitCode.DONE if planned.plan.complete else ExitCode.INCOMPLETE)


def read_waivers(path: Path) -> dict[str, Waiver]:
    """Waivers by gap id.

    Raises:
        ConfigError: missing, not YAML, or a waiver without who, why or until.
    """
    try:
        data = load_yaml(path, "waivers")
        return {str(gap): Waiver.model_validate(item) for gap, item in dict(data).items()}
    except (TypeError, ValueError, ValidationError) as error:
        raise ConfigError(
            f"the waivers file cannot be read: {type(error).__name__}",
            where=str(path),
            todo="write it as `gap-id: {who: …, why: …, until: 2026-12-31T00:00:00Z}`",
        ) from None


def without_effect(waivers: Mapping[str, Waiver], made: ErasurePlan) -> list[str]:
    """What the waivers file holds in vain, for whoever wrote it: a line each. Ids as the file has them, quoted."""
    gaps = {gap.id: gap for gap in made.gaps}
    idle = {name: waiver for name, waiver in sorted(waivers.items()) if name not in gaps or gaps[name].waiver is None}
    return [
        f"waiver without effect: {name!r} is the id of no gap of this plan"
        if name not in gaps
        else f"waiver without effect: that of {name!r} has run out on {waiver.until:%Y-%m-%d}"
        for name, waiver in idle.items()
    ]


def write_plan(made: ErasurePlan, sealed: bytes, path: Path, options: Sequence[str]) -> None:
    """The plan file, with its sealed manifest, Markdown and HTML beside it; each whole or not at all."""
    from pii_tracer.common.atomic_files import write_atomic
    from reports.plan.plan_html import render_plan_html
    from reports.plan.plan_markdown import render_plan_markdown

    write_atomic(manifest_path(path), sealed, mode=0o600)
    write_atomic(sibling(path, ".md"), render_plan_markdown(made, plan_file=str(path), options=options).encode())
    write_atomic(sibling(path, ".html"), render_plan_html(made, plan_file=str(path), options=options).encode())
    write_atomic(path, made.to_bytes())


_OWN = {".plan.json": b'"plan_id"', ".md": b" for estate ", ".html": b'class="eyebrow">Erasure plan'}
"""What stands in every file that `write_plan` made, by its ending."""


def refuse_foreign_files(path: Path) -> None:
    """Raise `UsageError` where the name is none of a plan, or a file that no plan wrote would be overwritten."""
    if not path.name.endswith(".plan.json"):
        raise UsageError("a plan file's name ends in .plan.json", where=str(path), todo="name it so")
    for ending, mark in _OWN.items():
        place = sibling(path, ending)
        if place.exists() and not (place.is_file() and mark in place.read_bytes()):
            raise UsageError(
                f"`--out` would overwrite {place.name}, which is no plan", where=str(place), todo="choose another name"
            )


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
    from pii_tracer.app.execution.approvals import refuse_unsigned, signing_key

    settings = Settings(estate_file, state)
    if unsigned:
        refuse_unsigned(settings.estate(), key_file or ssh_key)
    key = None if unsigned else signing_key(key_file, ssh_key)
    path = sign_plan(settings, load_plan(plan_file), plan_file, policy, approver, role, reason, key, hours)
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
    key: PrivateKey | None,
    hours: int,
) -> Path:
    """Write an approval beside the plan and return its path. Without a key it is unsigned.

    Raises:
        NotApproved: `apply` would refuse the plan whoever signed it.
            Or the approval's file is something else.
        ReviewError: a value of the persons stands in what is signed.
        UsageError: it would live longer than the policy allows.
    """
    import secrets

    from pii_tracer.app.execution.approvals import approval_path, detached
    from pii_tracer.common.atomic_files import write_atomic
    from pii_tracer.config.estate_file import file_digest
    from pii_tracer.review.approval import approve as sign

    rules, policy_file = settings.policy(policy)
    if hours > rules.max_approval_hours:
        raise UsageError(
            f"the policy lets an approval live {rules.max_approval_hours} hours at most", todo="choose fewer `--hours`"
        )
    _refuse_unapplyable(loaded.plan)
    _refuse_telling(settings, loaded.plan, plan_file, (approver, role, reason))
    now = moment(None)
    envelope = sign(
        loaded,
        key,
        approver=approver,
        role=role,
        reason=reason,
        expires=now + timedelta(hours=hours),
        policy=rules,
        policy_digest=file_digest(policy_file),
        production=key is None and settings.estate().environment == "production",
        now=now,
        nonce=secrets.token_hex(16),
    )
    path = approval_path(plan_file, approver, role)
    for ending in (".signed", ".signed.sig"):  # those of an earlier approval
        path.with_suffix(ending).unlink(missing_ok=True)
    for ending, data in detached(envelope).items():
        write_atomic(path.with_suffix(ending), data)
    write_atomic(path, envelope)
    return path


def _refuse_telling(settings: Settings, made: ErasurePlan, plan_file: Path, texts: tuple[str, str, str]) -> None:
    """Refuse a person's value where the approver can know it."""
    from pii_tracer.app.planning.value_masking import refuse_telling_approval

    patterns = patterns_at_hand(settings, made, plan_file)
    if patterns is not None:
        refuse_telling_approval(*texts, patterns)


def patterns_at_hand(settings: Settings, made: ErasurePlan, plan_file: Path) -> Patterns | None:
    """All forms of the persons' values; None without the estate key and the manifest. Who signs need not have them:
    the run has, and refuses what tells a value."""
    from pii_tracer.review.sealed_manifest import KeyRing
    from pii_tracer.scan.value_forms import build_patterns

    if not (manifest_path(plan_file).exists() and settings.key_file().exists()):
        return None
    ring = KeyRing.open(manifest_path(plan_file), made.subjects_digest, settings.key())
    return build_patterns(ring.key_sets)


def _refuse_unapplyable(made: ErasurePlan) -> None:
    if made.applyable:
        return
    number = sum(gap.waiver is None and gap.kind != GapKind.LEFT_OUT for gap in made.gaps)
    raise NotApproved(
        f"{number} gap(s) are open" if number else "a copy is blocked, or nothing is to be erased",
        where=made.plan_id,
        todo="see `pii-tracer check`; close the gaps or waive them, plan again, and approve that plan",
    )


@click.command()
@click.argument("plan_file", type=click.Path(path_type=Path))
@estate_option
@state_option
@format_option("text", "json")
def drift(plan_file: Path, estate_file: Path, state: Path, fmt: str) -> int:
    """Compare every precondition of a plan with the world: expected and found. Exit 6 where one stops a run."""
    from pii_tracer.app.planning.plan_creation import take_inventory
    from pii_tracer.config.estate_file import file_digest
    from pii_tracer.review.drift import compare
    from reports.escape import visible

    settings, plan = Settings(estate_file, state), load_plan(plan_file).plan
    estate = settings.estate()
    stopped = {writer.job: writer.stopped for writer in estate.writers}
    items = compare(plan, take_inventory(estate, settings.base, lambda _: None), stopped)
    if (found := file_digest(estate_file)) != plan.estate_digest:
        items.insert(0, DriftItem(None, "estate_file", str(estate_file), plan.estate_digest, found, hard=True))
    if fmt == "json":
        click.echo(json.dumps([vars(i) for i in items], indent=2, default=str))
    else:
        for item in items:
            click.echo(f"{'hard' if item.hard else 'soft'}: {visible(item.copy or item.target)}: {item.kind}")
            click.echo(f"    expected: {visible(item.expected)}\n    found:    {visible(item.found)}")
        click.echo(drift_verdict(items))
    return int(ExitCode.DRIFT if any(i.hard for i in items) else ExitCode.DONE)


def drift_verdict(items: Sequence[DriftItem]) -> str:
    """What differences mean for a run, in one line."""
    stops = sum(item.hard for item in items)
    if not items:
        return "no drift"
    if not stops:
        return f"{len(items)} difference(s), none of which stops a run: the plan can be applied as it is"
    return f"{len(items)} difference(s), {stops} of which stop a run: make a new plan"
