"""State of a Delta table, from its log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pii_tracer.common.plurals import counted
from pii_tracer.lake.dataset_paths import EstatePaths, local_path
from pii_tracer.lake.formats.delta.log_paths import LOG
from pii_tracer.lake.formats.delta.stray_files import strangers
from pii_tracer.lake.formats.delta.table_features import FEATURE, KNOWN_FEATURES, KNOWN_TO_ALL, READER_VERSION
from pii_tracer.lake.formats.delta.transaction_log import DeltaSnapshot, LiveFile, read_log
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.inventory import GENERATED, IDENTITY, NOT_NULL, InventoryGap, TableState
from pii_tracer.lake.read_result import Found, gap
from pii_tracer.lake.spark_types import padded_columns, spark_columns
from pii_tracer.lake.stores.any_place import Place
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.gap_kinds import GapKind

_NAMED = 3
"""So many strange files are named; the rest is a number."""
_SOURCE_PATH = re.compile(r"^(?:delta\.)?`?(?P<path>(?:file:)?/[^`]*)`?$")


def delta_state(location: Path, paths: EstatePaths) -> Found:
    """The table in a folder, with gaps for files outside it that no known table owns.

    Raises:
        EstateError: the log cannot be read.
    """
    snapshot = read_log(location)
    origin = _clone_of(snapshot)
    state = state_of(snapshot, str(location), paths.dataset_of(location), paths.table_at(location)).model_copy(
        update={
            "clone_of": str(origin) if origin else None,
            "outside": tuple(sorted(str(f.path) for f in snapshot.files if origin and _of_origin(f, origin, paths))),
        }
    )
    return Found(state, _gaps(state, snapshot, origin, paths))


def state_of(snapshot: DeltaSnapshot[Place], location: str, dataset: DatasetId, table: str | None) -> TableState:
    """What a table's log says of it, wherever it lies. table: its name in Spark SQL."""
    config = snapshot.configuration
    return TableState(
        dataset=dataset,
        table=table,
        location=location,
        format=DELTA,
        snapshot=str(snapshot.version),
        columns=spark_columns(snapshot.schema),
        partition_columns=snapshot.partition_columns,
        format_version=snapshot.reader_version,
        deletion_vectors=config.get("delta.enableDeletionVectors", "").lower() == "true"
        or any(f.deletion_vector for f in snapshot.files),
        change_data_feed=config.get("delta.enableChangeDataFeed", "").lower() == "true",
        codec=_codec(snapshot.files),
        rows=_row_count(snapshot.files),
        files=len(snapshot.files),
        bytes=sum(f.size for f in snapshot.files),
        versions=snapshot.version - snapshot.earliest + 1,
        properties=dict(sorted({**config, **_features(snapshot)}.items())),
        fixed=_fixed(snapshot.schema),
        defaults=tuple(_defaults(snapshot.schema)),
        padded=padded_columns(snapshot.schema),
    )


_SET_BY_THE_TABLE = {
    "delta.generationExpression": GENERATED,
    "delta.identity.start": IDENTITY,
    "delta.invariants": "under an invariant",
}
"""Keys of a field's metadata (PROTOCOL.md, "Generated Columns", "Identity Columns", "Column Invariants")."""


def _fixed(schema: dict[str, Any]) -> dict[str, str]:
    """Columns that no statement can make NULL."""
    fixed = {}
    for field in schema["fields"]:
        told = [why for key, why in _SET_BY_THE_TABLE.items() if key in (field.get("metadata") or {})]
        if told or field.get("nullable") is False:
            fixed[str(field["name"])] = told[0] if told else NOT_NULL
    return fixed


_DEFAULTS = ("CURRENT_DEFAULT", "EXISTS_DEFAULT")
"""Keys of a field's metadata: SQL of what new rows get (PROTOCOL.md, "Default Columns"), and, for Spark, of what
rows from before the column have.
"""


