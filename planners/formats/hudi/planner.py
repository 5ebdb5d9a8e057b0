"""Hudi for the planner: https://hudi.apache.org/docs/procedures"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath

from pii_tracer.lake.formats.hudi.properties import HUDI_BOOTSTRAPPED, HUDI_WRITABLE
from pii_tracer.lake.formats.stray_file_marks import UUID
from pii_tracer.lake.inventory import Ref, RefKind, TableState
from pii_tracer.model.plan import Precondition
from planners.copies.scan_evidence import Seen
from planners.formats.base import FormatPlanner, beside_rows
from planners.formats.hudi.steps import table_steps
from planners.step_drafts import CopyDraft, Draft

HOODIE = ".hoodie"
_BASE_FILE = re.compile(rf"{UUID}-\d+_[\d-]+_\d+\.(?:parquet|orc|hfile)", re.IGNORECASE)
_LOG_FILE = re.compile(rf"\.{UUID}-\d+_\d+\.log\.\d+_[\d-]+", re.IGNORECASE)
"""https://hudi.apache.org/tech-specs-1point0/#file-layout-hierarchy"""
_CDC = "hoodie.table.cdc.enabled"
_DATABASE = "hoodie.database.name"
_INDEXES = "hoodie.table.metadata.partitions"
_SECONDARY = "secondary_index_"
_KEYS = {
    "hoodie.table.recordkey.fields": "part of the record key",
    "hoodie.table.precombine.field": "the precombine field",
    "hoodie.table.ordering.fields": "an ordering field",
}
"""https://hudi.apache.org/docs/configurations/#Hudi-Table-Basic-Configs"""


class HudiPlanner(FormatPlanner):
    """Plans for Hudi tables: savepoints, rows, log files, old file slices, and the metadata table."""

    executors = frozenset({"hudi"})
    compares_whole_keys = True
    own_column_prefixes = ("_hoodie_",)
    overwrite_modes = ("hoodie.datasource.overwrite.mode",)

    def table_steps(self, item: CopyDraft) -> tuple[Draft, ...]:
        return table_steps(item)

    def history(self, state: TableState) -> tuple[Ref, ...]:
        """Savepoints are deleted by the steps of their table."""
        return tuple(ref for ref in state.refs if ref.kind is not RefKind.SAVEPOINT)

    def readers(self, state: TableState) -> tuple[Precondition, ...]:
        return ()

    def unsupported(self, state: TableState, keys: Collection[str]) -> str | None:
        return (
            _of_old_version(state)
            or _logs_changes(state)
            or _bootstrapped(state)
            or _indexed(state)
            or _of_other_database(state)
            or _partitioned_by(state, keys)
        )

    def no_rebuild(self, state: TableState) -> str | None:
        return None

    def no_clearing(self, state: TableState) -> str | None:
        return None

    def fixed_columns(self, state: TableState) -> Mapping[str, str]:
        fixed: dict[str, str] = {}
        for key, why in _KEYS.items():
            names = state.properties.get(key, "").split(",")
            fixed |= dict.fromkeys((name.strip().lower() for name in names if name.strip()), why)
        return fixed

    def left_behind(self, item: CopyDraft, seen: Seen) -> str | None:
        """The metadata table is built anew and old slices are cleaned; no procedure rewrites what the timeline says."""
        parts = PurePosixPath(seen.file).parts
        if parts[0] == HOODIE:
            if parts[1:2] == ("metadata",):
                return None
            return (
                "Hudi's metadata (such as extraMetadata of a commit) contains a value, and no procedure rewrites "
                "this metadata. Ask the owner to copy the table into a new one without the value, and to drop this "
                "table"
            )
        logged = item.state is not None and item.state.write_mode == "mor" and _LOG_FILE.fullmatch(parts[-1])
        if not logged and not _BASE_FILE.fullmatch(parts[-1]):
            return (
                "a file in a Hudi table's folder whose name is not one of Hudi's; no clean removes this file: ask "
                "its owner to remove it"
            )
        return beside_rows(item, seen)

    def is_log(self, path: str) -> bool:
        return re.search(r"(^|/)\.hoodie/", path) is not None


def _of_old_version(state: TableState) -> str | None:
    """https://hudi.apache.org/docs/deployment#upgrading"""
    if state.format_version is None or state.format_version in HUDI_WRITABLE:
        return None
    return (
        f"a Hudi table of version {state.format_version}, which Hudi 1.2 cannot write without an upgrade. Older "
        "readers and writers cannot use an upgraded table. Ask the owner to upgrade it (`CALL upgrade_table`), then "
        "plan again"
    )


def _logs_changes(state: TableState) -> str | None:
    """https://hudi.apache.org/docs/sql_queries, "Change Data Capture": a write puts the rows as they were beside it."""
    if state.properties.get(_CDC, "").lower() != "true":
        return None
    return (
        f"a Hudi table that logs its changes ({_CDC} is true). The log of a DELETE contains the deleted rows, and no "
        "step removes such logs. Ask the owner to switch this off and to rewrite the table, then plan again"
    )


def _bootstrapped(state: TableState) -> str | None:
    """https://hudi.apache.org/docs/migration_guide, "Bootstrap with metadata only"."""
    if HUDI_BOOTSTRAPPED not in state.properties:
        return None
    return (
        "a Hudi table that was bootstrapped. Hudi may read its rows by their position in the original files "
        f"({state.properties[HUDI_BOOTSTRAPPED]}), and would give other people's rows wrong keys after a row is "
        "removed there. Ask its owner to rewrite it as a table that contains all of its rows, then plan again"
    )


def _indexed(state: TableState) -> str | None:
    """https://hudi.apache.org/docs/metadata#secondary-index: a partition of the metadata table for each."""
    partitions = (name.strip() for name in state.properties.get(_INDEXES, "").split(","))
    found = sorted(name.removeprefix(_SECONDARY) for name in partitions if name.startswith(_SECONDARY))
    if not found:
        return None
    return (
        f"a Hudi table with a secondary index ({', '.join(found)}). The delete of the persons' rows fails in Hudi 1.2"
        " while the index exists. Ask its owner to drop it (DROP INDEX … ON the table), then plan again"
    )


def _of_other_database(state: TableState) -> str | None:
    """A writer compares the database's name with the table's (`Config conflict`), and not the table's own name."""
    told = state.properties.get(_DATABASE, "")
    schema, _, name = (state.table or "").rpartition(".")
    if not told or not schema or schema.rpartition(".")[2].lower() == told.lower():
        return None
    return (
        f"a Hudi table of the database {told} ({_DATABASE}), known here as {state.table}. Hudi rejects writes under "
        f"the name of a different database: declare the table as {told}.{name} in the estate file, then plan again"
    )


def _partitioned_by(state: TableState, keys: Collection[str]) -> str | None:
    """https://hudi.apache.org/docs/timeline: a commit's metadata names its partitions, and no procedure rewrites it."""
    fields = {name.partition(":")[0].lower() for name in state.partition_columns}  # `uid:simple`: with its generator
    named = sorted(fields.intersection(name.lower() for name in keys))
    if not named:
        return None
    return (
        f"a Hudi table that is partitioned by a key of the person ({', '.join(named)}). The timeline still names the "
        "partition after a delete, and no procedure rewrites the timeline. Ask its owner to change the table's "
        "partitions"
    )
