"""Folders of tables on this machine and in stores alike: what lies in them, listed once, and removing of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from executors.engine import local_files
from executors.stores.hdfs.swept_files import HdfsFiles
from executors.stores.object_places.swept_files import ObjectFiles
from executors.stores.s3.swept_files import S3Files
from executors.sweep.store_folder_sweep import Listed, StoredFiles
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.formats.registry import format_of, table_formats
from pii_tracer.lake.stores.any_place import AnyPlace, RemotePath, folder_at
from pii_tracer.lake.stores.hdfs.hdfs_path import HdfsPath
from pii_tracer.lake.stores.object_places.object_path import ObjectPath
from pii_tracer.lake.stores.s3.archive_versions import s3_clients
from pii_tracer.lake.stores.s3.object_versions import ClientFactory
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import RunError
from pii_tracer.model.locations import (
    engine_path,
    in_place,
    is_hdfs,
    is_object_place,
    is_remote,
    is_s3,
    s3_location,
)
from pii_tracer.run.masked_place_names import shown_path


class Places:
    """The places of one estate's tables. clients: of S3, made when the first table lies there unless given."""

    def __init__(self, estate: Estate, clients: ClientFactory | None = None) -> None:
        self._estate, self._clients = estate, clients
        self._known: dict[str, AnyPlace] = {}

    def at(self, location: str) -> AnyPlace:
        """The place of a table.

        Raises:
            RunError: neither here nor in a store that is known, or S3 refuses.
            EstateError: the estate file does not say how the store is reached.
        """
        if location not in self._known:
            self._known[location] = self._at(location)
        return self._known[location]

    def _at(self, location: str) -> AnyPlace:
        if in_place(location):
            return folder_at(self._estate, location)
        return self._in_s3(location) if is_s3(location) else local_files.local_path(location)

    def _in_s3(self, location: str) -> S3Path:
        self._clients = self._clients or s3_clients(self._estate)
        with refusals(location):
            return S3Path.of(s3_location(location), self._clients)


@contextmanager
def refusals(location: object) -> Iterator[None]:
    """Inside, what a store refuses becomes a `RunError` with its code, and what this machine's system refuses one with
    its reason and the file.
    """
    try:
        yield
    except OSError as error:
        if not is_remote(str(location)):
            raise local_files.refusal(error) or error from None
        kinds = ((is_hdfs, HdfsFiles), (is_object_place, ObjectFiles))
        store = next((files for mine, files in kinds if mine(str(location))), S3Files)
        code = type(error).__name__ if isinstance(error, FileNotFoundError) else str(error).rpartition(": ")[2]
        raise RunError(f"{store.title} refuses: {code}", where=str(location), todo=store.todo) from None


def _stored(folder: RemotePath) -> StoredFiles:
    """What the store of a table answers about its files."""
    if isinstance(folder, ObjectPath):
        return ObjectFiles(folder)
    return S3Files(folder) if isinstance(folder, S3Path) else HdfsFiles(folder)


def named(folder: AnyPlace, text: str) -> str:
    """An absolute path or URI of a table's metadata, decoded, as listings of its place have it."""
    return local_files.as_local(text) if isinstance(folder, Path) else _stored(folder).named(text)


def place_at(folder: AnyPlace, path: str) -> AnyPlace:
    """The place of a path as listings of a table's place have it."""
    return Path(path) if isinstance(folder, Path) else folder.placed(path)


