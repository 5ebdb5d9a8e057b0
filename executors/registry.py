"""All executors of a run, by the names that steps call them."""

from __future__ import annotations

from executors.context import ExecutionContext
from executors.engine.engine_failures import OnEngine
from executors.formats.delta.executor import DeltaExecutor
from executors.formats.hudi.executor import HudiExecutor
from executors.formats.iceberg.executor import IcebergExecutor
from executors.formats.plain_files.executor import FilesExecutor
from executors.key_views import KeysExecutor
from pii_tracer.config.catalogs import CatalogType
from pii_tracer.run.executor_protocol import Executor


def build(ctx: ExecutionContext) -> dict[str, Executor]:
    """The executors; `shred`, `s3`, `kafka` and `lakefs` only where the estate names such services."""
    found: list[Executor] = [
        KeysExecutor(ctx),
        OnEngine(IcebergExecutor(ctx)),
        OnEngine(DeltaExecutor(ctx)),
        OnEngine(HudiExecutor(ctx)),
        OnEngine(FilesExecutor(ctx)),
    ]
    if any(catalog.type is CatalogType.NESSIE for catalog in ctx.estate.catalogs.values()):
        from executors.catalogs.nessie.executor import NessieExecutor

        found.append(OnEngine(NessieExecutor(ctx)))
    if ctx.estate.keys:
        from executors.keys.envelope.key_destruction import ShredExecutor

        found.append(ShredExecutor(ctx))
    if any(table.kms_key_column for table in ctx.estate.keys):
        from executors.keys.kms.key_deletion import KmsExecutor

        found.append(KmsExecutor(ctx))
    if ctx.estate.s3 is not None:
        from executors.stores.s3.executor import S3Executor

        found.append(S3Executor(ctx))
    if ctx.estate.vaults:
        from executors.stores.glacier.executor import VaultExecutor

        found.append(VaultExecutor(ctx))
    if ctx.estate.kafka:
        from executors.streams.kafka.executor import KafkaExecutor

        found.append(KafkaExecutor(ctx))
    if ctx.estate.lakefs:
        from executors.stores.lakefs.executor import LakefsExecutor

        found.append(LakefsExecutor(ctx))
    return {executor.name: executor for executor in found}
