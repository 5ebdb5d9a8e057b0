"""Jobs that name outputs and bring no rows into them, as their producer tells by what ran."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pii_tracer.lineage.sources.openlineage.event_parsing import Draft

_EMPTY_TABLES = frozenset({"create_table", "execute_create_table_command", "execute_create_data_source_table_command"})
"""Spark's commands that make a table without rows, as its listener has them behind the application's name: with a query
they are called otherwise (`create_table_as_select`). Delta's and Hudi's command has one name for both."""
_NOTHING_RUNS = frozenset(
    {"EmptyOperator", "DummyOperator", "LatestOnlyOperator", "ExternalTaskMarker", "ExternalTaskSensor"}
)
"""Airflow's operators that wait, or do nothing: their outlets are the author's word, and others fill them."""


def note_idle(event: Mapping[str, Any], draft: Draft) -> None:
    """Note what the event's producer says of that. Before its datasets are read."""
    draft.defines, draft.idle = _makes_empty_tables(event), _is_idle(event)


def _makes_empty_tables(event: Mapping[str, Any]) -> bool:
    """Whether a run is Spark's command for a table without a query: what it creates is empty."""
    job = _map(event, "job")
    kind = _map(_map(job, "facets"), "jobType")
    steps = str(job.get("name", "")).split(".")
    by_listener = "/integration/spark" in str(event.get("producer", "")) and kind.get("jobType") == "SQL_JOB"
    return by_listener and len(steps) in (2, 3) and steps[1] in _EMPTY_TABLES


def _is_idle(event: Mapping[str, Any]) -> bool:
    """Whether a run is that of an Airflow operator that writes nothing."""
    task = _map(_map(_map(_map(event, "run"), "facets"), "airflow"), "task")
    return str(task.get("operator_class", "")).rsplit(".", 1)[-1] in _NOTHING_RUNS


def _map(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}
