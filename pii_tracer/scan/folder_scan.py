"""Scan folders and objects. Every file counts, hidden ones and metadata included."""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote

from blake3 import blake3

from pii_tracer.model.errors import ScanError
from pii_tracer.model.hive_text.layout import FileText
from pii_tracer.model.hive_text.text_reading_rules import NO_TEXTS, TextPlaces
from pii_tracer.scan.decode.dispatch import search
from pii_tracer.scan.false_cell_hits import WINDOW
from pii_tracer.scan.false_min_max_hits import without_explained
from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.hits import FileScan, TreeScan
from pii_tracer.scan.rows.composite_keys import search_rows
from pii_tracer.scan.search_workers import THREADS, OfBytes, Searchers, Stamp
from pii_tracer.scan.shapes.file_shapes import FileShapes, ShapeKeeper, ShapingCollector
from pii_tracer.scan.shapes.objects_read_before import Keeper
from pii_tracer.scan.value_forms import Patterns

File = tuple[str, Path]
"""A file below a folder: its relative path, and where it lies."""
_BLOCK = 1024 * 1024


@dataclass(frozen=True)
class FileLook:
    """How a file below `root` is searched (`pii_tracer.scan.search_workers.Look`). keeper: of shapes of columns.

    texts: by what rules text is read."""

    only_here: ClassVar = False
    by_store: ClassVar = False
    root: Path
    at_once: int = os.cpu_count() or 1
    keeper: ShapeKeeper | None = None
    texts: TextPlaces = NO_TEXTS

    def __call__(self, thing: File, patterns: Patterns) -> FileScan:
        """Search the file. One that cannot be read is unread, never clean."""
        return scan_file(self.root, *thing, patterns, self.keeper, self.texts.of_path(thing[1]))

    def stamp(self, thing: File) -> Stamp:
        """Size in bytes, and when it was written; a size below nothing where that cannot be told."""
        try:
            found = thing[1].lstat()
        except OSError:
            return -1, ""
        return found.st_size, f"{found.st_mode} {found.st_mtime_ns}"

    def place(self, thing: File) -> str | None:
        """The folder, the file's path in it, and how its text is read: all decide how it is decoded."""
        text = self.texts.of_path(thing[1])
        told = f"\0{text.model_dump_json()}" if text else ""
        return f"{self.root.resolve().as_posix()}\0{thing[0]}{told}"

    def identity(self, thing: File) -> str | None:
        """BLAKE3 of a regular file; None of a link, and where it cannot be read."""
        try:
            return None if thing[1].is_symlink() or not thing[1].is_file() else _blake3_of(thing[1])
        except OSError:
            return None

    def of_bytes(self, thing: File, scan: FileScan) -> OfBytes | None:
        """By the BLAKE3 of what was searched."""
        return (scan.blake3, scan) if scan.blake3 else None

    def again(self, thing: File, known: FileScan, patterns: Patterns) -> FileScan | None:
        """What is known: nothing stands beside the bytes of a file."""
        return known

    def keeping(self, keeper: Keeper) -> FileLook:
        """As `Look.keeping`."""
        return replace(self, keeper=keeper)


def scan_tree(
    root: Path,
    patterns: Patterns,
    without: Collection[Path] = (),
    searchers: Searchers = THREADS,
    texts: TextPlaces = NO_TEXTS,
) -> TreeScan:
    """Scan all files under a folder (or one file), sorted by path, several at a time: decoders let go of Python's lock.

    Cut bounds of files in which nothing of the person stands are left out (`without_explained`).

    without: folders below that are looked at in their own right. texts: by what rules text is read.

    Raises:
        ScanError: the folder is missing or cannot be listed.
    """
    files = []
    found, empty = _walked(root)
    apart = [(name, path) for name, path in found if not any(path.is_relative_to(folder) for folder in without)]
    for _, result in searchers.search(FileLook(root, texts=texts.near(root.resolve().as_posix())), apart, patterns):
        files.append(result)
    empty = [(name, path) for name, path in empty if not any(path.is_relative_to(folder) for folder in without)]
    files += _telling_folders(empty, patterns)
    return TreeScan(root=str(root), files=without_explained(root, files))


