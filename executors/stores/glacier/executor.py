"""The executor of Glacier vaults: which step is done by which of its parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from executors.context import ExecutionContext
from executors.executor_parts import Part, PartsExecutor, parameters_of
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


class VaultExecutor(PartsExecutor):
    """Executor `vault`."""

    name = "vault"

    def __init__(self, ctx: ExecutionContext) -> None:
        super().__init__(ctx.estate.prices)
        self._ctx = ctx

    def _part(self, step: Step, copy: Copy | None) -> Part:
        kind = _KINDS.get(step.action)
        if kind is None:
            raise RunError(f"the vault executor has no action `{step.action}`", where=step.id, todo="make a new plan")
        parameters = parameters_of(kind.parameters, step, "make a new plan")
        return kind.part(VaultWork(self._ctx, step.id), parameters)
