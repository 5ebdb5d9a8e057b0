"""The executor of Glacier vaults: which step is done by which of its parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from executors.context import ExecutionContext
from executors.executor_parts import Part, PartKind, PartsExecutor
from executors.stores.glacier.archive_delete import Awaiting, Deleting
from executors.stores.glacier.archive_rewrite import Retrieving, Rewriting
from executors.stores.glacier.vault_step_context import (
    AwaitParameters,
    DeleteParameters,
    RetrieveParameters,
    RewriteParameters,
    VaultWork,
)
from pii_tracer.model.actions import Action
from pii_tracer.model.plan import Copy, Step


class VaultExecutor(PartsExecutor[ExecutionContext]):
    """Executor `vault`."""

    name = "vault"
    title = "the vault executor"
    todo = "make a new plan"
    kinds = {
        Action.VAULT_RETRIEVE: PartKind(RetrieveParameters, Retrieving),
        Action.VAULT_REWRITE: PartKind(RewriteParameters, Rewriting),
        Action.VAULT_DELETE: PartKind(DeleteParameters, Deleting),
        Action.VAULT_AWAIT_INVENTORY: PartKind(AwaitParameters, Awaiting),
    }

    def _made(self, part: Callable[..., Part], step: Step, copy: Copy | None, parameters: Any) -> Part:
        """Of the vault as a whole: the parameters name the archives."""
        return part(VaultWork(self._ctx, step.id, copy), parameters)
