"""Jobs that name outputs and bring no rows into them, as their producer tells by what ran."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pii_tracer.lineage.sources.openlineage.event_parsing import Dataset, Draft

_NO_ROWS = frozenset({"DROP", "TRUNCATE", "RENAME", "ALTER"})
"""Changes of a dataset that bring no rows into it. CREATE can be that of a table that is filled at once
(https://openlineage.io/docs/spec/facets/dataset-facets/lifecycle_state_change)."""
_TABLES = frozenset({"create_table", "execute_create_table_command", "execute_create_data_source_table_command"})
"""Spark's commands that make a table without a query, as its listener has them behind the application's name: with one
they are called otherwise (`create_table_as_select`). Delta's and Hudi's command has one name for both. A table that is
made at a place of its own (LOCATION) has the rows that lie there."""
_MANAGED = re.compile(r"(?:^|/)([^/]+)\.db/([^/]+)/?$")
"""Where a metastore puts a table to which no statement gives a place."""
_NOTHING_RUNS = frozenset(
    {"EmptyOperator", "DummyOperator", "LatestOnlyOperator", "ExternalTaskMarker", "ExternalTaskSensor"}
)
"""Airflow's operators that wait, or do nothing: their outlets are the author's word, and others fill them."""
_OF_AIRFLOW = re.compile(r"(?:airflow\.(?:operators|sensors)\.|airflow\.providers\.standard\.)(?:\w+\.)*(\w+)|(\w+)")
"""A class of an operator by its path; one without a path is Airflow's, too."""


def note_idle(event: Mapping[str, Any], draft: Draft) -> None:
    """Note what the event's producer says of that. Before its datasets are read."""
    draft.defines, draft.idle = _makes_table(event), _is_idle(event)


def note_kept(dataset: Dataset, draft: Draft) -> None:
    """Note an output into which no rows come."""
    change = str(dataset.facets.get("lifecycleStateChange", {}).get("lifecycleStateChange")).upper()
    created = change == "CREATE" and (dataset.rows == 0 or (not dataset.rows and _is_empty(dataset, draft.defines)))
    if created or ((change in _NO_ROWS or draft.idle) and not dataset.rows):
        draft.kept.add(dataset.id)


def _makes_table(event: Mapping[str, Any]) -> str | None:
    """What the name of Spark's command for a table without a query says of the table; None for every other run."""
    job = _map(event, "job")
    kind = _map(_map(job, "facets"), "jobType")
    steps = str(job.get("name", "")).split(".")
    by_listener = "/integration/spark" in str(event.get("producer", "")) and kind.get("jobType") == "SQL_JOB"
    if not by_listener or len(steps) not in (2, 3) or steps[1] not in _TABLES:
        return None
    return steps[2] if len(steps) == 3 else ""


def _is_empty(dataset: Dataset, defines: str | None) -> bool:
    """Whether a table that a command makes lies where nothing was before: at the metastore's own place."""
    name = dataset.id[1]
    if defines is None or not re.sub(r"\W", "_", name.lower()).endswith(defines.lower()):
        return False
    return _MANAGED.search(name) is not None


def _is_idle(event: Mapping[str, Any]) -> bool:
    """Whether a run is that of an Airflow operator that writes nothing."""
    task = _map(_map(_map(_map(event, "run"), "facets"), "airflow"), "task")
    found = _OF_AIRFLOW.fullmatch(str(task.get("operator_class", "")))
    return found is not None and (found[1] or found[2]) in _NOTHING_RUNS


def _map(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}
