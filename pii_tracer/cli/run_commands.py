"""`apply`, `status`, `resume`: the run and how far it is."""

from __future__ import annotations

import json
import logging
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import TYPE_CHECKING

import click

from pii_tracer.app.settings import Settings
from pii_tracer.cli.options import estate_option, format_option, metrics_option, state_option, trusted_option, watching
from pii_tracer.common.plurals import counted
from pii_tracer.model.errors import ExitCode, Interrupted

if TYPE_CHECKING:
    from pii_tracer.app.execution.whole_run import RunOutcome


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
@metrics_option
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
    metrics: Path | None,
    fmt: str,
) -> int:
    """Run an approved plan: exactly its bytes, once. Ends with one object that says what is proved."""
    from pii_tracer.app.execution.whole_run import apply as run_plan

    settings = Settings(estate_file, state)
    with _resumable(state), watching() as progress:
        ran = run_plan(
            settings,
            plan_file,
            policy=policy,
            approvals=approvals,
            trusted=trusted,
            patience=patience,
            result=result,
            metrics=metrics,
            show=progress,
        )
    return _told(ran, fmt)


@click.command()
@click.argument("run", required=False)
@state_option
@trusted_option
@click.option("--wait", "patience", default=0.0, help="seconds to wait for steps that wait, before stopping")
@click.option("--take-over", is_flag=True, help="the runner on another host is gone for good: take its lease")
@click.option("--moved", is_flag=True, help="the state folder was moved, and is the only one of the run that is left")
@metrics_option
@format_option("text", "json")
def resume(
    run: str | None,
    state: Path,
    trusted: Path | None,
    patience: float,
    take_over: bool,
    moved: bool,
    metrics: Path | None,
    fmt: str,
) -> int:
    """Go on with an interrupted or waiting RUN (a plan id); without one, with the newest that is not complete."""
    from pii_tracer.app.demo import STAGES, demo_interrupted
    from pii_tracer.app.execution.whole_run import resume as go_on

    if run is None and trusted is None and demo_interrupted(state):
        from pii_tracer.app.demo import run_demo

        click.echo("the demo was interrupted before anything was erased; it begins again", err=True)
        with watching(STAGES) as progress:
            return int(run_demo(state, click.echo, partial(click.echo, err=True), progress))
    with _resumable(state), watching() as progress:
        ran = go_on(
            state,
            run,
            trusted=trusted,
            patience=patience,
            take_over=take_over,
            moved=moved,
            metrics=metrics,
            show=progress,
        )
    if ran.adopted:
        told = f"{ran.folder.path.name} has nothing more to do, and nothing was run: its folder is {ran.folder.path}"
        here = {"plan_id": ran.folder.path.name, "adopted": str(ran.folder.path)}
        click.echo(json.dumps(here, sort_keys=True) if fmt == "json" else told)
        return int(ran.exit_code)
    return _told(ran, fmt)


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Inside, SIGTERM does what SIGINT (Ctrl-C) does: both raise `KeyboardInterrupt`."""

    def stop(number: int, frame: FrameType | None) -> None:
        logging.disable()  # PySpark prints traces of calls that were cut off, also by the root logger
        raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM) if current_thread() is main_thread() else ()
    silent = logging.root.manager.disable
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        logging.disable(silent)
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _resumable(state: Path) -> Iterator[None]:
    """Around a run: whoever stops it is told how it goes on, when its engine has ended.

    Raises:
        Interrupted: the run had begun.
    """
    from executors.engine.spark_session import end_engine
    from pii_tracer.app.execution.whole_run import RunStopped

    with _stopped_by_signals():
        try:
            yield
        except KeyboardInterrupt as stop:
            end_engine()
            if not isinstance(stop, RunStopped):
                raise
            plan = stop.folder.path.name
            raise Interrupted(
                "the run was stopped; what it did is in its journal, and no step is half recorded",
                where=plan,
                todo=f"run `{_again(plan, state)}`",
            ) from None


def _again(plan: str, state: Path) -> str:
    return shlex.join(["pii-tracer", "resume", plan, "--state", str(state)])


def _told(ran: RunOutcome, fmt: str) -> int:
    from reports.run.run_result import show_result

    show_result(ran.folder.path, ran.result, fmt)
    return int(ran.exit_code)


@click.command()
@click.argument("run", required=False)
@state_option
@format_option("text", "json")
def status(run: str | None, state: Path, fmt: str) -> int:
    """How far a RUN has come, from its journal alone; without one, all runs."""
    from pii_tracer.app.execution.run_status import status as look
    from reports.wording import minute

    told = look(state, run)
    if fmt == "json":
        click.echo(json.dumps([vars(item) for item in told], indent=2))
        return int(ExitCode.DONE)
    for item in told:
        of = "an unknown number of steps" if item.steps is None else counted(item.steps, "step")
        last = minute(datetime.fromisoformat(item.last)) if item.last else "none"
        click.echo(f"{item.plan_id}: {item.state}, {item.done} of {of}, last {last}")
        if item.closed:
            click.echo(f"    closed {item.closed}")
        if item.run_by:
            click.echo(f"    run by {item.run_by}")
        if item.problem:
            click.echo(f"    cannot go on: {item.problem}")
        elif item.killed:
            click.echo(f"    was killed or stopped in the middle; go on with `{_again(item.plan_id, state)}`")
        for step in item.failed:
            click.echo(f"    failed: {step}")
        for step, until in item.waiting.items():
            click.echo(f"    waits until {until}: {step}")
    if not told:
        click.echo("no runs")
    return int(ExitCode.DONE)
