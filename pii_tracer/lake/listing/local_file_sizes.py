"""Tables and bare folders of this machine with the sizes of their files, from listings of folders.

The places are those of `pii_tracer.lake.discovery`, found by the same marks. Memory grows with the depth and the number
of folders that wait, and not with the number of files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.plain_files.data_file import PARTITION
from pii_tracer.lake.formats.plain_files.rewritten_files import is_hidden_folder
from pii_tracer.lake.formats.registry import format_of, table_formats
from pii_tracer.lake.formats.retention_terms import MAIN
from pii_tracer.lake.inventory import Ref
from pii_tracer.lake.listing.listed_place import ListedFile, ListedPlace, NotListed, PlaceKind
from pii_tracer.lake.streaming_checkpoints import is_checkpoint
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import EstateError

Entry = os.DirEntry[str]


@dataclass(frozen=True)
class _Mark:
    """What a folder is by its marks. format: of a table; None of what is only searched."""

    format: Format | None


@dataclass
class LocalPlaces:
    """Lists the roots of an estate. not_listed: what could not be listed so far."""

    paths: EstatePaths
    not_listed: list[NotListed]
    _expected: set[Path] = field(init=False)
    _waiting: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._expected = {p.resolve() for p in (*self.paths.declared, *self.paths.registry.tables)}

    def __iter__(self) -> Iterator[ListedPlace]:
        roots = self.paths.roots
        self.not_listed += [
            NotListed(one.evidence, one.reason) for one in (*self.paths.registry.gaps, *self.paths.beyond)
        ]
        for root in roots:
            if not root.is_dir():
                self._miss(root, "a root of the estate does not exist, or cannot be reached")
            elif not any(root != other and root.is_relative_to(other) for other in roots):
                yield from self._below_root(root)
        for location in sorted(self._expected):
            why = "does not exist" if self.paths.inside(location) else "lies outside the estate's roots"
            self._miss(location, f"the table {self.paths.table_at(location) or location} {why}")

    def _below_root(self, root: Path) -> Iterator[ListedPlace]:
        self._waiting = [root]
        while self._waiting:
            folder = self._waiting.pop()
            try:
                mark = self._mark(folder)
            except OSError as error:
                self._refused(folder, error)
                continue
            except Exception as error:  # a format's adapter looked at it
                self._miss(folder, f"its kind is not known: {type(error).__name__}")
                continue
            place = self._bare(folder) if mark is None else self._marked(folder, mark)
            yield place
            for _ in place.files:  # whoever did not read them all: folders below are met on the way
                pass

    def _mark(self, folder: Path) -> _Mark | None:
        """What a folder is; None of one without marks. Raises OSError where it cannot be looked at."""
        found = [one.name for one in table_formats() if one.is_table(folder)]
        if found:
            return _Mark(found[0])
        if is_checkpoint(folder) or any(one.view_at(folder) for one in table_formats()):
            return _Mark(None)
        registered = self.paths.registered_at(folder) if self.paths.registry.tables else None
        return _Mark(registered.format) if registered and registered.metadata else None

    def _marked(self, folder: Path, mark: _Mark) -> ListedPlace:
        self._expected.discard(folder)
        kind = PlaceKind.TABLE if mark.format else PlaceKind.SEARCHED
        references = self._references(folder, mark.format) if mark.format else ()
        place, name = _shown(folder), self.paths.table_at(folder)
        return ListedPlace(name or place, place, kind, self._everything(folder), mark.format, references)

    def _references(self, folder: Path, name: Format) -> tuple[Ref, ...]:
        if not format_of(name).has_references:
            return ()
        metadata = self.paths.metadata_at(folder)
        try:
            found = format_of(name).reference_retention(folder, str(metadata) if metadata else None)
        except EstateError as error:
            self._miss(folder, f"its branches and tags are not known: {error.what}")
            return ()
        return tuple(Ref(name=one.name, kind=one.kind, at=str(one.snapshot)) for one in found if one.name != MAIN)

    def _bare(self, folder: Path) -> ListedPlace:
        place, name = _shown(folder), self.paths.table_at(folder)
        return ListedPlace(name or place, place, PlaceKind.FOLDER, self._own(folder))

    def _own(self, folder: Path) -> Iterator[ListedFile]:
        """Files of a bare folder, of its partitions and of hidden folders in it. Other folders wait for their turn."""
        inside, others = [folder], list[Path]()
        while inside:
            here = inside.pop()
            for entry in self._entries(here):
                if entry.is_dir(follow_symlinks=False):
                    yield from self._folder_in(Path(entry.path), inside, others)
                elif (size := self._size(entry)) is not None:
                    data = not entry.name.startswith((".", "_"))
                    if data:
                        self._expected.discard(folder)
                    yield ListedFile(size, data)
        self._waiting += sorted(others, reverse=True)

    def _folder_in(self, path: Path, inside: list[Path], others: list[Path]) -> Iterator[ListedFile]:
        try:
            plain = self._mark(path) is None
        except Exception:
            plain = False  # its own turn tells why
        if plain and is_hidden_folder(path.name):
            for file in self._everything(path):
                yield file._replace(data=False)
        elif plain and PARTITION.match(path.name) and path not in self.paths.declared:
            inside.append(path)
        else:
            others.append(path)

    def _everything(self, folder: Path) -> Iterator[ListedFile]:
        """Every file below a folder."""
        inside = [folder]
        while inside:
            for entry in self._entries(inside.pop()):
                if entry.is_dir(follow_symlinks=False):
                    inside.append(Path(entry.path))
                elif (size := self._size(entry)) is not None:
                    yield ListedFile(size)

    def _entries(self, folder: Path) -> Iterator[Entry]:
        try:
            with os.scandir(folder) as entries:
                yield from entries
        except OSError as error:
            self._refused(folder, error)

    def _size(self, entry: Entry) -> int | None:
        """Bytes of a file; None of what is none, or cannot be looked at. Links are met at their own place."""
        try:
            if entry.is_file(follow_symlinks=False):
                return entry.stat(follow_symlinks=False).st_size
            path = Path(entry.path)
            if not entry.is_symlink():
                self._miss(path, "neither a file nor a folder")
            elif not self.paths.inside(path) or not path.exists():
                self._miss(path, "a symbolic link has a target outside of the estate's roots, or no target")
        except OSError as error:
            self._refused(Path(entry.path), error)
        return None

    def _refused(self, path: Path, error: OSError) -> None:
        self._miss(path, f"it cannot be listed: {error.strerror or type(error).__name__}")

    def _miss(self, path: Path, reason: str) -> None:
        self.not_listed.append(NotListed(_shown(path), reason))


def _shown(path: Path) -> str:
    """Names that are not UTF-8 are shown escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