def _defaults(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for field in schema["fields"]:
        told = field.get("metadata") or {}
        yield from dict.fromkeys((str(field["name"]), str(told[key])) for key in _DEFAULTS if key in told)


_TELLING = frozenset({"catalogManaged", "catalogOwned-preview", "clustering"})


def _features(snapshot: DeltaSnapshot[Place]) -> dict[str, str]:
    """Features that decide whether and how a table is treated, spelled as DDL spells them."""
    told = {name for name in snapshot.features if name in _TELLING or name not in KNOWN_TO_ALL}
    return {f"{FEATURE}{name}": "supported" for name in told}


def _row_count(files: Sequence[LiveFile[Place]]) -> int | None:
    if any(f.rows is None for f in files):
        return None
    return sum((f.rows or 0) - f.deleted_rows for f in files)


def _codec(files: Sequence[LiveFile[Place]]) -> str | None:
    """Spark writes the codec into the name: `part-….snappy.parquet`."""
    codecs = {f.path.suffixes[-2][1:] for f in files if len(f.path.suffixes) > 1}
    return codecs.pop() if len(codecs) == 1 else None


def _clone_of(snapshot: DeltaSnapshot[Path]) -> Path | None:
    """The table whose files this one reads; else the one its log says it was cloned from, while that exists.

    A clone that has rewritten every file still holds its source's history, so the log's word counts too.
    """
    for file in snapshot.files:
        if file.external:
            for parent in file.path.resolve().parents:
                if (parent / LOG).is_dir():
                    return parent
    match = _SOURCE_PATH.match(snapshot.cloned_from or "")
    if match:
        source = local_path(match["path"]).resolve()
        if (source / LOG).is_dir():
            return source
    return None


def _of_origin(file: LiveFile[Path], origin: Path, paths: EstatePaths) -> bool:
    return file.external and file.path.resolve().is_relative_to(origin) and paths.inside(file.path)


def _gaps(
    state: TableState, snapshot: DeltaSnapshot[Path], origin: Path | None, paths: EstatePaths
) -> tuple[InventoryGap, ...]:
    found = []
    stray = [f for f in snapshot.files if f.external and not (origin and _of_origin(f, origin, paths))]
    if stray:
        reason = f"{counted(len(stray), 'data file')} outside the table's folder, in no table of this estate"
        found.append(gap(state.dataset, GapKind.EXTERNAL_FILES, reason, str(stray[0].path), [f.path for f in stray]))
    found += unknown_version(state, snapshot)
    missing = [f for f in snapshot.files if not f.path.exists()]
    if missing:
        reason = (
            f"{counted(len(missing), 'data file')} referenced by the log cannot be found, so the table cannot be read"
        )
        found.append(gap(state.dataset, GapKind.MISSING_FILES, reason, str(missing[0].path), [f.path for f in missing]))
    strange = strangers(Path(state.location), snapshot)
    if strange:
        reason = (
            f"the table's folder has {counted(len(strange), 'file')} in no version of its log, with names that Delta "
            "does not use. Such files may belong to somebody, or remain from an old version or a failed write. The "
            "sweep of the folder, like VACUUM, removes them. Move files that somebody needs out of the folder, then "
            "plan again. If nobody needs these files, waive this gap"
        )
        found.append(gap(state.dataset, GapKind.STRANGE_FILES, reason, ", ".join(map(str, strange[:_NAMED])), strange))
    return tuple(found)


def unknown_version(state: TableState, snapshot: DeltaSnapshot[Place]) -> list[InventoryGap]:
    """The gap for a protocol that is newer than what is known here."""
    unknown = sorted(snapshot.features - KNOWN_FEATURES)
    if not unknown and snapshot.reader_version <= READER_VERSION:
        return []
    what = f"unknown features: {', '.join(unknown)}" if unknown else "a newer reader version"
    reason = f"the table's protocol requires {what}, so its files may contain more data than was read"
    return [gap(state.dataset, GapKind.UNKNOWN_VERSION, reason, f"{state.location}, protocol of its log")]


def is_delta(folder: Path) -> bool:
    """Whether a folder is a Delta table: it has a `_delta_log`."""
    return (folder / LOG).is_dir()
