"""The HDFS executor: which step is done by which of its parts, each over WebHDFS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from executors.context import ExecutionContext
from executors.executor_parts import Part, PartsExecutor, parameters_of
from executors.stores.hdfs.file_rewrite import Rewriting
from executors.stores.hdfs.files import (
    FilesParameters,
    PlaceParameters,
    RewriteParameters,
    SnapshotParameters,
    as_run_errors,
)
from executors.stores.hdfs.kept_files import DeletingFiles, DeletingSnapshot
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import RunError
from pii_tracer.model.plan import Copy, Step
from pii_tracer.run.executor_protocol import Check, Outcome, Progress


@dataclass(frozen=True)
class _Kind:
    """Parameters and part of one action."""

    parameters: type[PlaceParameters]
    part: Callable[[ExecutionContext, str, Copy | None, Any], Part]


_KINDS: dict[Action, _Kind] = {
    Action.HDFS_REWRITE: _Kind(RewriteParameters, Rewriting),
    Action.HDFS_DELETE_FILES: _Kind(FilesParameters, DeletingFiles),
    Action.HDFS_DELETE_SNAPSHOT: _Kind(SnapshotParameters, DeletingSnapshot),
}


class HdfsExecutor(PartsExecutor):
    """Executor `hdfs`."""

    name = "hdfs"

    def __init__(self, ctx: ExecutionContext) -> None:
        super().__init__(ctx.estate.prices)
        self._ctx = ctx

    def _part(self, step: Step, copy: Copy | None) -> Part:
        kind = _KINDS.get(step.action)
        if kind is None:
            raise RunError(
                f"the HDFS executor has no action `{step.action}`", where=step.id, todo="make the plan again"
            )
        parameters = parameters_of(kind.parameters, step, "make the plan again")
        return kind.part(self._ctx, step.id, copy, parameters)

    def check(self, step: Step, copy: Copy | None) -> None:
        """As of every executor; what HDFS refuses is an error of the run."""
        with as_run_errors():
            super().check(step, copy)

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        """As of every executor; what HDFS refuses is an error of the run."""
        with as_run_errors():
            return super().run(step, copy)

    def verify(self, step: Step, copy: Copy | None) -> Check:
        """As of every executor; what HDFS refuses is an error of the run."""
        with as_run_errors():
            return super().verify(step, copy)

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """As of every executor; what HDFS refuses is an error of the run."""
        with as_run_errors():
            return super().probe(step, copy)
