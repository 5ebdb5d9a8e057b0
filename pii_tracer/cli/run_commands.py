"""`apply`, `status`, `resume`: the run and how far it is."""

from __future__ import annotations

import contextlib
import json
import shlex
from pathlib import Path
from typing import Any

import click

from pii_tracer.app.execution.run_folder import RunFolder, all_runs, choose_run
from pii_tracer.app.settings import Settings
from pii_tracer.cli.options import estate_option, format_option, state_option, trusted_option
from pii_tracer.common.atomic_files import real_path
from pii_tracer.model.errors import ExitCode, JournalError, UsageError


@click.command()
@click.argument("plan_file", type=click.Path(path_type=Path))
@estate_option
@state_option
@click.option("--policy", type=click.Path(path_type=Path), help="policy file  [default: policy.yaml beside the estate]")
@click.option(
    "--approval", "approvals", multiple=True, type=click.Path(path_type=Path), help="default: those beside the plan"
)
@trusted_option
@click.option("--wait", "patience", default=0.0, help="seconds to wait for steps that wait, before stopping")
@click.option("--result", type=click.Path(path_type=Path), help="a further place for the final JSON object")
@format_option("text", "json")
def apply(
    plan_file: Path,
    estate_file: Path,
    state: Path,
    policy: Path | None,
    approvals: tuple[Path, ...],
    trusted: Path | None,
    patience: float,
    result: Path | None,
    fmt: str,
) -> int:
    """Run an approved plan: exactly its bytes, once. Ends with one object that says what is proved."""
    from pii_tracer.app.execution.plan_run import start_run

    settings = Settings(estate_file, state)
    folder = start_run(
        settings, plan_file, policy, approvals, trusted, result=str(real_path(result)) if result else None
    )
    return _go(folder, patience, fmt)


@click.command()
@click.argument("run", required=False)
@state_option
@trusted_option
@click.option("--wait", "patience", default=0.0, help="seconds to wait for steps that wait, before stopping")
@click.option("--take-over", is_flag=True, help="the runner on another host is gone for good: take its lease")
@click.option("--moved", is_flag=True, help="the state folder was moved, and is the only one of the run that is left")
@format_option("text", "json")
def resume(
    run: str | None, state: Path, trusted: Path | None, patience: float, take_over: bool, moved: bool, fmt: str
) -> int:
    """Go on with an interrupted or waiting RUN (a plan id); without one, with the newest that is not complete."""
    from pii_tracer.app.execution.plan_run import trust
    from pii_tracer.cli.demo_command import demo_interrupted, demo_resumed

    if run is None and trusted is None and demo_interrupted(state):
        return demo_resumed(state)
    folder = choose_run(state, run, unfinished=run is None)
    if moved:
        folder.adopt()
    if trusted is not None:
        trust(folder, trusted)
    if folder.info().demo:
        patience = max(patience, 120.0)
    return _go(folder, patience, fmt, take_over)


def _go(folder: RunFolder, patience: float, fmt: str, take_over: bool = False) -> int:
    from pii_tracer.app.execution.plan_run import perform
    from pii_tracer.app.execution.run_results import conclude, exit_code, show_result
    from reports.progress import Progress

    if folder.info().demo:
        from pii_tracer.cli.demo_command import use_demo_credentials

        use_demo_credentials()
    with Progress() as progress:
        ran = perform(folder, progress, patience, take_over=take_over)
        progress.stage("deletion log, attestation, report")
        result = conclude(ran)
    show_result(folder, result, fmt)
    return int(exit_code(result))


@click.command()
@click.argument("run", required=False)
@state_option
@format_option("text", "json")
def status(run: str | None, state: Path, fmt: str) -> int:
    """How far a RUN has come, from its journal alone; without one, all runs."""
    folders = (choose_run(state, run, unfinished=False),) if run else all_runs(state)
    told = [_how_far(folder) for folder in folders]
    if fmt == "json":
        click.echo(json.dumps(told, indent=2))
        return int(ExitCode.DONE)
    for item in told:
        of = "an unknown number of" if item["steps"] is None else item["steps"]
        click.echo(f"{item['plan_id']}: {item['state']}, {item['done']} of {of} steps, last {item['last']}")
        if item["closed"]:
            click.echo(f"    closed {item['closed']}")
        if item["run_by"]:
            click.echo(f"    run by {item['run_by']}")
        if item["problem"]:
            click.echo(f"    cannot go on: {item['problem']}")
        elif item["killed"]:
            again = shlex.join(["pii-tracer", "resume", item["plan_id"], "--state", str(state)])
            click.echo(f"    was killed or stopped in the middle; go on with `{again}`")
        for step in item["failed"]:
            click.echo(f"    failed: {step}")
        for step, until in item["waiting"].items():
            click.echo(f"    waits until {until}: {step}")
    if not told:
        click.echo("no runs")
    return int(ExitCode.DONE)


def _how_far(folder: RunFolder) -> dict[str, Any]:
    """As `status --format json` tells it. problem: why it cannot be gone on with in this folder; what its journal still
    tells is told all the same. killed: its runner came to no end, and nobody runs it."""
    from pii_tracer.app.execution.run_lock import held_by
    from pii_tracer.run.journal import (
        Kind,
        Record,
        parse,
        read_journal,
    )
    from pii_tracer.run.lease import who_runs
    from pii_tracer.run.step_progress import track

    info = folder.recorded()
    problem = folder.displaced(info)
    # before the journal: what ends meanwhile was not killed
    run_by = who_runs(folder.path) if problem else held_by(folder.settings(), folder)
    records: tuple[Record, ...] = ()
    torn = 0
    try:
        records, torn = read_journal(folder.journal)
    except JournalError as error:
        problem = problem or error.what
        with contextlib.suppress(JournalError, OSError):
            records, torn = parse(folder.journal.read_bytes())
    try:
        steps: int | None = len(folder.approved().plan.steps)
    except UsageError:
        steps = None  # the plan was made again into the same file, or is gone: its number is not this run's
    tracks = track(records)
    lasts = {step: found.last for step, found in tracks.items() if found.last}
    return {
        "plan_id": info.plan_id,
        "steps": steps,
        "done": sum(t.verified for t in tracks.values()),
        "failed": sorted(step for step, last in lasts.items() if last.kind is Kind.STEP_FAILED),
        "waiting": {s: str(last.facts["until"]) for s, last in lasts.items() if last.kind is Kind.STEP_WAITING},
        "last": records[-1].time.isoformat() if records else None,
        "torn_bytes": torn,
        "run_by": run_by,
        "killed": bool(records) and records[-1].kind is not Kind.RUN_FINISHED and run_by is None,
        "problem": problem,
        "state": (folder.last_result() or {}).get("state", "not finished"),
        "closed": folder.closed_at(),
    }
