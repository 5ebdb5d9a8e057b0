"""What executors whose actions lie in files of their own have in common: parts, their parameters, what they cost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from executors.stores.s3.costs import cost_fact
from pii_tracer.config.estate_file import Prices
from pii_tracer.model.errors import RunError
from pii_tracer.model.plan import Copy, Step
from pii_tracer.run.executor_protocol import (
    Check,
    Outcome,
    PartlyDone,
    Progress,
)

Parameters = TypeVar("Parameters", bound=BaseModel)


class Part(Protocol):
    """One step with its parameters: the executor's protocol without the step."""

    def check(self) -> None: ...

    def run(self) -> Outcome: ...

    def verify(self) -> Check: ...

    def probe(self) -> Progress: ...


def parameters_of(kind: type[Parameters], step: Step, todo: str) -> Parameters:
    """The step's parameters.

    Raises:
        RunError: they are not what the action takes; only their names are told.
    """
    try:
        return kind.model_validate(step.parameters)
    except ValidationError as error:
        wrong = ", ".join(".".join(str(part) for part in item["loc"]) for item in error.errors(include_input=False))
        raise RunError(f"the step's parameters are wrong: {wrong}", where=step.id, todo=todo) from None


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


class PartsExecutor(ABC):
    """An executor that leaves each step to a part of it."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices

    @abstractmethod
    def _part(self, step: Step, copy: Copy | None) -> Part:
        """The part that does a step. Raises `RunError` for wrong parameters."""

    def check(self, step: Step, copy: Copy | None) -> None:
        """Raise `RunError` for wrong parameters, and for what the part says."""
        self._part(step, copy).check()

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        """Do the step. What is done already is seen and not done again. The facts say what it cost.

        Raises:
            PartlyDone: some of it failed; its facts say what, and what is done.
        """
        return run_priced(self._part(step, copy), step, self._prices)

    def verify(self, step: Step, copy: Copy | None) -> Check:
        """Look at the system itself."""
        return self._part(step, copy).verify()

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """How far the step came. Reads only."""
        return self._part(step, copy).probe()
