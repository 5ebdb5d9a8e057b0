"""Whether an estate's Spark can do all steps of a plan: asked when the plan is made, and before the first step."""

from __future__ import annotations

from collections.abc import Sequence

from executors.engine.spark_connect import refuse_without_jvm
from executors.engine.version_profiles import PROFILES, SPARK_4_1
from pii_tracer.config.estate_file import Spark
from pii_tracer.lake.formats.delta.vocabulary import DELTA_PURGE
from pii_tracer.model.errors import Refused
from pii_tracer.model.plan import Step


def refuse_unfit(spark: Spark, steps: Sequence[Step]) -> None:
    """Nothing was changed where this raises.

    Raises:
        Refused: as `refuse_without_jvm`; steps of Hudi without a bundle of Hudi; Delta's REORG on a cluster of Spark
            4.1: Delta 4.4.0 looks for a session on executors, where there is none (docs/stack.md).
    """
    refuse_without_jvm(spark.remote, steps)
    for step in steps:
        if unfit := _unfit(spark, step):
            what, instead = unfit
            raise Refused(
                what,
                where=f"{step.id} {step.parameters.get('table') or step.parameters.get('location')}",
                todo=f"{instead}, and plan again; nothing was changed",
            )


def _unfit(spark: Spark, step: Step) -> tuple[str, str] | None:
    """Why this Spark cannot do a step, and what to do instead."""
    if step.executor == "hudi" and not PROFILES[spark.profile].has_hudi:
        return f"there is no Hudi for Spark {spark.profile}", "use the profile 3.5"
    if step.action is DELTA_PURGE and spark.is_cluster and spark.profile == SPARK_4_1.name:
        what = "Delta's REORG fails on a cluster of Spark 4.1: rows would be deleted and files would keep them"
        return what, "name a `local` master, or use the profile 3.5"
    return None
