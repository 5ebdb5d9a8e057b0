"""A run from its begin to its proof: begun or gone on with, and concluded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pii_tracer.app.execution.run_folder import RunFolder, choose_run, folder_of, over
from pii_tracer.app.progress import SILENT, Shows
from pii_tracer.app.settings import Settings
from pii_tracer.common.atomic_files import real_path
from pii_tracer.model.errors import ExitCode, JournalError, PiiTracerError, UsageError

if TYPE_CHECKING:
    from pii_tracer.app.watching.run_metrics_file import RunMetricsFile


class RunStopped(KeyboardInterrupt):
    """Somebody stopped a run that had begun. folder: its own."""

    def __init__(self, folder: RunFolder) -> None:
        super().__init__()
        self.folder = folder


@dataclass(frozen=True)
class RunOutcome:
    """What a run came to. result: the final object, a stable interface (docs/commands.md). adopted: nothing was run,
    and a moved folder is the run's from here on."""

    folder: RunFolder
    result: Mapping[str, Any]
    exit_code: ExitCode
    adopted: bool = False


def apply(
    settings: Settings,
    plan_file: Path,
    *,
    policy: Path | None = None,
    approvals: Sequence[Path] = (),
    trusted: Path | None = None,
    patience: float = 0.0,
    result: Path | None = None,
    metrics: Path | None = None,
    show: Shows = SILENT,
) -> RunOutcome:
    """Run an approved plan: exactly its bytes, once. Needs Spark.

    approvals: those beside the plan, if none is named. trusted: whose signatures count. patience: seconds to wait for
    steps that wait. result: a further place for the final object. metrics: a file for the run's Prometheus metrics.

    Raises:
        UsageError: the metrics file is one of something else.
        PlanIncomplete, PolicyDenied, NotApproved, Drift, Refused: nothing was started.
        JournalError: the run has begun before, and its journal is missing or broken.
        ProofError, ReviewError: nobody could sign the attestation; nothing was started.
        PlanError: the sealed manifest does not open.
        ScanError: the baseline could not be taken; nothing was started.
    """
    from pii_tracer.app.execution.plan_run import start_run

    with measured(metrics, plan_file, settings, show) as numbers:
        folder = start_run(
            settings, plan_file, policy, approvals, trusted, result=str(real_path(result)) if result else None
        )
        return _go(folder, patience, show, numbers)


def resume(
    state: Path,
    run: str | None = None,
    *,
    trusted: Path | None = None,
    patience: float = 0.0,
    take_over: bool = False,
    moved: bool = False,
    metrics: Path | None = None,
    show: Shows = SILENT,
) -> RunOutcome:
    """Go on with an interrupted or waiting run (a plan id); without one, with the newest that is not complete.

    take_over: the runner on another host is gone for good. moved: the state folder was moved, and is the only one of
    the run that is left; nothing is run of one that is over or closed, unless trusted is given. metrics: a file for the
    run's Prometheus metrics. Needs Spark.

    Raises:
        UsageError: there is no such run, or the metrics file is one of something else.
        PlanIncomplete, PolicyDenied, NotApproved, Drift, Refused: nothing was done.
        JournalError: the journal is broken, or knows less than the run's other files.
    """
    from pii_tracer.app.execution.plan_run import trust

    folder = choose_run(state, run, unfinished=run is None)
    if moved:
        folder.adopt()
        result = folder.result_known()[0]
        if trusted is None and (folder.closed_at() or over(result)):
            return RunOutcome(folder, result, ExitCode.DONE, adopted=True)
    with measured(metrics, Path(folder.info().plan_file), folder.settings(), show) as numbers:
        if trusted is not None:
            trust(folder, trusted)
        if folder.info().demo:
            patience = max(patience, 120.0)
        return _go(folder, patience, show, numbers, take_over)


@contextmanager
def measured(metrics: Path | None, plan_file: Path, settings: Settings, show: Shows) -> Iterator[RunMetricsFile | None]:
    """The metrics file of a run, where one is asked for; an error that ends the run is its exit code.

    Raises:
        ReviewError: the plan file cannot be read.
        UsageError: the metrics file is one of something else.
    """
    if metrics is None:
        yield None
        return
    from pii_tracer.app.execution.run_lock import held_by
    from pii_tracer.app.execution.run_verification import now
    from pii_tracer.app.watching.run_metrics_file import RunMetricsFile
    from pii_tracer.review.plan_file import load_plan
    from pii_tracer.run.journal import read_journal

    plan = load_plan(plan_file).plan
    folder = folder_of(settings.state, plan.plan_id)
    if real_path(metrics).is_relative_to(real_path(folder.state)):
        raise UsageError(
            "the metrics file must not be in the state folder, because it could overwrite a file of a run",
            where=str(metrics),
            todo="name a file outside the state folder",
        )
    numbers = RunMetricsFile(metrics, plan, now, show.warn, lambda: held_by(settings, folder) is not None)
    with suppress(JournalError):  # the run itself says what is wrong with it
        numbers.begin(read_journal(folder.journal)[0])
    try:
        yield numbers
    except BaseException as error:  # interrupted, too
        stopped = ExitCode.PARTIAL if isinstance(error, RunStopped) else ExitCode.ERROR
        numbers.end(error.exit_code if isinstance(error, PiiTracerError) else stopped)
        raise


def _go(
    folder: RunFolder, patience: float, show: Shows, numbers: RunMetricsFile | None, take_over: bool = False
) -> RunOutcome:
    from pii_tracer.app.execution.plan_run import perform
    from pii_tracer.app.execution.run_outputs import conclude, exit_code

    if folder.info().demo:
        from pii_tracer.app.demo import use_demo_credentials

        use_demo_credentials()
    follow = numbers.follow if numbers else lambda records: None
    try:
        ran = perform(folder, show, patience, take_over=take_over, follow=follow)
        show.stage("deletion log, attestation, report")
        result = conclude(ran, show)
    except KeyboardInterrupt:
        raise RunStopped(folder) from None
    if numbers:
        numbers.end(exit_code(result), len(result["residue"]))
    return RunOutcome(folder, result, exit_code(result))
