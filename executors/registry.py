"""All executors of a run, by the names that steps call them."""

from __future__ import annotations

from executors.context import ExecutionContext
from executors.delta import DeltaExecutor
from executors.files import FilesExecutor
from executors.hudi import HudiExecutor
from executors.iceberg import IcebergExecutor
from executors.keys import KeysExecutor
from pii_tracer.protocol import Executor


def build(ctx: ExecutionContext) -> dict[str, Executor]:
    """The executors; `s3` only where the estate says how S3 is reached (it needs the `aws` extra)."""
    found: list[Executor] = [
        KeysExecutor(ctx),
        IcebergExecutor(ctx),
        DeltaExecutor(ctx),
        HudiExecutor(ctx),
        FilesExecutor(ctx),
    ]
    if ctx.estate.s3 is not None:
        from executors.s3 import S3Executor

        found.append(S3Executor(ctx))
    return {executor.name: executor for executor in found}
