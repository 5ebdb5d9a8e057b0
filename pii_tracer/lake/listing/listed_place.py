"""One place of a listing with its files as a stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.lake.inventory import Ref
from pii_tracer.model.datasets import Format


class PlaceKind(StrEnum):
    """What a place is, as far as that decides how persons leave it.

    table: of a table format, in a folder or in HDFS. bucket_table: the same in S3. folder: bare data files of this
    machine. hdfs_folder: the same in HDFS. archive: objects in S3 that are written again one by one. objects: files in
    another object store. searched: no step is known for it.
    """

    TABLE = "table"
    BUCKET_TABLE = "bucket_table"
    FOLDER = "folder"
    HDFS_FOLDER = "hdfs_folder"
    ARCHIVE = "archive"
    OBJECTS = "objects"
    SEARCHED = "searched"


REQUESTED = frozenset({PlaceKind.BUCKET_TABLE, PlaceKind.ARCHIVE, PlaceKind.OBJECTS})
"""Kinds whose files are read by requests that a provider charges for."""


class ListedFile(NamedTuple):
    """One file, or one version of an object.

    size: in bytes. data: it may be a data file; hidden files are none. live: it is what stands under its name now.
    modified, locked_until: ISO 8601.
    """

    size: int
    data: bool = True
    live: bool = True
    storage_class: str = ""
    modified: str | None = None
    locked_until: str | None = None


class NotListed(NamedTuple):
    """A place that could not be listed, or not be understood, and why."""

    where: str
    reason: str


@dataclass(frozen=True)
class ListedPlace:
    """A place. files: can be read once, and only before the next place of the stream is asked for.

    format: of a table; None elsewhere. references: branches and tags that are erased as copies of their own.
    soft_delete_seconds: how long the store keeps what was deleted.
    """

    name: str
    location: str
    kind: PlaceKind
    files: Iterator[ListedFile]
    format: Format | None = None
    references: tuple[Ref, ...] = ()
    soft_delete_seconds: int = 0


@dataclass
class Listing:
    """Places as a stream. not_listed: grows while the stream is read, and is whole at its end."""

    places: Iterator[ListedPlace]
    not_listed: list[NotListed] = field(default_factory=list)
