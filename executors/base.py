"""What the Spark executors share: dispatch by action, targets, row counts, retries, errors without values."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import unquote, urlparse

from executors.context import ExecutionContext
from executors.match import columns_of, condition
from executors.spark import quote, quote_table
from pii_tracer.errors import PiiTracerError, RunError
from pii_tracer.model import Match
from pii_tracer.plan import Action, Copy, Step
from pii_tracer.protocol import Check, Outcome, Progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

R = TypeVar("R")

ATTEMPTS = 4
"""Tries of a commit that loses a race; each starts from a fresh snapshot."""

_CONFLICTS = (
    "CommitFailedException",
    "CommitStateUnknownException",
    "ValidationException",
    "Concurrent",
    "HoodieWriteConflictException",
)


class Act(Protocol):
    """One action of an executor."""

    atomic: bool
    """A run leaves either everything or nothing: a probe can tell NOT_STARTED from PARTIAL."""

    def check(self, at: Target) -> None:
        """Raise `RunError` when the action cannot run."""

    def run(self, at: Target) -> dict[str, Any]:
        """Do it and return facts."""

    def verify(self, at: Target) -> Check:
        """Look at the table and tell whether the postcondition holds."""


@dataclass(frozen=True)
class Target:
    """A step's table, as an action sees it."""

    ctx: ExecutionContext
    step: Step
    copy: Copy | None

    @property
    def spark(self) -> SparkSession:
        return self.ctx.spark

    @property
    def table(self) -> str | None:
        """The table's name as planned, unquoted; None where it has none."""
        name = self.step.parameters.get("table")
        return str(name) if name else None

    @property
    def name(self) -> str:
        """The table's name, quoted. Raises `RunError` where it has none."""
        if self.table is None:
            raise RunError(
                f"step {self.step.id} needs a table with a name",
                where=self.location,
                todo="declare the table in the estate file, then plan again",
            )
        return quote_table(self.table)

    @property
    def location(self) -> str:
        location = self.step.parameters.get("location")
        if not location:
            raise RunError(f"step {self.step.id} has no location", todo="plan again")
        return str(location)

    @property
    def folder(self) -> Path:
        """The table's folder on this machine. Raises `RunError` for other stores."""
        return local_folder(self.location)

    @property
    def match(self) -> Match:
        if self.copy is None or self.copy.match is None:
            raise RunError(f"step {self.step.id} deletes rows and its copy has no match", todo="plan again")
        return self.copy.match

    def parameter(self, name: str, default: Any = None) -> Any:
        return self.step.parameters.get(name, default)

    def sql(self, statement: str) -> DataFrame:
        return self.spark.sql(statement)

    def scalar(self, statement: str) -> Any:
        """The first column of the first row, or None."""
        row = self.sql(statement).first()
        return None if row is None else row[0]

    def condition(self) -> str:
        """WHERE condition for the person's rows."""
        return condition(self.match, self.ctx.key_view)

    def persons_rows(self, relation: str) -> int:
        """How many rows of a relation (quoted, may hold a time-travel clause) are the person's."""
        return int(self.scalar(f"SELECT count(*) FROM {relation} WHERE {self.condition()}"))

    def require_columns(self, names: list[str]) -> None:
        """Raises `RunError` when the match needs a column the table does not have."""
        have = {name.lower() for name in names}
        missing = [name for name in columns_of(self.match) if name.lower() not in have]
        if missing:
            raise RunError(
                f"the table has no column {', '.join(quote(name) for name in missing)}",
                where=self.table or self.location,
                todo="the schema changed since planning: plan again",
            )


def local_folder(location: str) -> Path:
    """A location as a folder of this machine; accepts `/a/b`, `file:/a/b` and `file:///a/b`.

    Raises:
        RunError: another store; hidden and stray files there are out of reach of this executor.
    """
    parsed = urlparse(location)
    if parsed.scheme not in ("", "file"):
        raise RunError(
            f"files of a `{parsed.scheme}` store cannot be listed by this step yet",
            where=location,
            todo="only local and mounted folders are supported",
        )
    return Path(unquote(parsed.path) if parsed.scheme else location)


def engine_error(what: str, error: Exception, where: str | None = None) -> RunError:
    """An engine's failure as a `RunError` that names exception classes only: messages can quote data."""
    names = [type(error).__name__]
    get_class = getattr(error, "getErrorClass", None)
    if callable(get_class) and get_class():
        names.append(str(get_class()))
    names += [name for name in java_classes(error) if name not in names]
    return RunError(
        f"{what} failed: {' < '.join(names)}",
        where=where,
        todo="the engine's own log has the details; mend the cause, then `pii-tracer resume`",
    )


def java_classes(error: BaseException) -> list[str]:
    """Simple class names of a Java failure and its causes, outermost first."""
    cause = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    names: list[str] = []
    while cause is not None and len(names) < 10:
        names.append(str(cause.getClass().getName()).rsplit(".", 1)[-1].rsplit("$", 1)[-1])
        cause = cause.getCause()
    return names


def is_conflict(error: BaseException) -> bool:
    """Whether another writer's commit made this one fail."""
    names = [type(error).__name__, *java_classes(error)]
    return any(name.startswith(conflict) for name in names for conflict in _CONFLICTS)


def retrying(action: Callable[[], R], pause: float = 0.5) -> R:
    """Run `action`; when a concurrent commit wins, run it again from a fresh snapshot, a bounded number of times."""
    for attempt in range(1, ATTEMPTS):
        try:
            return action()
        except Exception as error:
            if not is_conflict(error):
                raise
            time.sleep(pause * 2 ** (attempt - 1))
    return action()


class SparkExecutor:
    """Dispatches a step to its act and turns engine failures into `RunError`s without data in them."""

    def __init__(self, ctx: ExecutionContext, name: str, acts: Mapping[Action, Act]) -> None:
        self.ctx = ctx
        self.name = name
        self.acts = acts

    def check(self, step: Step, copy: Copy | None) -> None:
        """See `pii_tracer.protocol.Executor.check`."""
        self._guarded("check", step, lambda: self._act(step).check(Target(self.ctx, step, copy)))

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        """See `pii_tracer.protocol.Executor.run`."""
        facts = self._guarded(
            "run", step, lambda: retrying(lambda: self._act(step).run(Target(self.ctx, step, copy)))
        )
        return Outcome(facts=facts)

    def verify(self, step: Step, copy: Copy | None) -> Check:
        """See `pii_tracer.protocol.Executor.verify`."""
        return self._guarded("verify", step, lambda: self._act(step).verify(Target(self.ctx, step, copy)))

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """See `pii_tracer.protocol.Executor.probe`."""
        if self.verify(step, copy).ok:
            return Progress.DONE
        return Progress.NOT_STARTED if self._act(step).atomic else Progress.PARTIAL

    def _act(self, step: Step) -> Act:
        act = self.acts.get(step.action)
        if act is None or step.executor != self.name:
            raise RunError(f"the executor `{self.name}` does not know the action `{step.action}`", todo="plan again")
        return act

    def _guarded(self, what: str, step: Step, work: Callable[[], R]) -> R:
        try:
            return work()
        except PiiTracerError:
            raise
        except Exception as error:
            where = str(step.parameters.get("table") or step.parameters.get("location") or step.id)
            raise engine_error(f"{what} of step {step.id} ({step.action})", error, where) from None
