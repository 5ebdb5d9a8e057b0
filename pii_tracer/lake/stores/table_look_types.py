"""A table in a store that is known by its folder: what is asked of its format, and what looking at it gave."""

from __future__ import annotations

from dataclasses import dataclass

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.read_result import Found
from pii_tracer.lake.stores.any_place import FolderPath
from pii_tracer.model.locations import HdfsLocation, ObjectLocation

TableLocation = HdfsLocation | ObjectLocation


@dataclass(frozen=True)
class FolderAsked:
    """estate: that it is in. place: the table's folder. name: in Spark SQL, as the estate file or a catalog has it.

    titles: what catalogs call it, as people know it. metadata: the file that its catalog points at (Iceberg); pointed:
    all such files in this kind of store. branched: the catalog has branches. notes: what the catalog says of it beside,
    as the format's adapter reads it.
    """

    estate: Estate
    place: FolderPath
    name: str | None
    titles: tuple[str, ...] = ()
    metadata: str | None = None
    pointed: frozenset[str] = frozenset()
    branched: bool = False
    notes: str | None = None


@dataclass(frozen=True)
class Looked:
    """One table. result: its state, or why nothing is erased in it. reads: places outside of its folder in which files
    of it lie, or may lie."""

    result: Found | str
    reads: frozenset[TableLocation] = frozenset()
