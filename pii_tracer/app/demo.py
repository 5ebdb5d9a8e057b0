"""`pii-tracer demo`: a person is erased from a realistic lakehouse, step by step, with proof.

Everything is real but the bucket server, which is a strict stand-in on loopback. An interrupted demo is finished by
`pii-tracer resume`.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.app.settings import Settings, moment
from pii_tracer.model.errors import ExitCode, PiiTracerError, RunError

if TYPE_CHECKING:
    from reports.watch.watch import Watch

Say = Callable[[str], None]

REASON = "demo: the writers are stopped and nobody reads old versions; time travel ends at once"
APPROVER = "Meera Iyer"
STAGES = 7
"""How many parts the demo has that are shown."""
_MARK = "begun"


def run_demo(state: Path, tell: Say, note: Say, progress: Watch) -> ExitCode:
    """The whole demo; returns its exit code. tell: for its answer; note: for what is told beside it."""
    begun = time.monotonic()
    folder = state / "demo"
    now = moment(None)
    settings = _build(folder, state, now, progress)
    naive = _naive(settings, folder, progress, tell)
    plan_file = _plan(settings, folder, now, progress)
    _approve(settings, plan_file, folder, progress)
    code = _apply(settings, plan_file, folder, naive, progress)
    note(f"took {time.monotonic() - begun:.0f} s")
    return code


def use_demo_credentials() -> None:
    """Credentials that open nothing but the stand-in, for this process only."""
    from sample_lineage.s3_standin import demo_credentials

    os.environ.update(demo_credentials())


def _build(folder: Path, state: Path, now: datetime, progress: Watch) -> Settings:
    """The lakehouse in a throwaway folder, and the stand-in for S3."""
    from executors.engine.spark_session import open_session
    from pii_tracer.lake.stores.s3.archive_versions import s3_clients
    from sample_lineage.build import CONTENTS, build, sample_estate
    from sample_lineage.s3_standin import running, start, stop

    progress.stage(f"build a lakehouse: {CONTENTS}")
    use_demo_credentials()
    old = running(folder)
    if old is not None:
        stop(old)
    _remove_old(folder, state)
    progress.step("S3 stand-in", "versions, archive classes, replication; on loopback")
    standin = start(folder)
    described = sample_estate(standin.endpoint_url, with_s3=True)
    base = (folder / "estate").resolve()
    progress.step("Spark", "all three table formats in one session")
    spark = open_session(described, base)
    build(base, spark, s3_clients(described)(None), now, lambda text: progress.step("lakehouse", text))
    progress.done("built")
    return Settings(base / "pii-tracer.yaml", state)


def _remove_old(folder: Path, state: Path) -> None:
    """What an earlier demo left: its estate, and the runs that were made from it."""
    from pii_tracer.app.execution.run_folder import all_runs

    for run in all_runs(state):
        try:
            if run.recorded().demo:
                shutil.rmtree(run.path)
                run.found_file("").newest_file.unlink(missing_ok=True)
        except PiiTracerError:
            continue
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / _MARK).touch()


def _naive(settings: Settings, folder: Path, progress: Watch, tell: Say) -> Path:
    """What a plain DELETE leaves, on scratch copies of the source."""
    from pii_tracer.config.estate_file import load_request
    from sample_lineage.naive_delete import naive_lines, show_naive

    progress.stage("the problem: a plain DELETE, on scratch copies")
    request = load_request(_request(settings))
    subject = next(s for s in settings.estate().subjects if s.name == request.subject.type)
    panel = show_naive(settings, request, subject, folder / "naive.json", progress.step)
    progress.done()
    tell("\n" + "\n".join(naive_lines(panel)) + "\n")
    return folder / "naive.json"


def _request(settings: Settings) -> Path:
    return settings.base / "requests" / "REQ-2026-0117.yaml"


def _plan(settings: Settings, folder: Path, now: datetime, progress: Watch) -> Path:
    from rich.console import Console

    from pii_tracer.app.lineage.lineage_harvest import summary_text
    from pii_tracer.app.planning.plan_creation import make_plan
    from pii_tracer.app.planning.plan_files import write_plan
    from pii_tracer.config.estate_file import load_request
    from planners.schedule.step_dates import Retention
    from reports.plan.plan_text import print_plan

    progress.stage("harvest lineage, discover every copy, plan the erasure")
    _, policy_file = settings.policy()
    planned = make_plan(
        settings,
        [load_request(_request(settings))],
        now,
        Retention.IMMEDIATE,
        REASON,
        "demo",
        policy_file,
        {},
        progress.step,
    )
    progress.done(summary_text(planned.summary))
    path = folder / "erasure.plan.json"
    write_plan(planned.plan, planned.sealed, path, settings.options())
    print_plan(planned.plan, Console(highlight=False), plan_file=str(path), options=settings.options())
    if not planned.plan.applyable:
        raise RunError(
            "the plan of the demo cannot be applied", where=str(path), todo="run `pii-tracer show` to see the reason"
        )
    return path


def _approve(settings: Settings, plan_file: Path, folder: Path, progress: Watch) -> None:
    from pii_tracer.app.review.plan_approval import sign_plan
    from pii_tracer.common.atomic_files import write_atomic
    from pii_tracer.review.plan_file import load_plan
    from pii_tracer.review.trusted_keys import (
        generate,
        load_private,
        public_pem,
        trusted_yaml,
    )

    progress.stage("approve the plan's exact bytes")
    key = folder / "approver.pem"
    public = generate(key)
    role = "data protection officer (invented, with a demo key)"
    write_atomic(folder / "approvers.yaml", trusted_yaml([(APPROVER, role, public_pem(public).decode())]))
    path = sign_plan(settings, load_plan(plan_file), plan_file, None, APPROVER, role, "demo", load_private(key), 1)
    progress.done(str(path))


def _apply(settings: Settings, plan_file: Path, folder: Path, naive: Path, progress: Watch) -> ExitCode:
    from pii_tracer.app.execution.plan_run import perform, start_run
    from pii_tracer.app.execution.run_outputs import conclude, exit_code
    from reports.run.run_result import show_result
    from sample_lineage.s3_standin import running, stop

    run = start_run(
        settings,
        plan_file,
        None,
        (),
        folder / "approvers.yaml",
        result=str((folder / "result.json").resolve()),
        naive=str(naive.resolve()),
        demo=True,
    )
    ran = perform(run, progress, patience=120.0)
    progress.stage("deletion log, attestation, report")
    result = conclude(ran)
    progress.done()
    show_result(run.path, result, "text")
    standin = running(folder)
    if standin is not None and exit_code(result) is ExitCode.DONE:
        stop(standin)
    return exit_code(result)


def demo_interrupted(state: Path) -> bool:
    """True when a demo was begun and came to no run: nothing was erased, so it can only begin again."""
    from pii_tracer.app.execution.run_folder import all_runs

    begun = (state / "demo" / _MARK).exists()
    return begun and not any(run.recorded().demo for run in all_runs(state))
