"""Which files lie in a copy, each with a mark of the write that made it. Old versions of objects are files, too.
Empty files hold no counts, and are left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from pii_tracer.app.stored_places import hdfs_files, object_reading
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.stores.base import Absent
from pii_tracer.lake.stores.hdfs.discovery import places_now, trash_now
from pii_tracer.lake.stores.hdfs.places import HdfsKind
from pii_tracer.lake.stores.hdfs.webhdfs import client_at
from pii_tracer.lake.stores.object_places.discovery import place_now
from pii_tracer.lake.stores.object_places.protocol import versioned_store
from pii_tracer.lake.stores.object_places.version_types import VersionState
from pii_tracer.model.errors import ScanError
from pii_tracer.model.locations import hdfs_location, in_place, is_hdfs, object_location
from pii_tracer.model.plan import Copy
from pii_tracer.model.timestamps import instant
from pii_tracer.model.waivers import MarkKey
from pii_tracer.scan.folder_scan import walk_files
from pii_tracer.scan.value_forms import Patterns
from pii_tracer.verify.recomputation_evidence import Noted, WrittenFile, contents_of, mark

_Contents = Callable[[Iterable[bytes | memoryview]], frozenset[str]]
_BLOCK = 1024 * 1024
_SUM, _EMPTY_SUM_SIZE = re.compile(r"\..+\.crc"), 8
"""Hadoop's checksum of an empty file: the same bytes after each job, and the first ones of the sum of each file."""


def written_files(
    estate: Estate, copy: Copy, patterns: Patterns, keyed: MarkKey, before: Noted | None = None
) -> tuple[WrittenFile, ...]:
    """The files of a copy as they are now. A folder that is gone has none. keyed: makes the marks. before: what was
    noted of it. Each file's first bytes are marked up to the sizes there, too, and files of it that lie in the trash of
    HDFS are among them. All bytes are read: checksums of stores need not be of the bytes alone.

    Raises:
        EstateError, ScanError: they cannot be listed or read.
    """
    contents = partial(contents_of, keyed, sizes=before.sizes if before else ())
    if is_hdfs(copy.location):
        deleted = _in_trash(estate, copy, patterns, keyed, before.writes if before else ())
        return (*_in_hdfs(estate, copy, patterns, keyed, contents), *deleted)
    if in_place(copy.location):
        return tuple(_in_object_store(estate, copy, patterns, keyed, contents))
    if place := copy.s3_table:
        from pii_tracer.app import s3_reading

        return tuple(
            WrittenFile(
                name,
                version.size,
                mark(keyed, version.key, version.version_id, version.etag, version.modified),
                instant(version.modified),
                contents([data]),
            )
            for name, version, data in s3_reading.written(estate, copy, place, patterns)
        )
    root = Path(copy.location)
    return () if _is_gone(root) else tuple(_in_folder(root, patterns, keyed, contents))


def place_of(copy: Copy, keyed: MarkKey) -> str:
    """Mark of where a copy's location leads to. A link can lead elsewhere later, and what it led to before stays."""
    here = not (copy.s3_table or is_hdfs(copy.location) or in_place(copy.location))
    return mark(keyed, Path(copy.location).resolve() if here else copy.location)


def is_empty(estate: Estate, copy: Copy) -> bool:
    """Whether nothing is left of a copy, as far as its place tells that by itself.

    Raises:
        EstateError, ScanError: nobody can tell.
    """
    if place := copy.s3_table:
        from pii_tracer.app import s3_reading

        return s3_reading.is_empty(estate, copy, place)
    return not in_place(copy.location) and _is_gone(Path(copy.location))


def _is_gone(root: Path) -> bool:
    """Whether a folder is gone, and the folder around it is not: the disk may not be mounted."""
    if root.exists():
        return False
    if not root.parent.is_dir():
        raise ScanError(
            "the folder is gone with the folder around it",
            where=str(root),
            todo="mount the place, or make the folder around it again",
        )
    return True


def _in_folder(root: Path, patterns: Patterns, keyed: MarkKey, contents: _Contents) -> Iterator[WrittenFile]:
    for name, path in walk_files(root):
        if path.is_symlink() or not path.is_file():
            continue
        try:
            with path.open("rb") as stream:
                found = contents(iter(partial(stream.read, _BLOCK), b""))
            told = path.stat()
        except OSError as error:
            raise ScanError(
                f"a file cannot be read: {error.strerror or type(error).__name__}",
                where=patterns.mask(str(path)),
                todo="give the permission to read it, and stop the jobs that write there",
            ) from None
        if told.st_size and not (told.st_size == _EMPTY_SUM_SIZE and _SUM.fullmatch(path.name)):
            write = mark(keyed, name, told.st_mtime_ns)
            yield WrittenFile(patterns.mask(name), told.st_size, write, _moment(told.st_mtime), found)


def _moment(seconds: float) -> datetime:
    """A time that a file shows. One that no calendar has was set by somebody, and counts as old."""
    try:
        return datetime.fromtimestamp(seconds, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return datetime.min.replace(tzinfo=timezone.utc)


def _in_hdfs(
    estate: Estate, copy: Copy, patterns: Patterns, keyed: MarkKey, contents: _Contents
) -> Iterator[WrittenFile]:
    location = hdfs_location(copy.location)
    try:
        places, gaps = places_now(estate, location)
    except Absent:
        return
    for gap in gaps:
        raise ScanError(gap.reason, where=patterns.mask(gap.evidence), todo="give the rights to list it")
    client = client_at(estate, location)
    for kind, file in ((place.kind, file) for place in places for file in place.files):
        if file.size:  # a file keeps its id when it is appended to, or renamed, and in snapshots
            name = file.path.removeprefix(location.prefix)
            data = hdfs_files.fetch(client, file, kind is HdfsKind.SNAPSHOT)
            write = mark(keyed, file.file_id)
            yield WrittenFile(patterns.mask(name), file.size, write, _moment(file.modified / 1000), contents([data]))


def _in_trash(
    estate: Estate, copy: Copy, patterns: Patterns, keyed: MarkKey, writes: Collection[str]
) -> Iterator[WrittenFile]:
    """Files of before that were deleted into a trash, where each keeps its id."""
    files, gaps = trash_now(estate, hdfs_location(copy.location))
    for gap in gaps:
        raise ScanError(gap.reason, where=patterns.mask(gap.evidence), todo="give the rights to list it")
    for file in files:
        if file.size and (write := mark(keyed, file.file_id)) in writes:
            yield WrittenFile(patterns.mask(file.path), file.size, write, _moment(file.modified / 1000), frozenset())


def _in_object_store(
    estate: Estate, copy: Copy, patterns: Patterns, keyed: MarkKey, contents: _Contents
) -> Iterator[WrittenFile]:
    location = object_location(copy.location)
    store = versioned_store(estate, location)
    for version in place_now(estate, location).versions:
        if version.size and version.state is not VersionState.SOFT_DELETED:
            name = version.key if version.state is VersionState.LIVE else f"{version.key}?version={version.version_id}"
            found = contents([object_reading.fetch(store, version)])
            write = mark(keyed, version.key, version.version_id, version.mark)
            yield WrittenFile(patterns.mask(name), version.size, write, instant(version.modified), found)
