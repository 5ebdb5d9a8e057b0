"""The executor of places in object stores: which step is done by which of its parts, whoever runs the store."""

from __future__ import annotations

from contextlib import AbstractContextManager

from executors.context import ExecutionContext
from executors.executor_parts import PartKind, PartsExecutor, as_run_errors
from executors.stores.object_places.object_rewrite import Rewriting
from executors.stores.object_places.step_base import (
    AwaitParameters,
    DeleteParameters,
    PlaceParameters,
    RewriteParameters,
)
from executors.stores.object_places.version_clearing import ClearingVersions
from executors.stores.object_places.version_deletion import AwaitingPurge, DeletingVersions
from pii_tracer.model.actions import Action


class ObjectsExecutor(PartsExecutor[ExecutionContext]):
    """Executor `objects`. What the store refuses is an error of the run."""

    name = "objects"
    title = "the executor of object stores"
    kinds = {
        Action.OBJECT_REWRITE: PartKind(RewriteParameters, Rewriting),
        Action.OBJECT_DELETE_VERSIONS: PartKind(DeleteParameters, DeletingVersions),
        Action.OBJECT_CLEAR_VERSIONS: PartKind(PlaceParameters, ClearingVersions),
        Action.OBJECT_AWAIT_PURGE: PartKind(AwaitParameters, AwaitingPurge),
    }

    def refusals(self) -> AbstractContextManager[None]:
        """Errors of the store."""
        return as_run_errors()
