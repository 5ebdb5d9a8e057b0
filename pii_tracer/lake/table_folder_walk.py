"""The walk over an estate's folders: tables by their marker, bare folders with their files, and what cannot be told."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pii_tracer.common.atomic_files import all_below
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.plain_files.data_file import PARTITION, DataFile, data_file, text_file
from pii_tracer.lake.formats.plain_files.rewritten_files import is_hidden_folder
from pii_tracer.lake.formats.registry import format_of, metadata_folders, table_formats
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.lake.read_result import Found, gap
from pii_tracer.lake.streaming_checkpoints import checkpoint_state, is_checkpoint
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind

Reader = Callable[[Path, EstatePaths], Found]


@dataclass
class Walk:
    """What the walk met. One object that refuses to be read is a gap; the walk goes on beside it."""

    paths: EstatePaths
    tables: dict[Path, Reader] = field(default_factory=dict)
    folders: dict[Path, list[DataFile]] = field(default_factory=dict)
    gaps: list[InventoryGap] = field(default_factory=list)
    hidden: list[Path] = field(default_factory=list)

    def finish(self) -> None:
        """After the last visit: hidden files and folders that no table's or folder's scan will reach."""
        places = {*self.tables, *self.folders}
        for path in self.hidden:
            if not places.intersection(path.parents):
                reason = (
                    "a hidden folder or file outside of every table; engines skip it, and the tool does not read it"
                )
                self._gap(GapKind.HIDDEN_DATA, reason, path)

    def visit(self, path: Path, owner: Path | None = None) -> None:
        """One folder: a table, or a folder that may hold data. `owner` is the bare folder it is a partition of."""
        try:
            if view := _view_at(path):
                self._view(path, view)
                return
            reader = self._reader(path)
            entries = [] if reader else sorted(os.scandir(path), key=lambda e: e.name)
        except OSError as error:
            self._gap(
                GapKind.UNREADABLE, f"the folder cannot be listed: {error.strerror or type(error).__name__}", path
            )
            return
        except Exception as error:  # a format's adapter looked at it
            self._gap(GapKind.UNREADABLE, f"its kind cannot be read: {type(error).__name__}", path)
            return
        if reader:
            self.tables[path] = reader
            self._inside_a_table(path)
            return
        partitioned = any(e.is_dir(follow_symlinks=False) and PARTITION.match(e.name) for e in entries)
        if owner is None and partitioned:
            owner = path
        for entry in entries:
            try:
                self._entry(path / entry.name, entry, owner or path, owner)
            except OSError as error:
                self._gap(
                    GapKind.UNREADABLE,
                    f"it cannot be read: {error.strerror or type(error).__name__}",
                    path / entry.name,
                )

    def _view(self, path: Path, called: str) -> None:
        """A view has a folder and metadata like a table, and no rows; the text of its query may name a person."""
        for file in (p for p in self._below(path) if p.is_file()):
            reason = f"the metadata of {called} cannot be read, and may name a person"
            self._gap(GapKind.UNKNOWN_FILE, reason, file)

    def _entry(self, child: Path, entry: os.DirEntry[str], folder: Path, owner: Path | None) -> None:
        if not _writable(entry.name):
            reason = "its name is not valid UTF-8, so a plan cannot contain its name: rename it"
            self._gap(GapKind.UNREADABLE, reason, child)
        elif entry.is_symlink() and (not self.paths.inside(child) or not child.exists()):
            reason = "a symbolic link has a target outside of the estate's roots, or no target"
            self._gap(GapKind.OUTSIDE_LINK, reason, child)
        elif entry.is_symlink() and entry.is_dir():
            return  # what it leads to is met at its own place
        elif entry.is_dir():
            self._folder(child, entry.name, owner)
        elif entry.is_file():
            self._file(child, entry.name, folder)
        else:
            self._gap(GapKind.UNREADABLE, "neither a file nor a folder", child)

    def _reader(self, path: Path) -> Reader | None:
        """By the folder's markers; a table whose metadata lies elsewhere is known by its catalog alone."""
        found = _markers(path)
        if len(found) > 1:
            reason = (
                "the folder is a table of more than one format: an erasure in one format breaks the other, or leaves "
                "its data"
            )
            self._gap(GapKind.TWO_FORMATS, reason, path)
        registered = self.paths.registered_at(path)
        if not found and registered and registered.metadata:
            return format_of(registered.format).read_state
        return found[0] if found else None

    def _inside_a_table(self, table: Path) -> None:
        """Tables inside a table's folder: a sweep of the outer one would take the inner one's files for orphans."""
        for folder in _folders(table):
            if folder != table and (inner := _markers(folder)):
                if inner == [checkpoint_state] and any(part[0] in "_." for part in folder.relative_to(table).parts):
                    self.tables[folder] = checkpoint_state  # sweeps of every format pass over hidden folders
                    continue
                reason = (
                    "a table is inside the folder of a different table, whose sweep would remove its files: move the "
                    "inner table"
                )
                self._gap(GapKind.NESTED_TABLE, reason, folder)

    def _folder(self, child: Path, name: str, owner: Path | None) -> None:
        hidden = is_hidden_folder(name) and not _markers(child)
        if not hidden or any(is_checkpoint(p) for p in child.iterdir()):
            self.visit(child, owner if PARTITION.match(name) and child not in self.paths.declared else None)
            return
        files = self._below(child)
        if any(data_file(p) for p in files if p.is_file() and not p.is_symlink()):
            reason = "a hidden folder that belongs to no table contains data files; engines skip it"
            self._gap(GapKind.HIDDEN_DATA, reason, child)
        elif any(_holds(p) for p in files):
            self.hidden.append(child)

    def _below(self, path: Path) -> list[Path]:
        """Files at any depth; each folder that may not be listed is a gap."""

        def refuse(error: OSError) -> None:
            self._gap(
                GapKind.UNREADABLE,
                f"the folder cannot be listed: {error.strerror or type(error).__name__}",
                Path(str(error.filename)),
            )

        return all_below(path, refuse)

    def _file(self, path: Path, name: str, owner: Path) -> None:
        if name.startswith((".", "_")):
            if _holds(path):
                self.hidden.append(path)
            return
        try:
            text = self.paths.text_of(path)
            found = data_file(path) if text is None else text_file(path, text) if path.stat().st_size else None
        except EstateError as error:
            self._gap(GapKind.UNREADABLE, error.what, path)
            return
        except OSError as error:
            self._gap(GapKind.UNREADABLE, f"the file cannot be read: {error.strerror or type(error).__name__}", path)
            return
        if found and (table := self.paths.opaque_at(path)):
            reason = f"a file of {table}, which the tool cannot read as a plain file, and which may contain a person"
            self._gap(GapKind.UNKNOWN_FILE, reason, path)
        elif found:
            self.folders.setdefault(owner, []).append(found)
        elif path.stat().st_size:
            reason = "a file of an unknown format is outside of every table, and may contain a person"
            self._gap(GapKind.UNKNOWN_FILE, reason, path)

    def _gap(self, kind: GapKind, reason: str, path: Path) -> None:
        self.gaps.append(gap(None, kind, reason, os.fsencode(path).decode("utf-8", "backslashreplace")))


def _markers(path: Path) -> list[Reader]:
    """How a folder is to be read, by the metadata in it. Metadata of UniForm stands beside that of Delta."""
    found: list[Reader] = [one.read_state for one in table_formats() if one.is_table(path)]
    if is_checkpoint(path):
        found.append(checkpoint_state)
    return found


def _view_at(path: Path) -> str | None:
    """What the view in a folder is called, of whatever format; None where there is none."""
    return next((view for one in table_formats() if (view := one.view_at(path))), None)


def _holds(path: Path) -> bool:
    """Whether a hidden file can hold anything of anybody: markers of engines and checksums beside files cannot."""
    marker = path.name == "_SUCCESS" or path.suffix == ".crc"
    return not marker and path.is_file() and not path.is_symlink() and path.stat().st_size > 0


def _folders(table: Path) -> Iterator[Path]:
    for current, folders, _ in os.walk(table):
        folders[:] = sorted(name for name in folders if name not in metadata_folders())
        yield Path(current)


def _writable(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
