"""Hudi tables in HDFS and object stores for hudi-rs, which reaches neither HDFS nor by the clients of the rest here.

It is shown the table's own notes, and data files of the same names and sizes without content. That is all it needs to
tell file slices apart. Files of a slice are fetched while it is read. All of this lies in the scratch folder of the
process, which nobody else may read, and of which what a killed process leaves is wiped.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pii_tracer.common.scratch_folders import scratch_folder
from pii_tracer.lake.stores.any_place import FolderPath
from pii_tracer.model.errors import EstateError

_NOTES, _INDEXES = ".hoodie", "metadata"
_CHUNK = 16 * 1024 * 1024


@dataclass(frozen=True)
class StoreCopy:
    """place: the table. folder: what of it lies here. sizes: of all its files, by their names in full."""

    place: FolderPath
    folder: Path
    sizes: Mapping[str, int]

    @contextmanager
    def fetched(self, names: Iterable[str]) -> Iterator[None]:
        """Inside, some files of the table have their content here. names: from the table's folder."""
        names = list(names)
        try:
            for name in names:
                _fetch(self.place / name, self.folder / name)
            yield
        finally:
            for name in names:
                (self.folder / name).write_bytes(b"")


@contextmanager
def copied(place: FolderPath) -> Iterator[StoreCopy]:
    """A table as hudi-rs is shown it, as long as the context is open.

    Raises:
        EstateError: a name that would lie outside of the folder here.
        OSError: the store refuses.
    """
    with tempfile.TemporaryDirectory(dir=scratch_folder(), prefix="hudi-") as name:
        folder = Path(name)
        front = f"{str(place).rstrip('/')}/"
        sizes = {path: size for path, size, _ in place.walk()}
        for path, size in sizes.items():
            parts = PurePosixPath(path.removeprefix(front)).parts
            if parts[:2] == (_NOTES, _INDEXES):
                continue  # indexes of files and rows: listings tell the same
            if ".." in parts or not path.startswith(front):
                raise EstateError(
                    "a link in the table's folder has a target outside of it", where=str(place), todo="rename it"
                )
            here = folder.joinpath(*parts)
            here.parent.mkdir(parents=True, exist_ok=True)
            if parts[0] == _NOTES:
                _fetch(place.placed(path), here)
            else:
                with here.open("wb") as file:
                    file.truncate(size)
        yield StoreCopy(place, folder, sizes)


def _fetch(source: FolderPath, here: Path) -> None:
    size = source.length()
    with here.open("wb") as file:
        for first in range(0, size, _CHUNK):
            file.write(source.part(first, min(_CHUNK, size - first)))
