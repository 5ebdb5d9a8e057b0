"""Which files lie in a copy, each with a mark of the write that made it. Old versions of objects are files, too.
Empty files hold no counts, and are left out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.stores.base import Absent
from pii_tracer.lake.stores.hdfs.discovery import places_now
from pii_tracer.lake.stores.object_places.discovery import place_now
from pii_tracer.lake.stores.object_places.versions import VersionState
from pii_tracer.model.errors import ScanError
from pii_tracer.model.locations import hdfs_location, in_place, is_hdfs, object_location
from pii_tracer.model.plan import Copy
from pii_tracer.model.timestamps import instant
from pii_tracer.model.waivers import MarkKey
from pii_tracer.scan.folder_scan import file_digest, walk_files
from pii_tracer.scan.value_forms import Patterns
from pii_tracer.verify.computed_again import WrittenFile, mark


def written_files(estate: Estate, copy: Copy, patterns: Patterns, keyed: MarkKey) -> tuple[WrittenFile, ...]:
    """The files of a copy as they are now. A folder that is gone has none. keyed: makes the marks.

    Raises:
        EstateError, ScanError: they cannot be listed.
    """
    if is_hdfs(copy.location):
        return tuple(_in_hdfs(estate, copy, patterns, keyed))
    if in_place(copy.location):
        return tuple(_in_object_store(estate, copy, patterns, keyed))
    if place := copy.s3_table:
        from pii_tracer.app import s3_tables_now

        return tuple(
            WrittenFile(
                name,
                mark(keyed, version.key, version.version_id, version.etag, version.modified),
                instant(version.modified),
                mark(keyed, version.etag),
            )
            for name, version in s3_tables_now.written(estate, copy, place, patterns)
        )
    root = Path(copy.location)
    return () if _is_gone(root) else tuple(_in_folder(root, patterns, keyed))


def is_empty(estate: Estate, copy: Copy) -> bool:
    """Whether nothing is left of a copy, as far as its place tells that by itself.

    Raises:
        EstateError, ScanError: nobody can tell.
    """
    if place := copy.s3_table:
        from pii_tracer.app import s3_tables_now

        return s3_tables_now.is_empty(estate, copy, place)
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


def _in_folder(root: Path, patterns: Patterns, keyed: MarkKey) -> Iterator[WrittenFile]:
    for name, path in walk_files(root):
        if path.is_symlink() or not path.is_file():
            continue
        try:
            digest, size = file_digest(path)
            told = path.stat()
        except OSError as error:
            raise ScanError(
                f"a file cannot be read: {error.strerror or type(error).__name__}",
                where=patterns.mask(str(path)),
                todo="give the permission to read it, and stop the jobs that write there",
            ) from None
        if size:  # a file that was moved is the file that it was
            write = mark(keyed, digest, told.st_mtime_ns)
            yield WrittenFile(patterns.mask(name), write, _moment(told.st_mtime), mark(keyed, digest))


def _moment(seconds: float) -> datetime:
    """A time that a file shows. One that no calendar has was set by somebody, and counts as old."""
    try:
        return datetime.fromtimestamp(seconds, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return datetime.min.replace(tzinfo=timezone.utc)


def _in_hdfs(estate: Estate, copy: Copy, patterns: Patterns, keyed: MarkKey) -> Iterator[WrittenFile]:
    location = hdfs_location(copy.location)
    try:
        places, gaps = places_now(estate, location)
    except Absent:
        return
    for gap in gaps:
        raise ScanError(gap.reason, where=patterns.mask(gap.evidence), todo="give the rights to list it")
    for file in (file for place in places for file in place.files):
        if file.size:  # snapshots show the same ids
            name = file.path.removeprefix(location.prefix)
            write = mark(keyed, file.file_id, file.modified, file.size)
            yield WrittenFile(patterns.mask(name), write, _moment(file.modified / 1000))


def _in_object_store(estate: Estate, copy: Copy, patterns: Patterns, keyed: MarkKey) -> Iterator[WrittenFile]:
    location = object_location(copy.location)
    for version in place_now(estate, location).versions:
        if version.size and version.state is not VersionState.SOFT_DELETED:
            name = version.key if version.state is VersionState.LIVE else f"{version.key}?version={version.version_id}"
            content = mark(keyed, version.checksum) if version.checksum else ""
            write = mark(keyed, version.key, version.version_id, version.checksum, version.size)
            yield WrittenFile(patterns.mask(name), write, instant(version.modified), content)