def files_below(folder: AnyPlace) -> list[Listed]:
    """Every file below a folder, hidden ones included, sorted; links are not followed."""
    if not isinstance(folder, Path):
        return _stored(folder).listed()[0]
    found = []
    for path in local_files.files_below(folder):
        try:
            state = path.stat()
        except FileNotFoundError:
            continue
        parts = path.relative_to(folder).parts
        found.append(Listed(str(path), parts, state.st_size, state.st_mtime_ns // 1_000_000))
    return found


def empty_partitions(folder: AnyPlace, kept: frozenset[str]) -> list[str]:
    """What is left of partitions in which no file is: folders, the deepest first, or objects that stand for them.

    kept: names of folders that are looked into no further.
    """
    if isinstance(folder, Path):
        return [str(p) for p in local_files.empty_folders(folder) if not kept.intersection(p.relative_to(folder).parts)]
    files, folders = _stored(folder).listed()
    filled = {file.parts[:depth] for file in files for depth in range(1, len(file.parts))}
    return [
        path
        for path, parts in sorted(folders, key=lambda one: -len(one.parts))
        if parts not in filled and any("=" in part for part in parts) and not kept.intersection(parts)
    ]


def remove_partitions(folder: AnyPlace, paths: Sequence[str]) -> None:
    """Remove what `empty_partitions` found; a folder into which a writer has just put a file stays.

    Raises:
        RunError: a store refuses some.
    """
    if isinstance(folder, Path):
        local_files.remove_empty(map(Path, paths))
    else:
        _stored(folder).remove_folders(paths)


def remove(folder: AnyPlace, paths: Sequence[str]) -> None:
    """Remove files of a table's place; those that are gone already count as removed.

    Raises:
        RunError: a store refuses some; the others are gone.
    """
    if not isinstance(folder, Path):
        _stored(folder).remove(paths)
        return
    for path in paths:
        Path(path).unlink(missing_ok=True)


def missing(folder: AnyPlace, paths: Iterable[str]) -> list[str]:
    """Those of some files that are not there; what lies in another kind of place than the table is not looked for.

    In a store one listing tells it of all that lie in the folder.
    """
    if isinstance(folder, Path):
        return sorted(path for path in paths if ":" not in path.split("/")[0] and not Path(path).exists())
    there, front = {path for path, _, _ in folder.walk()}, f"{folder}/"
    kinds = ((S3Path, is_s3), (HdfsPath, is_hdfs), (ObjectPath, is_object_place))
    alike = next(mine for kind, mine in kinds if isinstance(folder, kind))
    asked = [path for path in paths if alike(path) and path not in there]
    return sorted(path for path in asked if path.startswith(front) or not folder.placed(path).is_file())


def refuse_tables_inside(folder: AnyPlace, there: Iterable[Listed], kind: Format | None) -> None:
    """A table below whose folder another table lies cannot be swept: its files would be taken for nobody's.

    kind: what the table itself is; where nobody knows, every sign of a table counts as another one's.

    Raises:
        RunError: there is one.
    """
    if isinstance(folder, Path):
        local_files.refuse_nested(folder, own=lambda place: _is_own(place.relative_to(folder).parts, kind))
        return
    folders = frozenset().union(*(one.sign_folders for one in table_formats()))
    ends = tuple(end for one in table_formats() for end in one.sign_endings)
    for file in there:
        inner = [file.parts[:n] for n, part in enumerate(file.parts[:-1]) if n and part in folders]
        inner += [file.parts[:-1]] if len(file.parts) > 1 and file.parts[-1].endswith(ends) else []
        inner += [(part,) for part in file.parts[:1] if part in folders and not _is_own((part,), kind)]
        for parts in inner:
            if not _is_own(parts, kind):
                raise RunError(
                    "this folder contains a different table: work on these files would break it",
                    where=f"{folder}/{shown_path('/'.join(parts))}",
                    todo="move one of the two tables, then plan again",
                )


def _is_own(parts: tuple[str, ...], kind: Format | None) -> bool:
    """Whether a folder with the sign of a table belongs to the table that lies around it. parts: below that."""
    return kind is not None and format_of(kind).owns_place(parts)


def modified(place: AnyPlace) -> float | None:
    """When a file of a place was written, in milliseconds (in S3 whole seconds); None where it is not."""
    if not isinstance(place, Path):
        return place.modified()
    return place.stat().st_mtime_ns / 1_000_000 if place.exists() else None


def engine_file(path: str) -> str:
    """A listed file as Spark's file systems spell it."""
    return engine_path(path) if is_remote(path) else f"file:{path}"
