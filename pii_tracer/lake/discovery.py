"""Walks an estate's roots and says what exists: every table, every folder with data, and what could not be read."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.careful_reading import Readings
from pii_tracer.lake.catalog_only_partitions import PartitionedTable
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.duplicate_folders import with_originals
from pii_tracer.lake.formats.plain_files.data_file import DataFile, data_file, text_file
from pii_tracer.lake.formats.plain_files.table_state import folder_state
from pii_tracer.lake.formats.registry import metadata_folders
from pii_tracer.lake.inventory import Inventory, InventoryGap, TableState
from pii_tracer.lake.read_result import Found, gap, in_order
from pii_tracer.lake.stores.hdfs.discovery import discover_hdfs
from pii_tracer.lake.stores.object_places.discovery import discover_object_places
from pii_tracer.lake.stores.s3.table_places import (
    NO_SETTINGS,
    NOT_ASKED,
    gap_of,
    places_of,
)
from pii_tracer.lake.streaming_checkpoints import checkpoint_state
from pii_tracer.lake.table_folder_walk import Walk
from pii_tracer.lake.tables_sharing_files import with_sharing
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.hive_text.layout import TEXT_AROUND, FileText, text_of
from pii_tracer.model.locations import below, is_remote


def discover(estate: Estate, base: Path, progress: Callable[[str], None] | None = None) -> Inventory:
    """Everything that exists below the estate's roots and warehouses, sorted by location.

    base: folder of the estate file. progress: is told each location before it is read.
    What cannot be found or read becomes a gap (`missing_table`, `missing_root`, `unreadable`, …), never an omission.
    Places in S3 are named and not asked; those in HDFS and in `object_stores` are listed.

    Raises:
        EstateError: the estate file names locations that are not local paths.
    """
    paths = EstatePaths(estate, base)
    walk = Walk(paths)
    for root in paths.roots:
        if not root.is_dir():
            walk.gaps.append(gap(None, GapKind.MISSING_ROOT, "a root of the estate does not exist", str(root)))
        elif not any(root != other and root.is_relative_to(other) for other in paths.roots):
            walk.visit(root)
    walk.finish()
    found = with_sharing(_read(walk, progress or (lambda _: None)))
    states = with_originals([f.state for f in found], _files_of(found), paths.is_dev)
    gaps = [*walk.gaps, *(g for f in found for g in f.gaps), *_declared(paths, found, walk)]
    gaps += [*paths.registry.gaps, *paths.beyond, *_registered(paths, found, walk), *_around_tables(walk)]
    gaps += _histories(paths, states)
    remote = places_of(paths.remote, NO_SETTINGS if estate.s3 is None else NOT_ASKED)
    gaps += map(gap_of, remote)
    hdfs, unerased = discover_hdfs(estate, paths.registry)
    gaps += unerased
    object_places, unerased = discover_object_places(estate, paths.registry, paths.texts)
    gaps += unerased
    return Inventory(
        tables=tuple(sorted(states, key=lambda s: s.location)),
        remote=remote,
        hdfs=hdfs,
        object_places=object_places,
        partitioned=tuple(_in_lineage(paths, one) for one in paths.registry.partitioned),
        gaps=in_order(gaps),
        texts=paths.texts,
    )


def _in_lineage(paths: EstatePaths, table: PartitionedTable) -> PartitionedTable:
    """A table with what lineage calls its folder, if that is one of this machine."""
    if table.dataset is not None or is_remote(table.location) or not Path(table.location).is_absolute():
        return table
    try:
        return table.model_copy(update={"dataset": paths.dataset_of(Path(table.location))})
    except EstateError:  # it lies outside of the estate
        return table


def _around_tables(walk: Walk) -> list[InventoryGap]:
    """Folders with data files of their own around a table: what is one dataset there, nobody can tell."""
    tables = sorted(str(place) for place, reader in walk.tables.items() if reader is not checkpoint_state)
    return [
        gap(
            walk.paths.dataset_of(folder),
            GapKind.FOLDER_AROUND_TABLES,
            "a folder contains data files in addition to tables: a rewrite of these files could break the tables. "
            "Move the files into a separate folder",
            str(folder),
        )
        for folder in sorted(walk.folders)
        if below(str(folder), tables)
    ]


def _histories(paths: EstatePaths, states: Sequence[TableState]) -> list[InventoryGap]:
    """Tables under `keep_history` that are none whose history stays: their snapshots would be expired after all."""
    kept = {state.table for state in states if state.kept_history is not None}
    reason = (
        "`keep_history` names this table, but no table on this machine with a history that can be kept has this "
        "name. Correct the name, or remove it from `keep_history`. (Snapshots of tables in stores always expire.)"
    )
    return [gap(None, GapKind.KEEP_HISTORY, reason, name) for name in paths.kept_histories if name not in kept]


def _read(walk: Walk, progress: Callable[[str], None]) -> list[Found]:
    found: list[Found] = []
    readings = Readings()
    places = sorted({*walk.tables, *walk.folders})
    for number, location in enumerate(places, 1):
        progress(f"reading place {number:,} of {len(places):,}")  # a folder's name can be a person's key
        found += readings.of(walk.paths.dataset_of(location), str(location), partial(_look, walk, location), ())
    walk.gaps += readings.gaps
    return found


def _look(walk: Walk, location: Path) -> list[Found]:
    if location in walk.tables:
        found = walk.tables[location](location, walk.paths)
    else:
        found = folder_state(location, tuple(walk.folders[location]), walk.paths)
    around = None if text_of(found.state.properties) else walk.paths.searched_text(location)
    if around is None:
        return [found]
    properties = {**found.state.properties, TEXT_AROUND: around.model_dump_json()}
    return [replace(found, state=found.state.model_copy(update={"properties": properties}))]


def _files_of(found: Sequence[Found]) -> dict[str, tuple[DataFile, ...]]:
    """Data files that lie in each location, current or not, without those of tables nested in it.

    A file that cannot be read is left out here: the scan of its folder says that it was not read.
    """
    locations = {Path(f.state.location): text_of(f.state.properties) for f in found}
    result: dict[str, tuple[DataFile, ...]] = {}
    for location, table in locations.items():
        files: list[DataFile] = []
        for current, folders, names in os.walk(location):
            here = Path(current)
            folders[:] = [n for n in folders if n not in metadata_folders() and here / n not in locations]
            plain = (here / n for n in names if not n.startswith("."))
            text = table.of(here.relative_to(location)) if table else None
            files.extend(f for p in plain if p.is_file() and not p.is_symlink() and (f := _readable(p, text)))
        result[str(location)] = tuple(sorted(files, key=lambda f: str(f.path)))
    return result


def _readable(path: Path, text: FileText | None) -> DataFile | None:
    try:
        with path.open("rb"):
            return data_file(path) if text is None else text_file(path, text)
    except (OSError, EstateError):
        return None


def _declared(paths: EstatePaths, found: Sequence[Found], walk: Walk) -> list[InventoryGap]:
    """Declared tables that are missing, lie outside the roots, or have another format than declared."""
    states = {Path(f.state.location): f.state for f in found}
    gaps = []
    for location, table in paths.declared.items():
        if not paths.inside(location):
            reason = f"the declared table {table.name} is outside of the estate's roots, and was not read"
            gaps.append(gap(None, GapKind.OUTSIDE_ROOTS, reason, str(location)))
            continue
        dataset = paths.dataset_of(location)
        state = states.get(location)
        if state is None and not (location in walk.tables or location in walk.folders):
            reason = f"the declared table {table.name} does not exist"
            gaps.append(gap(dataset, GapKind.MISSING_TABLE, reason, str(location)))
        elif state is not None and state.format is not table.format:
            reason = f"{table.name} is declared as {table.format}, but contains {state.format}"
            gaps.append(gap(dataset, GapKind.FORMAT_MISMATCH, reason, str(location)))
    return gaps


def _registered(paths: EstatePaths, found: Sequence[Found], walk: Walk) -> list[InventoryGap]:
    """Tables of catalogs that are missing or have another format; Iceberg tables that more than one catalog names."""
    states = {Path(f.state.location): f.state for f in found}
    gaps = []
    for location, table in sorted(paths.registry.tables.items()):
        title, dataset = ", ".join(table.names) or str(location), paths.dataset_of(location)
        state = states.get(location)
        if state is None and not (location in walk.tables or location in walk.folders):
            reason = f"the registered table {title} does not exist"
            gaps.append(gap(dataset, GapKind.MISSING_TABLE, reason, str(location)))
        elif state is not None and state.format is not table.format:
            reason = f"{title} is registered as {table.format}, but contains {state.format}"
            gaps.append(gap(dataset, GapKind.FORMAT_MISMATCH, reason, str(location)))
        elif table.metadata and (location in paths.declared or paths.hadoop_name(location)):
            other = paths.declared[location].name if location in paths.declared else paths.hadoop_name(location)
            reason = f"{title} is also known as {other}: an erasure under one name breaks the table under the other"
            gaps.append(
                gap(dataset, GapKind.REGISTERED_TWICE, reason + "; drop all registrations except one", str(location))
            )
    return gaps
