"""The planners of the table formats that are installed."""

from __future__ import annotations

from functools import cache
from typing import cast

from pii_tracer.common import plugins
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import PlanError
from planners.formats.base import FormatPlanner

GROUP = "pii_tracer.format_planners"
_EXECUTORS = "pii_tracer.format_executors"


@cache
def planner_of(name: Format) -> FormatPlanner:
    """The planner of a format.

    Raises:
        PlanError: no installed package plans for the format.
    """
    made = plugins.required(GROUP, name.value, f"plans for the table format `{name}`", PlanError)
    return cast(FormatPlanner, made())


@cache
def format_planners() -> tuple[tuple[Format, FormatPlanner], ...]:
    """Every installed planner with its format, sorted by the format's name."""
    return tuple((Format(name), planner_of(Format(name))) for name in plugins.names(GROUP))


@cache
def format_executors() -> frozenset[str]:
    """Names of the executors that work on tables and folders."""
    return frozenset(plugins.names(_EXECUTORS)).union(*(planner.executors for _, planner in format_planners()))


@cache
def spark_executors() -> frozenset[str]:
    """Those of them that are paid for as hours of Spark."""
    none: frozenset[str] = frozenset()
    return none.union(*(planner.executors for _, planner in format_planners() if planner.runs_on_spark))