def _telling_folders(empty: Iterable[File], patterns: Patterns) -> Iterator[FileScan]:
    """Folders with nothing in them whose path holds a value, as an engine leaves those of partitions. Their paths end
    with `/`; of all others the files' own paths tell."""
    for name, _ in empty:
        collector = Collector(patterns)
        path_hits(name, collector)
        if hits := collector.hits():
            yield FileScan(path=f"{patterns.mask(name)}/", size=0, sha256="", decoded_as="", hits=hits)


def walk_files(root: Path) -> Iterator[File]:
    """(relative path, path) of everything under a folder that is no folder, sorted. Links are not followed.

    Raises:
        ScanError: the folder is missing or cannot be listed.
    """
    yield from _walked(root)[0]


def _walked(root: Path) -> tuple[list[File], list[File]]:
    """What `walk_files` gives, and the folders below with nothing in them."""
    if root.is_file():
        return [(root.name, root)], []
    if not root.is_dir():
        raise ScanError(
            "the folder to scan does not exist",
            where=str(root),
            todo="correct the location; the folder may have been moved",
        )
    found, empty = list[File](), list[File]()

    def refuse(error: OSError) -> None:
        raise ScanError(
            f"a folder cannot be listed: {error.strerror or type(error).__name__}",
            where=str(root),
            todo="grant the permission to list the folder",
        )

    for folder, folders, names in os.walk(root, onerror=refuse):
        linked = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in (*names, *linked):
            path = Path(folder) / name
            found.append((path.relative_to(root).as_posix(), path))
        if not (names or folders or Path(folder) == root):
            empty.append((Path(folder).relative_to(root).as_posix(), Path(folder)))
    return sorted(found), empty


def file_digest(path: Path) -> tuple[str, int]:
    """SHA-256 (hex) and size of a file. Raises `OSError`."""
    digest, size = hashlib.sha256(), 0
    for block in _blocks(path):
        digest.update(block)
        size += len(block)
    return digest.hexdigest(), size


def _blake3_of(path: Path) -> str:
    """BLAKE3 (hex) of a file, which takes a third of the processor time of its SHA-256. Raises `OSError`."""
    digest = blake3()
    for block in _blocks(path):
        digest.update(block)
    return digest.hexdigest()


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            yield block


def scan_file(
    root: Path,
    name: str,
    path: Path,
    patterns: Patterns,
    keeper: ShapeKeeper | None = None,
    text: FileText | None = None,
) -> FileScan:
    """Scan one file. A file that cannot be read is unread, never clean. keeper: of what is known of its columns.

    text: the columns of a text file, where a catalog says them."""
    context = f"{root.resolve().as_posix()}/{name}"
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return _unread(name, patterns, "a symbolic link, whose target is not part of this folder")
        if not stat.S_ISREG(mode):
            return _unread(name, patterns, "not a regular file")
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size <= 4 * WINDOW:
                data = memoryview(stream.read())
            else:  # a read-only map: a large file does not fill the memory; it goes when its last reader lets go
                data = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
            # before the search: a file that is written meanwhile is another one the next time
            identity = blake3(data).hexdigest()
            scan = _scan(name, context, data, patterns, keeper, text)
        return scan.model_copy(update={"blake3": identity})
    except OSError as error:
        return _unread(name, patterns, f"cannot be read: {error.strerror or type(error).__name__}")


def scan_bytes(name: str, data: bytes | memoryview, patterns: Patterns, text: FileText | None = None) -> FileScan:
    """Scan an object that is in memory; `name` is its key. Nothing is written anywhere. text: as of `scan_file`."""
    return _scan(name, name, memoryview(data), patterns, text=text)


