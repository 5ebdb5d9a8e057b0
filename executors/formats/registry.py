"""The executors of table formats that are installed, and what each format needs of Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pii_tracer.common import plugins
from pii_tracer.lake.formats.registry import table_formats
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Format

if TYPE_CHECKING:
    from executors.formats.base import SparkSupport

GROUP = "pii_tracer.format_executors"


def executor_classes() -> Mapping[str, Any]:
    """Every installed executor of a table format, by the name that steps call it; made with an `ExecutionContext`."""
    return {name: plugins.load(GROUP, name) for name in plugins.names(GROUP)}


def spark_supports() -> tuple[SparkSupport, ...]:
    """What each format needs of Spark, in the order of their extensions."""
    found = (getattr(made, "spark_support", None) for made in executor_classes().values())
    return tuple(sorted((one for one in found if one is not None), key=lambda one: one.rank))


def support_of(kind: Format) -> SparkSupport | None:
    """What a format needs of Spark; None where no installed executor works on its tables with Spark."""
    return next((one for one in spark_supports() if kind in one.formats), None)


def format_with(action: Action) -> Format | None:
    """The format that has an action; None where it is no table format's. Of bare files the first of theirs."""
    return next((one.name for one in table_formats() if action in one.actions), None)


def support_for(action: Action) -> SparkSupport | None:
    """What the format that has an action needs of Spark; None where it is no table format's, or needs no Spark."""
    kind = format_with(action)
    return support_of(kind) if kind is not None else None
