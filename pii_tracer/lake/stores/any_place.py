"""Places of tables, wherever they lie: a path of this machine, or one in a store that is read over its own protocol.

Every kind answers to what readers of tables' metadata ask of a `pathlib.Path`, and tells refusals as `OSError`s.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, TypeVar, overload

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.stores.hdfs.hdfs_path import HdfsPath
from pii_tracer.lake.stores.hdfs.webhdfs import client_at
from pii_tracer.lake.stores.object_places.object_path import ObjectPath
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.model.locations import hdfs_location, is_hdfs, local_path, object_location

RemotePath = S3Path | HdfsPath | ObjectPath
FolderPath = HdfsPath | ObjectPath
"""Of tables that are known by their folders."""
AnyPlace = Path | S3Path | HdfsPath | ObjectPath

Place = TypeVar("Place", Path, S3Path, HdfsPath, ObjectPath)


def opened(place: AnyPlace) -> BinaryIO:
    """A file of which little will be read: a footer, some columns."""
    return place.open("rb") if isinstance(place, Path) else place.seekable()


def folder_at(estate: Estate, location: str) -> FolderPath:
    """A place in HDFS or in a store of `object_stores` (`in_place`).

    Raises:
        EstateError: the estate file does not say how its store is reached.
    """
    if is_hdfs(location):
        place = hdfs_location(location)
        return HdfsPath(client_at(estate, place), place.path)
    return ObjectPath.at(estate, object_location(location))


@overload
def file_of(table: Path, text: str) -> Path: ...
@overload
def file_of(table: S3Path, text: str) -> S3Path: ...
@overload
def file_of(table: HdfsPath, text: str) -> HdfsPath: ...
@overload
def file_of(table: ObjectPath, text: str) -> ObjectPath: ...
def file_of(table: AnyPlace, text: str) -> AnyPlace:
    """A file as a table's metadata names it, in full. table: its folder.

    Raises:
        EstateError: it lies in a store of another kind than the table, or in none.
    """
    return local_path(text) if isinstance(table, Path) else table.placed(text)