def scan_object(
    key: str,
    data: bytes | memoryview,
    patterns: Patterns,
    text: FileText | None = None,
    shapes: FileShapes | None = None,
    sha256: str | None = None,
) -> FileScan:
    """Search the bytes of an object alone: its key says how they are read, no more. text: as `scan_file`. shapes: of
    its column chunks. sha256: of its bytes, where it is known.
    """
    collector = Collector(patterns) if shapes is None else ShapingCollector(patterns, shapes)
    collector.columns = text
    data = data if isinstance(data, memoryview) else memoryview(data)  # shapes are of this very view
    decoded = search(key, data, collector)
    search_rows(key, data, collector)
    return FileScan(
        path="",
        size=len(data),
        sha256=sha256 or hashlib.sha256(data).hexdigest(),
        decoded_as=decoded,
        hits=collector.hits(),
        left=collector.left.hits(),
        unread=collector.reasons,
    )


def with_name(scan: FileScan, name: str, patterns: Patterns) -> FileScan:
    """What the bytes of an object showed, with what its name shows."""
    collector = Collector(patterns)
    path_hits(name, collector)
    return scan.model_copy(
        update={
            "path": patterns.mask(name),
            "hits": (*scan.hits, *collector.hits()),
            "left": (*scan.left, *collector.left.hits()),
            "unread": (*scan.unread, *collector.reasons),
        }
    )


def _scan(
    name: str,
    context: str,
    data: memoryview,
    patterns: Patterns,
    keeper: ShapeKeeper | None = None,
    text: FileText | None = None,
) -> FileScan:
    digest = hashlib.sha256(data).hexdigest()
    shapes = keeper.shapes_of(data, digest, patterns) if keeper is not None else None
    collector = Collector(patterns) if shapes is None else ShapingCollector(patterns, shapes)
    collector.columns = text
    decoded = search(context, data, collector)
    path_hits(name, collector)
    search_rows(name, data, collector)
    scan = FileScan(
        path=patterns.mask(name),
        size=len(data),
        sha256=digest,
        decoded_as=decoded,
        hits=collector.hits(),
        left=collector.left.hits(),
        unread=collector.reasons,
    )
    if keeper is not None and shapes is not None:
        keeper.keep(shapes, scan)
    return scan


_ZEROS = re.compile(rb"(?:\.0*)?\s*")


def name_tells(name: str, patterns: Patterns) -> bool:
    """Whether a path or an object's name holds a value of the persons."""
    collector = Collector(patterns)
    path_hits(name, collector)
    return bool(collector.hits())


def path_hits(name: str, collector: Collector) -> None:
    """Values in the path itself: partition folders (`user_id=…`) and object names."""
    folders = collector.left.folders(name, "file path")
    collector.prose(f"/{name}", "file path", whole=collector.patterns.key_columns.of_path, left=folders)
    patterns = collector.patterns
    for segment in name.split("/"):
        column, separator, value = segment.rpartition("=")
        short = _in_folder(value, patterns) if separator else set(patterns.cells.get(value, ()))
        short -= patterns.key_columns.no_keys_in(column)
        if short and not short <= _anywhere_in(name, patterns):
            collector.text(unquote(value), "file path", column if separator else None, tiny=True)


def _anywhere_in(name: str, patterns: Patterns) -> set[str]:
    """The key sets of which a path shows a value that is searched for in any text."""
    found = patterns.occurrences(f"/{name}".encode("utf-8", "surrogateescape"))
    return {key_set for terms, _, _ in found for key_set, _ in terms}


def _in_folder(value: str, patterns: Patterns) -> set[str]:
    """The key sets of which the value of a partition folder is one, as its column has it."""
    text = unquote(value, errors="surrogateescape")
    data = text.encode("utf-8", "surrogateescape")
    found = {
        match.key_set
        for match in patterns.bounded(data)
        if not data[: match.start].strip(b"+0 ") and _ZEROS.fullmatch(data, match.end)
    }
    return found.union(patterns.of_cell(text))


def _unread(name: str, patterns: Patterns, reason: str) -> FileScan:
    return FileScan(path=patterns.mask(name), size=0, sha256="", decoded_as="", unread=(reason,))
