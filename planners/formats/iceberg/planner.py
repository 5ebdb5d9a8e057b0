"""Iceberg for the planner, under catalogs of one history and under Nessie.

https://iceberg.apache.org/docs/latest/spark-procedures/
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath

from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG_DATA_PATHS
from pii_tracer.lake.inventory import Ref, TableState
from pii_tracer.lake.table_descriptions import FORMER_COLUMNS, NOTES, REST, SUMMARIES
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import (
    S3Location,
    hdfs_location,
    is_hdfs,
    is_object_place,
    location_of,
    object_location,
)
from pii_tracer.model.plan import KEEPS_HISTORY, Precondition
from planners.catalogs.nessie import steps as nessie_steps
from planners.catalogs.nessie import unsupported_actions as nessie_support
from planners.copies.scan_evidence import Seen
from planners.formats.base import FormatPlanner, beside_rows
from planners.formats.iceberg import steps
from planners.step_drafts import CopyDraft, Draft

_CLEAN = "expire_snapshots with clean_expired_metadata"
_HINTS = ("version-hint.text", ".version-hint.text.crc")
"""Files that no sweep removes."""
_METADATA_FILE = re.compile(r"\.metadata\.json(\.gz)?$|\.gz\.metadata\.json$")


class IcebergPlanner(FormatPlanner):
    """Plans for Iceberg tables: rows, delete files, manifests, snapshots and orphans; branches and tags as copies."""

    executors = frozenset({"iceberg", nessie_steps.EXECUTOR})
    compares_whole_keys = True
    removes_elements = True
    keeps_column_order = True
    shares_files = True

    def table_steps(self, item: CopyDraft) -> tuple[Draft, ...]:
        if "nessie" in item.copy.facts:
            return nessie_steps.table_steps(item)
        return steps.history_steps(item) if KEEPS_HISTORY in item.copy.facts else steps.table_steps(item)

    def history(self, state: TableState) -> tuple[Ref, ...]:
        return state.refs if state.kept_history is None else ()

    def ref_steps(self, item: CopyDraft, kind: str, name: str) -> tuple[Draft, ...]:
        if "nessie" in item.copy.facts:
            return nessie_steps.ref_steps(item, kind, name)
        return steps.ref_steps(item, kind, name)

    def ref_lapse_steps(self, item: CopyDraft, lapse: datetime, patience: timedelta) -> tuple[Draft, ...]:
        return steps.ref_lapse_steps(item, lapse, patience)

    def readers(self, state: TableState) -> tuple[Precondition, ...]:
        staged = Precondition(kind="staged", target=state.location, expected="\n".join(state.staged))
        return *super().readers(state), staged

    def without_name(self, state: TableState) -> str | None:
        if state.table is not None:
            return None
        return "no catalog of the estate file names this Iceberg table, and Iceberg writes a table only by its name"

    def unsupported(self, state: TableState, keys: Collection[str]) -> str | None:
        if state.nessie is not None:
            return nessie_support.unsupported(state, state.nessie)
        return _writes_elsewhere(state) or _unkept(state, keys)

    def no_rebuild(self, state: TableState) -> str | None:
        if state.kept_history is not None:
            return f"its query does not produce its older snapshots, {_TO_STAY}"
        return nessie_support.NO_REBUILD if state.nessie is not None else None

    def no_clearing(self, state: TableState) -> str | None:
        if state.kept_history is not None:
            return f"an Iceberg table {_TO_STAY}"
        return nessie_support.PLACE if state.nessie is not None else None

    def left_behind(self, item: CopyDraft, seen: Seen) -> str | None:
        """What no snapshot names is swept, metadata too; files with rows of the persons are written again."""
        parts = PurePosixPath(seen.file).parts
        if parts[-1] in _HINTS:
            return "the version hint, which must contain only a version: ask its owner to correct or remove it"
        return None if "metadata" in parts[:-1] else beside_rows(item, seen)

    def is_log(self, path: str) -> bool:
        return _METADATA_FILE.search(path) is not None

    def text_remedies(self, name: Format) -> Mapping[str, str]:
        return {
            FORMER_COLUMNS: _CLEAN,
            REST: f"of partition fields: REPLACE PARTITION FIELD, and {_CLEAN}; of the rest: by rewriting the table",
            NOTES: "CALL system.rewrite_data_files with 'rewrite-all' => 'true', branches too",
            SUMMARIES: "expire_snapshots of these snapshots, or remove the table from `keep_history`",
        }


_TO_STAY = "whose history must be kept (`keep_history`)"


def _unkept(state: TableState, keys: Collection[str]) -> str | None:
    """Why its history cannot stay, where it is to."""
    kept = state.kept_history
    if kept is None:
        return None
    why = next(iter(kept.obstacles), None)
    if why is None and state.sharing:
        why = f"it shares data files with {state.sharing[0].table or state.sharing[0].location}"
    if why is None and keys and all(key.partition(".")[0].lower() in kept.late for key in keys):
        why = f"its columns with a key ({', '.join(sorted(keys))}) are younger than some of its snapshots"
    return why and (
        f"an Iceberg table {_TO_STAY}, and {why}. Or remove the table from `keep_history`; then a step expires its "
        "snapshots"
    )


def _writes_elsewhere(state: TableState) -> str | None:
    """https://iceberg.apache.org/docs/latest/configuration/#write-properties; older names are longer."""
    for name in ICEBERG_DATA_PATHS:
        told = state.properties.get(name)
        if told and not _is_inside(told, state.location):
            return (
                f"an Iceberg table whose data files are in a separate folder ({name}). No step clears that folder, "
                "and the search of the table does not include it. Ask its owner to unset the property and to rewrite "
                "the files into the table's folder (rewrite_data_files, expire_snapshots), then plan again"
            )
    return None


def _is_inside(text: str, location: str) -> bool:
    try:
        if (is_hdfs(text) and is_hdfs(location)) or (is_object_place(text) and is_object_place(location)):
            told = hdfs_location if is_hdfs(text) else object_location
            return told(location).holds(told(text))  # type: ignore[arg-type]
        place, folder = location_of(text), location_of(location)
    except EstateError:
        return False
    if isinstance(folder, S3Location):
        return isinstance(place, S3Location) and folder.holds(place)
    return isinstance(place, Path) and place.is_relative_to(folder)
