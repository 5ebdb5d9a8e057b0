"""The S3 executor: which step is done by which of its parts, each in a file of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from executors.executor_parts import Part, PartKind, PartsExecutor
from executors.stores.s3.abort_uploads import AbortingUploads
from executors.stores.s3.clear_old_versions import ClearingVersions, cleared_at
from executors.stores.s3.delete_versions import VersionDeleter
from executors.stores.s3.lifecycle_wait import AwaitingExpiry
from executors.stores.s3.object_rewrite import Rewriting
from executors.stores.s3.replica_wait import AwaitingReplica
from executors.stores.s3.restore import Restoring
from executors.stores.s3.step_base import (
    AbortParameters,
    AwaitParameters,
    ClearParameters,
    DeleteParameters,
    ExpiryParameters,
    RestoreParameters,
    RewriteParameters,
    S3Context,
)
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.stores.s3.archive_versions import s3_clients
from pii_tracer.lake.stores.s3.object_versions import ClientFactory
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import RunError
from pii_tracer.model.plan import Copy, Step


class S3Executor(PartsExecutor[S3Context]):
    """Executor `s3`. clients: made from the estate file unless given."""

    name = "s3"
    title = "the S3 executor"
    kinds = {
        Action.S3_RESTORE: PartKind(RestoreParameters, Restoring),
        Action.S3_REWRITE_ARCHIVE: PartKind(RewriteParameters, Rewriting),
        Action.S3_AWAIT_REPLICA: PartKind(AwaitParameters, AwaitingReplica),
        Action.S3_DELETE_VERSIONS: PartKind(DeleteParameters, VersionDeleter),
        Action.S3_ABORT_UPLOADS: PartKind(AbortParameters, AbortingUploads),
        Action.S3_CLEAR_VERSIONS: PartKind(ClearParameters, ClearingVersions),
        Action.S3_AWAIT_EXPIRY: PartKind(ExpiryParameters, AwaitingExpiry),
    }

    def __init__(self, ctx: S3Context, clients: ClientFactory | None = None) -> None:
        super().__init__(ctx)
        self._clients = clients or s3_clients(ctx.estate)

    def check(self, step: Step, copy: Copy | None) -> None:
        """Raise `RunError` for wrong parameters, an unreachable bucket, a missing match, or an unsupported format."""
        parameters = self._parameters(step)
        try:
            self._clients(parameters.region).head_bucket(Bucket=parameters.bucket)
        except (ClientError, BotoCoreError) as error:
            raise RunError(
                f"the bucket cannot be reached: {error_code(error)}",
                where=f"s3://{parameters.bucket}",
                todo="check its name, its region and the run's permissions",
            ) from None
        super().check(step, copy)

    def _made(self, part: Callable[..., Part], step: Step, copy: Copy | None, parameters: Any) -> Part:
        if isinstance(parameters, ClearParameters):
            return ClearingVersions(self._ctx, self._clients, parameters, copy, cleared_at(self._ctx.told(step.id)))
        if isinstance(parameters, RewriteParameters):
            return Rewriting(self._ctx, self._clients, parameters, copy, step.id)
        return part(self._ctx, self._clients, parameters, copy)
