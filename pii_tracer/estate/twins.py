"""Copies that no lineage knows: folders that hold the same bytes, and tables that share files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pii_tracer.estate.files import DataFile, file_sha256
from pii_tracer.estate.found import Found, gap
from pii_tracer.inventory import InventoryGap, TableState
from pii_tracer.model import Format


def with_originals(
    states: Sequence[TableState], files: dict[str, tuple[DataFile, ...]], is_dev: Callable[[str], bool]
) -> tuple[TableState, ...]:
    """States with `same_files_as` set on copies: one byte-identical data file in another place is enough.

    files: the data files that lie in each location, current or not. The original is the place outside the
    development roots, then the registered table, then the older one. Files without rows prove nothing and are left out.
    """
    rank = {s.location: _rank(s, files.get(s.location, ()), is_dev) for s in states}
    original: dict[str, str] = {}
    for places in _twins(files):
        first = min(places, key=lambda place: rank[place])
        for place in places - {first}:
            known = original.get(place)
            original[place] = first if known is None else min(known, first, key=lambda p: rank[p])
    return tuple(
        s.model_copy(update={"same_files_as": original[s.location]}) if s.location in original else s for s in states
    )


def _rank(state: TableState, files: Sequence[DataFile], is_dev: Callable[[str], bool]) -> tuple[bool, bool, int, str]:
    oldest = min((f.path.stat().st_mtime_ns for f in files), default=0)
    return is_dev(state.location), state.table is None, oldest, state.location


def _twins(files: dict[str, tuple[DataFile, ...]]) -> list[set[str]]:
    """Sets of locations that hold one and the same content; hashed only where sizes meet."""
    by_size: dict[int, list[tuple[str, DataFile]]] = {}
    for location in sorted(files):
        for file in files[location]:
            by_size.setdefault(file.path.stat().st_size, []).append((location, file))
    found: dict[str, set[str]] = {}
    for same in by_size.values():
        if len({location for location, _ in same}) < 2:
            continue
        for location, file in same:
            if _has_rows(file):
                found.setdefault(file_sha256(file.path), set()).add(location)
    return [places for places in found.values() if len(places) > 1]


def _has_rows(file: DataFile) -> bool:
    if file.format is Format.PARQUET:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return bool(pq.read_metadata(file.path).num_rows)
        except (OSError, pa.ArrowException):
            return True  # damaged, and still a copy of the same damage
    return file.path.stat().st_size > 0


def shared_files(found: Sequence[Found]) -> tuple[InventoryGap, ...]:
    """A gap for every Iceberg table whose files another one names too: expiring one destroys the other (I7)."""
    owners: dict[Path, list[TableState]] = {}
    for item in found:
        for path in item.references:
            owners.setdefault(path.resolve(), []).append(item.state)
    shared: dict[str, tuple[TableState, set[str], Path]] = {}
    for path in sorted(p for p, states in owners.items() if len(states) > 1):
        for state in owners[path]:
            others = {s.location for s in owners[path]} - {state.location}
            known = shared.setdefault(state.location, (state, set(), path))
            known[1].update(others)
    return tuple(
        gap(
            state.dataset,
            "shared_files",
            f"files of this table belong to other tables as well: {', '.join(sorted(others))}",
            str(path),
        )
        for _, (state, others, path) in sorted(shared.items())
    )
