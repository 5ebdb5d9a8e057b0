"""Tables that no executor may touch, and why: said in the plan, not found out in the middle of a run."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path

from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.hudi.properties import HUDI_BOOTSTRAPPED, HUDI_WRITABLE
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.lake.formats.iceberg.properties import ICEBERG_DATA_PATHS
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.inventory import NessieTable, RefKind, TableState
from pii_tracer.model.column_paths import struct_fields
from pii_tracer.model.errors import EstateError
from pii_tracer.model.identities import (
    PLAIN,
    Access,
    FieldAccess,
    Format,
)
from pii_tracer.model.locations import S3Location, location_of

CATALOG_MANAGED = ("delta.feature.catalogManaged", "delta.feature.catalogOwned-preview")
_APPEND_ONLY = "delta.appendOnly"
_HUDI_CDC = "hoodie.table.cdc.enabled"
_UNIFORM = "delta.universalFormat.enabledFormats"
_TYPED = frozenset({Format.PARQUET, Format.ORC, Format.AVRO})
"""Formats of bare folders in which a value has a type, by which Arrow compares it and not Spark."""

_TIMES = ("timestamp", "time32", "time64", "duration")
"""How the types begin that have more than one text for a value."""

_BY_PLACE = re.compile(r"_c\d+$", re.IGNORECASE)
_NO_HEADER = "a file's first line is no list of names: one of them is empty, there twice, or has other signs in it"
"""Discovery calls the columns of such a file `_c0`, `_c1`, …"""


def unsupported(state: TableState, keys: Collection[str] = ()) -> str | None:
    """Why a table cannot be erased by any step, with what its owner can do about it; None where one can.

    keys: the columns with a key of the persons.

    https://docs.delta.io/latest/delta-uniform.html, https://docs.delta.io/latest/table-properties.html,
    https://github.com/delta-io/delta/blob/master/PROTOCOL.md, section "Catalog-managed tables", and for Hudi
    https://hudi.apache.org/docs/timeline: a commit's metadata names its partitions, and no procedure rewrites it.
    """
    if state.nessie is not None:
        return _nessie(state, state.nessie)
    if state.format is HUDI:
        return _of_old_hudi(state) or _logs_changes(state) or _bootstrapped(state) or _partitioned_by(state, keys)
    if state.format is ICEBERG:
        return _writes_elsewhere(state)
    if state.format in PLAIN:
        return _folders_named_by(state, keys)
    if state.format is not DELTA:
        return None
    if any(name in state.properties for name in CATALOG_MANAGED):
        return (
            "a catalog-managed Delta table: its catalog commits, and refuses VACUUM and REORG to others;"
            " its owner erases it there, or drops the feature"
        )
    if state.properties.get(_APPEND_ONLY, "").lower() == "true":
        return (
            f"a Delta table that refuses every DELETE ({_APPEND_ONLY} is true): its owner sets it to false until the"
            " erasure is over, then plan again"
        )
    formats = state.properties.get(_UNIFORM)
    if formats:
        return (
            f"a Delta table that is written as {formats} as well (UniForm): the other format's metadata keeps bounds"
            f" and file names, and only its own engine writes it; its owner unsets {_UNIFORM} and removes that metadata"
        )
    return None


def astray(state: TableState, ways: Iterable[tuple[str, tuple[Access, ...]]]) -> str | None:
    """Why a key does not stand where lineage says, as the table's schema shows; None where it may.

    ways: columns with a key of the persons, and the ways into these. A job that writes structs by position, or an event
    that leaves out a struct's field, tells of another shape than the table has; a column may have been renamed or
    dropped since. By a column that is not there no executor can find a row.
    """
    kinds = {column.name.lower(): column.type for column in state.columns}
    for column, access in ways:
        kind = kinds.get(column.lower(), "")
        if kinds and column.lower() not in kinds:
            return f"lineage says that {column} is a key, and {_lacking(state)}"
        if state.format is Format.CSV and _BY_PLACE.match(column):
            return (
                f"by its place the column {column} is a key, and {_NO_HEADER}: no step can tell the first line from a"
                " row; its job writes a header, then plan again"
            )
        if column.lower() in {name.lower() for name in state.uneven}:
            return (
                f"lineage says that {column} is a key, and not every file of the folder has this column: whose the"
                " rows of the others are cannot be told; write these files again with it"
            )
        if column.lower() in {name.lower() for name in state.padded}:
            return (
                f"lineage says that {column} is a key, and it is of type CHAR: blanks are added to its values, and no"
                " step compares such ones; its owner makes it STRING, then plan again"
            )
        if access and column.lower() in {name.lower() for name in state.mixed}:
            return (
                f"lineage says that {column} has a key in it, and there one line has an object or a list where another"
                " has something else: no reader finds the key in both; its job writes the lines alike, then plan again"
            )
        for step in access if kind else ():
            if not isinstance(step, FieldAccess):
                break  # a text with JSON, whose members no schema tells
            fields = {name.lower(): inner for name, inner in struct_fields(kind) or ()}
            if step.name.lower() not in fields:
                return f"lineage says that {column} has a key in its field {step.name}, and the table has no such field"
            kind = fields[step.name.lower()]
        else:
            if kind and struct_fields(kind) is not None:
                return (
                    f"lineage says that {column} is a key, and it is a struct there: which field holds it is not told"
                )
            if state.format in _TYPED and kind.startswith(_TIMES):
                return (
                    f"lineage says that {column} is a key, and it is of type {kind}, whose values no step compares;"
                    " its job writes the key as text or a number, then plan again"
                )
    return None


def _lacking(state: TableState) -> str:
    if state.format in PLAIN:
        why = f": another delimiter than a comma, or no header ({_NO_HEADER})" if state.format is Format.CSV else ""
        return f"the files have no such column{why}"
    return (
        "the table has no such column: renamed or dropped since; add the statement (ALTER TABLE … RENAME COLUMN) to the"
        " lineage's SQL, or harvest the newest statement of the job that writes it, then plan again"
    )


def _of_old_hudi(state: TableState) -> str | None:
    """https://hudi.apache.org/docs/deployment#upgrading"""
    if state.format_version is None or state.format_version in HUDI_WRITABLE:
        return None
    return (
        f"a Hudi table of version {state.format_version}, which Hudi 1.2 does not write as it is, and which its older"
        " readers and writers cannot use once it is raised; its owner raises it (`CALL upgrade_table`), then plan again"
    )


