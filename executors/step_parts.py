"""What executors whose actions lie in files of their own have in common: parts, their parameters, what they cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from executors.stores.s3.costs import cost_fact
from pii_tracer.config.estate_file import Prices
from pii_tracer.model.errors import RunError
from pii_tracer.model.plan import Step
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
