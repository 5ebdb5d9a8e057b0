"""What all operators have in common: the estate, errors, progress, and the end when Airflow kills the task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, Context

from pii_tracer_airflow.failures import translated
from pii_tracer_airflow.progress import TaskProgress
from pii_tracer_airflow.stopping import Stopped, stop_spark

if TYPE_CHECKING:
    from pii_tracer.app import Settings


class TracerOperator(BaseOperator):
    """An operator on one estate. A subclass says in `work` what it does and returns.

    estate_file, state: as of the options `--estate` and `--state`; absolute paths, which every worker must see.
    What is returned goes into XCom: ids, paths, dates, counts and verdicts, never a value of a person.
    """

    template_fields: Sequence[str] = ("estate_file", "state")
    ui_color = "#e3ecfa"

    def __init__(self, *, estate_file: str, state: str, **kwargs: Any) -> None:
        # each name of what is returned is a key of XCom, so that `task.output["plan_file"]` finds it
        super().__init__(multiple_outputs=True, **kwargs)
        self.estate_file = estate_file
        self.state = state
        self._progress: TaskProgress | None = None

    def execute(self, context: Context) -> dict[str, Any]:
        """Do the work of the task."""
        return self.perform(context)

    def perform(self, context: Context) -> dict[str, Any]:
        """Do the work, with errors in Airflow's words."""
        progress = self._progress = TaskProgress(self.log)
        try:
            return translated(lambda: self.work(context, progress))
        finally:
            self._progress = None

    def work(self, context: Context, progress: TaskProgress) -> dict[str, Any]:
        """What the operator is for. Imports of pii-tracer belong in here."""
        raise NotImplementedError

    def settings(self) -> Settings:
        """The settings of every use case."""
        from pii_tracer.app import Settings

        return Settings(Path(self.estate_file), Path(self.state))

    def on_kill(self) -> None:
        """End Spark, then the work from within: leases are given back, and the journal says how far the run came."""
        progress = self._progress
        if progress is not None:
            progress.stopped = True
        stop_spark()
        if progress is not None:  # not so after a timeout, which ended the work already
            raise Stopped("Airflow told the task to stop")


def optional_path(path: str | None) -> Path | None:
    """A path that need not be given; a template that gave nothing is none."""
    return Path(path) if path else None
