"""The executor of Glacier vaults: which step is done by which of its parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from executors.context import ExecutionContext
from executors.step_parts import Part, parameters_of, run_priced
from executors.stores.glacier.archive_delete import Awaiting, Deleting
from executors.stores.glacier.archive_rewrite import Retrieving, Rewriting
from executors.stores.glacier.vault_state import (
    AwaitParameters,
    DeleteParameters,
    RetrieveParameters,
    RewriteParameters,
    VaultParameters,
    VaultWork,
)
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import RunError
from pii_tracer.model.plan import Copy, Step
from pii_tracer.run.executor_protocol import Check, Outcome, Progress


@dataclass(frozen=True)
class _Kind:
    """Parameters and part of one action."""

    parameters: type[VaultParameters]
    part: Callable[[VaultWork, Any], Part]


_KINDS: dict[Action, _Kind] = {
    Action.VAULT_RETRIEVE: _Kind(RetrieveParameters, Retrieving),
    Action.VAULT_REWRITE: _Kind(RewriteParameters, Rewriting),
    Action.VAULT_DELETE: _Kind(DeleteParameters, Deleting),
    Action.VAULT_AWAIT_INVENTORY: _Kind(AwaitParameters, Awaiting),
}


class VaultExecutor:
    """Executor `vault`."""

    name = "vault"

    def __init__(self, ctx: ExecutionContext) -> None:
        self._ctx = ctx

    def check(self, step: Step, copy: Copy | None) -> None:
        """Raise `RunError` for wrong parameters, an unreachable vault, or an archive whose fate is not known."""
        self._part(step).check()

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        """Do the step; what is done already is not done again. The facts say what it cost."""
        return run_priced(self._part(step), step, self._ctx.estate.prices)

    def verify(self, step: Step, copy: Copy | None) -> Check:
        """Look at the vault as far as Glacier shows it."""
        return self._part(step).verify()

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """How far the step came. Reads only."""
        return self._part(step).probe()

    def _part(self, step: Step) -> Part:
        kind = _KINDS.get(step.action)
        if kind is None:
            raise RunError(f"the vault executor has no action `{step.action}`", where=step.id, todo="make a new plan")
        parameters = parameters_of(kind.parameters, step, "make a new plan")
        return kind.part(VaultWork(self._ctx, step.id), parameters)
