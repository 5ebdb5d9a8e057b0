"""Cut bounds that another person's value explains: the rows of the file they describe decide, not the bound.

Iceberg cuts bounds to 16 characters, Delta to 32, so that `christian.mueller@…` of two people is one bound. A bound
describes a data file. Where that very file was decoded to its end and holds nothing of the person, it is not theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import (
    HdfsLocation,
    ObjectLocation,
    S3Location,
    hdfs_location,
    is_hdfs,
    is_object_place,
    is_s3,
    local_path,
    object_location,
    s3_location,
)
from pii_tracer.scan.decode.table_metadata import Role, role_of
from pii_tracer.scan.decode.table_traces import table_traces
from pii_tracer.scan.hits import FileScan, Form, Hit

Root = Path | S3Location | HdfsLocation | ObjectLocation

_OF_ROWS = frozenset({"parquet", "orc", "avro"})


def without_explained(root: Root, files: Iterable[FileScan], clean: Iterable[FileScan] = ()) -> tuple[FileScan, ...]:
    """The files of a folder without those prefixes that surely are not the person's.

    clean: its other files, without any hit, where they are kept apart; they are only asked for where a prefix was seen.

    A bound of a file that is gone, lies elsewhere, has another size than the bound's owner says, was not read to its
    end or holds anything of the person keeps counting.
    """
    scans = tuple(files)
    if not any(hit.form is Form.PREFIX for scan in scans for hit in scan.hits):
        return scans
    base = root.resolve() if isinstance(root, Path) else root
    by_path = _by_path(root, (*scans, *clean))
    return tuple(_without(scan, base, by_path) for scan in scans)


def _by_path(root: Root, scans: Iterable[FileScan]) -> dict[str, FileScan]:
    """Files by their path, where that is no other's: a masked path could be spelled like another file's, and in S3 an
    object can have several versions.
    """
    found: dict[str, FileScan | None] = {}
    for scan in scans:
        found[scan.path] = None if scan.path in found else scan
    own = {path: scan for path, scan in found.items() if scan is not None}
    if not isinstance(root, Path):
        return own
    return {path: scan for path, scan in own.items() if (root / path).is_file()}


def _without(scan: FileScan, root: Root, files: Mapping[str, FileScan]) -> FileScan:
    hits = tuple(hit for hit in scan.hits if not (hit.form is Form.PREFIX and _explained(hit, scan, root, files)))
    return scan if len(hits) == len(scan.hits) else scan.model_copy(update={"hits": hits})


def _explained(hit: Hit, scan: FileScan, root: Root, files: Mapping[str, FileScan]) -> bool:
    if _own(hit, scan):
        return _free_of(hit.key_set, scan)
    described = _described(hit, scan, root, files)
    return described is not None and _free_of(hit.key_set, described)


def _own(hit: Hit, scan: FileScan) -> bool:
    """Whether it is a bound in a Parquet file's footer, of the file's own rows."""
    return hit.form is Form.PREFIX and hit.where == "statistics" and scan.decoded_as == "parquet" and _has_rows(scan)


def _has_rows(scan: FileScan) -> bool:
    parts = PurePosixPath(scan.path).parts
    return (
        scan.decoded_as in _OF_ROWS
        and role_of(scan.path) is Role.DATA
        and not any(traces.own_folders.intersection(parts) for traces in table_traces())
    )


def _free_of(key_set: str, scan: FileScan) -> bool:
    """Whether a file of rows was read to its end and holds nothing of a key set but, perhaps, bounds of its rows."""
    mine = (hit for hit in scan.hits if hit.key_set == key_set)
    return _has_rows(scan) and not scan.unread and all(_own(hit, scan) for hit in mine)


def _described(hit: Hit, scan: FileScan, root: Root, files: Mapping[str, FileScan]) -> FileScan | None:
    """The file that a bound describes, where it is one of these and has the size it should have."""
    if hit.of is None:
        return None
    try:
        if not isinstance(root, Path):
            name = _stored(hit.of.path, scan, root)
        else:
            path = _path(hit.of.path, scan, root)
            name = path.resolve().relative_to(root).as_posix() if path else None
    except (EstateError, OSError, RuntimeError, ValueError):  # another store, another folder, or no path at all
        return None
    found = files.get(name) if name else None
    return found if found is not None and found.size == hit.of.size else None


def _told(text: str, scan: FileScan) -> tuple[str, Sequence[str] | None]:
    """A path in plain, and the folder that it is told from; formats that say nothing write whole paths or URIs."""
    parts = PurePosixPath(scan.path).parts
    told = (traces.told_path(text, parts) for traces in table_traces())
    return next((found for found in told if found is not None), (text, None))


def _path(text: str, scan: FileScan, root: Path) -> Path | None:
    text, folder = _told(text, scan)
    if folder is not None:
        return root.joinpath(*folder, text)
    path = local_path(text)
    return path if path.is_absolute() else None


def _stored(text: str, scan: FileScan, root: S3Location | HdfsLocation | ObjectLocation) -> str | None:
    """As `_path`, told from the folder in its store."""
    text, folder = _told(text, scan)
    if folder is not None:
        return "/".join((*folder, text))
    if isinstance(root, HdfsLocation):
        there = hdfs_location(text) if is_hdfs(text) else None
        return there.path.removeprefix(f"{root.path.rstrip('/')}/") if there and root.holds(there) else None
    if isinstance(root, ObjectLocation):
        stored = object_location(text) if is_object_place(text) else None
        return stored.key.removeprefix(root.prefix) if stored and root.holds(stored) else None
    place = s3_location(text) if is_s3(text) else None
    return place.key.removeprefix(root.prefix) if place and root.holds(place) else None
