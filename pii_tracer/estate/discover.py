"""Walks an estate's roots and says what exists: every table, every folder with data, and what could not be read."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pii_tracer.config import Estate
from pii_tracer.errors import EstateError
from pii_tracer.estate.delta import delta_state, is_delta
from pii_tracer.estate.files import PARTITION, DataFile, data_file, folder_state
from pii_tracer.estate.found import Found, gap
from pii_tracer.estate.hudi import hudi_state, is_hudi
from pii_tracer.estate.iceberg import iceberg_state
from pii_tracer.estate.paths import EstatePaths, is_iceberg
from pii_tracer.estate.twins import shared_files, with_originals
from pii_tracer.inventory import Inventory, InventoryGap

Reader = Callable[[Path, EstatePaths], Found]
# folders of a table's metadata: no data files of the table lie in them
_METADATA = {"_delta_log", ".hoodie", "metadata"}


@dataclass
class _Walk:
    """What the walk met: tables by their marker, bare folders with their files, and gaps."""

    paths: EstatePaths
    tables: dict[Path, Reader] = field(default_factory=dict)
    folders: dict[Path, list[DataFile]] = field(default_factory=dict)
    gaps: list[InventoryGap] = field(default_factory=list)

    def visit(self, path: Path, owner: Path | None = None) -> None:
        """One folder: a table, or a folder that may hold data. `owner` is the bare folder it is a partition of."""
        reader = _marked(path)
        if reader:
            self.tables[path] = reader
            return
        try:
            entries = sorted(os.scandir(path), key=lambda e: e.name)
        except OSError as error:
            reason = f"the folder cannot be listed: {error.strerror}"
            self.gaps.append(gap(None, "unreadable", reason, str(path)))
            return
        partitioned = any(e.is_dir(follow_symlinks=False) and PARTITION.match(e.name) for e in entries)
        if owner is None and partitioned:
            owner = path
        for entry in entries:
            child = path / entry.name
            if entry.is_symlink() and (not self.paths.inside(child) or not child.exists()):
                reason = "a symbolic link leads outside the estate's roots, or nowhere"
                self.gaps.append(gap(None, "outside_link", reason, str(child)))
            elif entry.is_symlink() and entry.is_dir():
                continue  # what it leads to is met at its own place
            elif entry.is_dir():
                self._folder(child, entry.name, owner)
            else:
                self._file(child, entry.name, owner or path)

    def _folder(self, child: Path, name: str, owner: Path | None) -> None:
        if not name.startswith((".", "_")) or _marked(child):
            self.visit(child, owner if PARTITION.match(name) and child not in self.paths.declared else None)
        elif any(data_file(p) for p in sorted(child.rglob("*")) if p.is_file() and not p.is_symlink()):
            reason = "a hidden folder that belongs to no table holds data files; engines skip it"
            self.gaps.append(gap(None, "hidden_data", reason, str(child)))

    def _file(self, path: Path, name: str, owner: Path) -> None:
        if name.startswith((".", "_")):
            return
        try:
            found = data_file(path)
        except OSError as error:
            self.gaps.append(gap(None, "unreadable", f"the file cannot be read: {error.strerror}", str(path)))
            return
        if found:
            self.folders.setdefault(owner, []).append(found)
        elif path.stat().st_size:
            reason = "a file of no known format lies outside every table; whether it holds a person cannot be told"
            self.gaps.append(gap(None, "unknown_file", reason, str(path)))


def _marked(path: Path) -> Reader | None:
    if is_delta(path):
        return delta_state
    if is_hudi(path):
        return hudi_state
    if is_iceberg(path):
        return iceberg_state
    return None


def discover(estate: Estate, base: Path, progress: Callable[[str], None] | None = None) -> Inventory:
    """Everything that exists below the estate's roots and warehouses, sorted by location.

    base: folder of the estate file. progress: is told each location before it is read.
    What cannot be found or read becomes a gap (`missing_table`, `missing_root`, `unreadable`, …), never an omission.

    Raises:
        EstateError: the estate file names locations that are not local paths.
    """
    paths = EstatePaths(estate, base)
    walk = _Walk(paths)
    for root in paths.roots:
        if not root.is_dir():
            walk.gaps.append(gap(None, "missing_root", "a root of the estate does not exist", str(root)))
        elif not any(root != other and root.is_relative_to(other) for other in paths.roots):
            walk.visit(root)
    found = _read(walk, progress or (lambda _: None))
    states = with_originals([f.state for f in found], _files_of(found), paths.is_dev)
    gaps = [*walk.gaps, *(g for f in found for g in f.gaps), *shared_files(found), *_declared(paths, found, walk)]
    return Inventory(
        tables=tuple(sorted(states, key=lambda s: s.location)),
        gaps=tuple(sorted(gaps, key=lambda g: (str(g.dataset or ""), g.kind, g.evidence))),
    )


def _read(walk: _Walk, progress: Callable[[str], None]) -> list[Found]:
    found = []
    for location in sorted({*walk.tables, *walk.folders}):
        progress(f"reading {location}")
        try:
            if location in walk.tables:
                found.append(walk.tables[location](location, walk.paths))
            else:
                found.append(folder_state(location, tuple(walk.folders[location]), walk.paths))
        except EstateError as error:
            dataset = walk.paths.dataset_of(location)
            walk.gaps.append(gap(dataset, "unreadable", error.what, error.where or str(location)))
    return found


def _files_of(found: list[Found]) -> dict[str, tuple[DataFile, ...]]:
    """Data files that lie in each location, current or not, without those of tables nested in it."""
    locations = {Path(f.state.location) for f in found}
    result: dict[str, tuple[DataFile, ...]] = {}
    for location in locations:
        files: list[DataFile] = []
        for current, folders, names in os.walk(location):
            here = Path(current)
            folders[:] = [n for n in folders if n not in _METADATA and here / n not in locations]
            plain = (here / n for n in names if not n.startswith("."))
            files.extend(f for p in plain if p.is_file() and not p.is_symlink() and (f := data_file(p)))
        result[str(location)] = tuple(sorted(files, key=lambda f: str(f.path)))
    return result


def _declared(paths: EstatePaths, found: list[Found], walk: _Walk) -> list[InventoryGap]:
    """Declared tables that are missing, lie outside the roots, or have another format than declared."""
    states = {Path(f.state.location): f.state for f in found}
    gaps = []
    for location, table in paths.declared.items():
        if not paths.inside(location):
            reason = f"the declared table {table.name} lies outside the estate's roots and was not read"
            gaps.append(gap(None, "outside_roots", reason, str(location)))
            continue
        dataset = paths.dataset_of(location)
        state = states.get(location)
        if state is None and not (location in walk.tables or location in walk.folders):
            reason = f"the declared table {table.name} does not exist"
            gaps.append(gap(dataset, "missing_table", reason, str(location)))
        elif state is not None and state.format is not table.format:
            reason = f"{table.name} is declared as {table.format} and holds {state.format}"
            gaps.append(gap(dataset, "format_mismatch", reason, str(location)))
    return gaps
