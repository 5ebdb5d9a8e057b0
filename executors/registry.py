"""All executors of a run, by the names that steps call them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from executors.catalogs.registry import spark_catalogs
from executors.context import ExecutionContext
from executors.engine.engine_failures import OnEngine
from executors.formats.registry import executor_classes
from executors.key_view_steps import KeysExecutor
from pii_tracer.run.executor_protocol import Executor


def build(ctx: ExecutionContext) -> dict[str, Executor]:
    """The executors: those of the installed table formats, and of services only where the estate names such.

    What a step calls and is not among them, the runner refuses before its first step.

    Raises:
        ValueError: an installed package registers an executor by another name than its own, or by one that is taken.
    """
    found: list[Executor] = [KeysExecutor(ctx), *_of_formats(ctx)]
    found += (OnEngine(made) for catalog in spark_catalogs(ctx.estate) for made in catalog.executors(ctx))
    if ctx.estate.keys:
        from executors.keys.envelope.key_destruction_check import ShredExecutor

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
    if ctx.estate.hdfs:
        from executors.stores.hdfs.executor import HdfsExecutor

        found.append(HdfsExecutor(ctx))
    if ctx.estate.object_stores:
        from executors.stores.object_places.executor import ObjectsExecutor

        found.append(ObjectsExecutor(ctx))
    twice = sorted(name for name, number in Counter(executor.name for executor in found).items() if number > 1)
    if twice:
        raise ValueError(f"two executors are called {', '.join(twice)}; uninstall one of the two packages")
    return {executor.name: executor for executor in found}


def _of_formats(ctx: ExecutionContext) -> Iterator[Executor]:
    for name, made in executor_classes().items():
        executor: Executor = made(ctx)
        if executor.name != name:
            raise ValueError(f"the executor `{executor.name}` is registered as `{name}`, so steps cannot call it")
        yield OnEngine(executor)
