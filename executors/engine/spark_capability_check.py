"""Whether an estate's Spark can do all steps of a plan: asked when the plan is made, and before the first step."""

from __future__ import annotations

from collections.abc import Sequence

from executors.engine.spark_connect import refuse_without_jvm
from executors.formats.registry import format_with, support_of
from pii_tracer.config.estate_file import Spark
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.model.errors import Refused
from pii_tracer.model.plan import Step


def refuse_unfit(spark: Spark, steps: Sequence[Step]) -> None:
    """Nothing was changed where this raises.

    Raises:
        Refused: as `refuse_without_jvm`; the step's format is not for this Spark, or says that this Spark cannot do it.
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
    kind = format_with(step.action)
    support = support_of(kind) if kind is not None else None
    if kind is None or support is None:
        return None
    if not support.runs_on(spark.profile):
        there = " or ".join(sorted(support.builds))
        return f"{format_of(kind).title} does not support Spark {spark.profile}", f"use the profile {there}"
    return support.unfit(step, spark)