def _logs_changes(state: TableState) -> str | None:
    """https://hudi.apache.org/docs/sql_queries, "Change Data Capture": a write puts the rows as they were beside it."""
    if state.properties.get(_HUDI_CDC, "").lower() != "true":
        return None
    return (
        f"a Hudi table that logs its changes ({_HUDI_CDC} is true): the log of a DELETE holds the rows that it takes"
        " out, and no step removes such logs; its owner switches it off and writes the table again, then plan again"
    )


def _writes_elsewhere(state: TableState) -> str | None:
    """https://iceberg.apache.org/docs/latest/configuration/#write-properties; older names are longer."""
    for name in ICEBERG_DATA_PATHS:
        told = state.properties.get(name)
        if told and not _is_inside(told, state.location):
            return (
                f"an Iceberg table whose data files go to a folder of their own ({name}): no step clears that folder,"
                " and it is not searched with the table; its owner unsets the property and has the files written again"
                " in the table's folder (rewrite_data_files, expire_snapshots), then plan again"
            )
    return None


def _is_inside(text: str, location: str) -> bool:
    try:
        place, folder = location_of(text), location_of(location)
    except EstateError:
        return False
    if isinstance(folder, S3Location):
        return isinstance(place, S3Location) and folder.holds(place)
    return isinstance(place, Path) and place.is_relative_to(folder)


def _bootstrapped(state: TableState) -> str | None:
    """https://hudi.apache.org/docs/migration_guide, "Bootstrap with metadata only"."""
    if HUDI_BOOTSTRAPPED not in state.properties:
        return None
    return (
        "a Hudi table that was bootstrapped: it may read rows by their position in the files that it was made of"
        f" ({state.properties[HUDI_BOOTSTRAPPED]}), and gives others' rows wrong keys once one is taken out there;"
        " its owner writes it anew as a table that has all of its rows itself, then plan again"
    )


def _partitioned_by(state: TableState, keys: Collection[str]) -> str | None:
    fields = {name.partition(":")[0].lower() for name in state.partition_columns}  # `uid:simple`: with its generator
    named = sorted(fields.intersection(name.lower() for name in keys))
    if not named:
        return None
    return (
        f"a Hudi table that is partitioned by a key of the person ({', '.join(named)}): its timeline goes on naming the"
        " partition, and no procedure rewrites that; its owner writes the table again under other partitions"
    )


def _folders_named_by(state: TableState, keys: Collection[str]) -> str | None:
    named = sorted({name.lower() for name in state.partition_columns} & {name.lower() for name in keys})
    if not named:
        return None
    return (
        f"a bare folder that is partitioned by a key of the person ({', '.join(named)}): no file tells whose its rows"
        " are, and no step changes the names of folders; its owner removes the persons' folders, or writes the rows"
        " again with the key in the files"
    )


def _nessie(state: TableState, place: NessieTable) -> str | None:
    """A table is erased on every reference of its Nessie catalog, or on none."""
    if place.kind is RefKind.NESSIE_TAG:
        return f"only tags of its Nessie catalog have it, first {place.ref}: make a branch of one, then plan again"
    own = [ref.name for ref in state.refs if ref.kind in (RefKind.BRANCH, RefKind.TAG)]
    if own:
        return f"it has branches or tags of Iceberg's own below those of Nessie, first {own[0]}: drop them"
    unnamed = [ref.name for ref in state.refs if ref.table is None]
    if unnamed or state.table is None:
        return (
            f"{len(unnamed) or 1} references of its Nessie catalog have no name that SQL can write"
            f" (a dot, `@` or `#`), first {unnamed[0] if unnamed else 'the default branch'}: rename or delete them"
        )
    if state.sharing or state.outside:
        return "it shares data files with another table, and Nessie's references would have to be asked for both"
    return None
