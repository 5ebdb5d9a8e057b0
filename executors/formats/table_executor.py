"""What the executors of table formats have in common: every action is an act, and a look at the table after it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

from executors.context import ExecutionContext
from executors.engine.mask_sql import more_than_held, treated
from executors.engine.match_sql import count, match_of
from executors.engine.rebuild_from_query import difference, overwrite
from executors.engine.retries import on_conflict
from executors.sweep.table_folders import Places, refusals
from pii_tracer.common.plurals import counted
from pii_tracer.lake.stores.any_place import AnyPlace
from pii_tracer.lake.stores.s3.object_versions import ClientFactory
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import RunError
from pii_tracer.model.plan import Copy, Step
from pii_tracer.run.executor_protocol import Check, Outcome, Progress

Act = Callable[[Step, Copy | None], dict[str, Any]]
"""Gives facts."""
Look = Callable[[Step, Copy | None], list[str]]
"""Gives findings: what is not as it has to be."""


def no_table(title: str, folder: AnyPlace) -> RunError:
    """The error where a step's table is not in its folder. title: of its format."""
    todo = "restore the table's folder, or plan again without the table"
    return RunError(f"this place has no {title} table", where=str(folder), todo=todo)


class TableExecutor(ABC):
    """Every run is safe to repeat: each statement leads to a state, and a state reached already stays.

    clients: of S3, for tables that lie there; made from the estate file unless given.
    """

    log_folder: ClassVar[str]
    """Where a table's log or metadata lies in its folder."""
    without_spark: ClassVar[frozenset[Action]] = frozenset()
    """Actions that Spark has no part in."""

    def __init__(self, ctx: ExecutionContext, clients: ClientFactory | None = None) -> None:
        self._ctx = ctx
        self._places = Places(ctx.estate, clients)
        self._work = self._actions()

    @abstractmethod
    def _actions(self) -> Mapping[Action, tuple[Act, Look]]:
        """What each action does, and what is looked at after it."""

    @abstractmethod
    def _newest(self, step: Step) -> str | None:
        """The newest version, snapshot or instant."""

    @abstractmethod
    def _rows_of(self, step: Step) -> str:
        """Whose rows the step is about, quoted for SQL: the table, or a branch of it."""

    def _around(self, step: Step) -> AbstractContextManager[None]:
        """What holds while a step is at work."""
        return nullcontext()

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        """Do the step; facts have the newest version before and after."""
        with refusals(step.parameters["location"]), self._around(step):
            before = self._newest(step)
            facts = on_conflict(lambda: self._work[step.action][0](step, copy))
            return Outcome({"snapshot_before": before, "snapshot_after": self._newest(step), **facts})

    def verify(self, step: Step, copy: Copy | None) -> Check:
        """Look at the table itself."""
        with refusals(step.parameters["location"]):
            findings = self._work[step.action][1](step, copy)
            return Check(not findings, tuple(findings), {"snapshot": self._newest(step)})

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """After a crash: done when the postcondition holds; otherwise the statement is run again."""
        return Progress.DONE if self.verify(step, copy).ok else Progress.PARTIAL

    def _rebuild(self, step: Step, copy: Copy | None) -> dict[str, Any]:
        return overwrite(self._ctx, self._rows_of(step), step.parameters["sql"])

    def _rebuilt(self, step: Step, copy: Copy | None) -> list[str]:
        return difference(self._ctx, self._rows_of(step), step.parameters["sql"])

    def _rows_left(self, step: Step, copy: Copy | None) -> list[str]:
        left = count(self._ctx, self._rows_of(step), match_of(copy))
        return [f"{counted(left, 'row of the person is', 'rows of the person are')} left"] if left else []

    def _unmasked_left(self, step: Step, copy: Copy | None) -> list[str]:
        return more_than_held(self._ctx, self._rows_of(step), treated(step, copy))

    def _sql(self, statement: str) -> Any:
        return self._ctx.spark.sql(statement)

    def _place(self, step: Step) -> AnyPlace:
        return self._places.at(step.parameters["location"])


def name_of(step: Step, missing: str, todo: str) -> str:
    """The table's name. Raises `RunError` with these words where it has none."""
    if not step.parameters.get("table"):
        raise RunError(missing, where=step.parameters.get("location"), todo=todo)
    return str(step.parameters["table"])
