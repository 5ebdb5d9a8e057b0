"""What executors whose actions lie in files of their own have in common: parts, their parameters, what they cost."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from executors.stores.s3.costs import cost_fact
from pii_tracer.config.estate_file import Estate, Prices
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import EstateError, RunError
from pii_tracer.model.plan import Copy, Step
from pii_tracer.run.executor_protocol import (
    Check,
    Outcome,
    PartlyDone,
    Progress,
)

if TYPE_CHECKING:
    from executors.context import ExecutionContext

Parameters = TypeVar("Parameters", bound=BaseModel)


class Part(Protocol):
    """One step with its parameters: the executor's protocol without the step."""

    def check(self) -> None: ...

    def run(self) -> Outcome: ...

    def verify(self) -> Check: ...

    def probe(self) -> Progress: ...


@dataclass(frozen=True)
class NotingPart:
    """A step on one place, which notes in the journal what it treats before it does."""

    ctx: ExecutionContext
    step_id: str
    copy: Copy | None

    def noted(self, name: str) -> dict[str, dict[str, Any]]:
        """By path, key or version, what the journal has of those that this step treated, or was about to treat."""
        notes = (facts.get(name, {}) for facts in self.ctx.told(self.step_id))
        return {path: told for note in notes for path, told in note.items()}


@contextmanager
def as_run_errors() -> Iterator[None]:
    """What a store refuses, as an error of the run."""
    try:
        yield
    except EstateError as error:
        raise RunError(error.what, where=error.where, todo=error.todo) from None


@contextmanager
def placed(where: str) -> Iterator[None]:
    """An error of the run without a place is about this one."""
    try:
        yield
    except RunError as error:
        raise RunError(error.what, where=error.where or where, todo=error.todo) from None


def parameters_of(kind: type[Parameters], step: Step, todo: str) -> Parameters:
    """The step's parameters.

    Raises:
        RunError: they are not what the action takes; only their names are told.
    """
    try:
        return kind.model_validate(step.parameters)
    except ValidationError as error:
        wrong = ", ".join(".".join(str(part) for part in item["loc"]) for item in error.errors(include_input=False))
        raise RunError(f"the step's parameters are not valid: {wrong}", where=step.id, todo=todo) from None


def run_priced(part: Part, step: Step, prices: Prices) -> Outcome:
    """Run it; the facts say what it cost, also where only some of it is done.

    Raises:
        PartlyDone: as the part does.
    """
    try:
        done = part.run()
    except PartlyDone as error:
        error.facts["cost"] = cost_fact(error.facts, prices, step.estimate)
        raise
    return replace(done, facts=done.facts | {"cost": cost_fact(done.facts, prices, step.estimate)})


@dataclass(frozen=True)
class PartKind:
    """Parameters and part of one action. part: made of what the executor's `_made` gives it."""

    parameters: type[BaseModel]
    part: Callable[..., Part]


class Priced(Protocol):
    """A context of execution: its estate file says what things cost."""

    @property
    def estate(self) -> Estate: ...


Context = TypeVar("Context", bound=Priced)


class PartsExecutor(Generic[Context]):
    """An executor that leaves each step to a part of it.

    title: how errors call it. kinds: what it does, by action. todo: what to do about a step that is none of these.
    """

    title: ClassVar[str]
    kinds: ClassVar[Mapping[Action, PartKind]]
    todo: ClassVar[str] = "make the plan again"

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    def check(self, step: Step, copy: Copy | None) -> None:
        """Raise `RunError` for an action of others, for wrong parameters, and for what the part says."""
        with self.refusals():
            self._part(step, copy).check()

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        """Do the step. What is done already is seen and not done again. The facts say what it cost.

        Raises:
            PartlyDone: some of it failed; its facts say what, and what is done.
        """
        with self.refusals():
            return run_priced(self._part(step, copy), step, self._ctx.estate.prices)

    def verify(self, step: Step, copy: Copy | None) -> Check:
        """Look at the system itself."""
        with self.refusals():
            return self._part(step, copy).verify()

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """How far the step came. Reads only."""
        with self.refusals():
            return self._part(step, copy).probe()

    def rehearse(self, step: Step, copy: Copy, names: Container[str]) -> None:
        """Read what a step that writes files or objects again would read, before anything is approved. names: of those
        that are read. Raises `RunError` as the step would.
        """
        with self.refusals():
            part: Any = self._part(step, copy)
            part.rehearse(names)

    def refusals(self) -> AbstractContextManager[None]:
        """Turns the system's own errors into errors of the run. Without one, the parts do that themselves."""
        return nullcontext()

    def _part(self, step: Step, copy: Copy | None) -> Part:
        return self._made(self._kind(step).part, step, copy, self._parameters(step))

    def _kind(self, step: Step) -> PartKind:
        kind = self.kinds.get(step.action)
        if kind is None:
            raise RunError(f"{self.title} does not support the action `{step.action}`", where=step.id, todo=self.todo)
        return kind

    def _parameters(self, step: Step) -> Any:
        """Raises `RunError` for an action of others, and for wrong parameters."""
        return parameters_of(self._kind(step).parameters, step, self.todo)

    def _made(self, part: Callable[..., Part], step: Step, copy: Copy | None, parameters: Any) -> Part:
        return part(self._ctx, step.id, copy, parameters)
