"""Settings of a Delta table that are changed for a moment: noted in the table itself, put back after a crash too."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from executors.engine.sql_names import quote_table, string_literal
from pii_tracer.lake.formats.delta.transaction_log import log_of
from pii_tracer.lake.stores.any_place import AnyPlace
from pii_tracer.model.errors import RunError

Sql = Callable[[str], Any]
TOMBSTONES = "delta.deletedFileRetentionDuration"
_RETENTION = "pii-tracer.deletedFileRetentionDuration"
"""What the retention of tombstones was; empty where it was not set."""

INTERVAL = "delta.checkpointInterval"
_INTERVAL = "pii-tracer.checkpointInterval"
"""After how many commits a checkpoint was written; empty where it was not set."""

_CLUSTERING = "pii-tracer.clusterBy"
"""The clustering columns, as a JSON list."""

_VALUES = {_RETENTION: TOMBSTONES, _INTERVAL: INTERVAL}


@contextmanager
def without_tombstones(sql: Sql, table: str, folder: AnyPlace) -> Iterator[None]:
    """Inside, the table keeps no tombstones. table: quoted."""
    before = _properties(folder).get(TOMBSTONES, "")
    _set(sql, table, {TOMBSTONES: "interval 0 seconds", _RETENTION: before})
    try:
        yield
    finally:
        put_back(sql, table, folder)


@contextmanager
def with_every_commit(sql: Sql, table: str, folder: AnyPlace, *, tombstones: bool = True) -> Iterator[None]:
    """Inside, each commit writes a checkpoint of itself, the one that sets this too. table: quoted.

    tombstones: False where these must not name removed files.
    """
    now = _properties(folder)
    changes = {INTERVAL: "1", _INTERVAL: now.get(INTERVAL, "")}
    if not tombstones:
        changes |= {TOMBSTONES: "interval 0 seconds", _RETENTION: now.get(TOMBSTONES, "")}
    _set(sql, table, changes)
    try:
        yield
    finally:
        put_back(sql, table, folder)


@contextmanager
def without_clustering(sql: Sql, table: str, folder: AnyPlace) -> Iterator[None]:
    """Inside, the table has no clustering columns.

    Raises:
        RunError: a clustering column's name cannot be written.
    """
    columns = list(sql(f"DESCRIBE DETAIL {table}").first()["clusteringColumns"])
    if any("`" in name for name in columns):
        raise RunError(
            "a clustering column's name has a dot or a backtick, so the step could not restore it",
            where=str(folder),
            todo="ALTER TABLE … CLUSTER BY NONE, `pii-tracer resume`, then cluster again",
        )
    _set(sql, table, {_CLUSTERING: json.dumps(columns)})
    try:
        sql(f"ALTER TABLE {table} CLUSTER BY NONE")
        yield
    finally:
        put_back(sql, table, folder)


def put_back(sql: Sql, table: str, folder: AnyPlace) -> None:
    """Give the table back what was noted; nothing where nothing was."""
    noted = _properties(folder)
    values = {name: noted[note] for note, name in _VALUES.items() if noted.get(note)}
    if values:
        _set(sql, table, values)
    columns = json.loads(noted.get(_CLUSTERING, "[]"))
    if columns:
        sql(f"ALTER TABLE {table} CLUSTER BY ({', '.join(quote_table(name) for name in columns)})")
    gone = [note for note in (*_VALUES, _CLUSTERING) if note in noted]
    gone += [name for note, name in _VALUES.items() if noted.get(note) == ""]
    if gone:
        sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES IF EXISTS ({', '.join(map(string_literal, gone))})")


def not_back(folder: AnyPlace) -> list[str]:
    """Findings: settings that a run has changed and not put back."""
    noted = _properties(folder)
    names = {**_VALUES, _CLUSTERING: "clustering"}
    return [f"the table's setting {name} is not restored" for note, name in names.items() if note in noted]


def is_clustered(folder: AnyPlace) -> bool:
    """Whether the table has the feature of liquid clustering (PROTOCOL.md, "Clustered Table")."""
    return "clustering" in log_of(folder, history=False).features


def _properties(folder: AnyPlace) -> dict[str, str]:
    return log_of(folder, history=False).configuration


def _set(sql: Sql, table: str, properties: dict[str, str]) -> None:
    pairs = ", ".join(f"{string_literal(name)} = {string_literal(value)}" for name, value in properties.items())
    sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({pairs})")
