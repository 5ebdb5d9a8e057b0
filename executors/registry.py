"""All executors of a run, by the names that steps call them."""

from __future__ import annotations

from executors.context import ExecutionContext
from executors.engine.engine_failures import OnEngine
from executors.formats.registry import executor_classes
from executors.key_views import KeysExecutor
from pii_tracer.config.catalogs import CatalogType
from pii_tracer.run.executor_protocol import Executor


def build(ctx: ExecutionContext) -> dict[str, Executor]:
    """The executors: every installed table format's, and those of services that the estate names."""
    found: list[Executor] = [
        KeysExecutor(ctx),
        *(OnEngine(made(ctx)) for made in executor_classes().values()),
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
