"""What every catalog answers: names of tables, where they lie, and which metadata file of a table counts.

Where a catalog points at one metadata file of each table, the folder alone does not tell which one counts, since a
commit that failed leaves a file too (https://iceberg.apache.org/spec/#metastore-tables). What a catalog does not answer
is a gap, and the rest of it is read all the same.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar

from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.inventory import InventoryGap, RefKind
from pii_tracer.model.datasets import Column, Format
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.hive_text.layout import TextTable


class Capability(Enum):
    """What a type of catalogs has. What it does not have, nobody looks for there."""

    TABLES = "tables"
    """It lists the tables that it has, each with its place."""
    FOLDERS = "folders"
    """Its warehouse is a folder of this machine, and a table's name is its place below that."""
    VIEWS = "views"
    """It has views beside tables. A view has no rows: it is never listed as a table."""
    REFERENCES = "references"
    """It has branches and tags, each of which can have another state of a table."""
    TEXTS = "texts"
    """It tells what it keeps of tables beside their rows: comments, properties, statistics."""
    TABLE_VERSIONS = "table versions"
    """It keeps what it knew of a table before: former columns, comments and properties."""


@dataclass(frozen=True)
class Head:
    """Where a catalog with branches (Nessie) names a table: on which reference, and with which snapshot.

    default: whether it is the branch that plain table names mean.
    """

    catalog: str
    ref: str
    kind: RefKind
    snapshot: int | None
    default: bool


@dataclass(frozen=True)
class PartitionsApart:
    """Partitions outside of their table's folder that are not in HDFS.

    alike: places of those in S3 that are read as the table is, and whose names tell of nobody. outside: how many there
    are, and partitions: how many the table has. evidence: as gaps of the table have it. move: how an owner moves one.
    placeless: how many of those outside have no place.
    """

    alike: tuple[str, ...]
    outside: int
    partitions: int
    evidence: str
    move: str
    placeless: int = 0


@dataclass(frozen=True)
class CatalogEntry:
    """A table as a catalog names it. name: as Spark SQL writes it; None where it cannot be written there.

    location and metadata: as the catalog writes them, paths or URIs; an Iceberg table may have no location here, it
    then stands in its metadata. head: only in catalogs with branches, which have an entry for each reference.
    partitions: places in HDFS of its partitions outside its folder, as the catalog writes them. text: of a table of
    text by columns, how it is read. notes: what the catalog says of it beside, for the adapter of its format.
    elsewhere: places of all partitions outside its folder, each as often as it is named. apart: what is to be said of
    those that are not in HDFS. keys: its partition columns; untold: those of them whose values the catalog alone has,
    of some partitions in its folder.
    """

    name: str | None
    parts: tuple[str, ...]
    format: Format
    location: str | None
    metadata: str | None = None
    head: Head | None = None
    partitions: tuple[str, ...] = ()
    text: TextTable | None = None
    notes: str | None = None
    elsewhere: tuple[str, ...] = ()
    apart: PartitionsApart | None = None
    keys: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()


@dataclass(frozen=True)
class Opaque:
    """A table whose files are not its rows, though each of them may look like a file of rows.

    title: what people know it by. places: its folder and those of its partitions, as the catalog writes them. Data
    files there are searched as files of no known format, and belong to no table, but for tables that lie deeper. name,
    location, elsewhere, keys, untold: as of `CatalogEntry`.
    """

    title: str
    places: tuple[str, ...]
    name: str | None = None
    location: str | None = None
    elsewhere: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()


@dataclass(frozen=True)
class FilePlace:
    """A folder that a catalog names and that is no table. title: what people know it by.

    place: as the catalog writes it. whole: all that lies there is one thing of the catalog (a volume); otherwise tables
    may lie there, and anything else.
    """

    title: str
    place: str
    whole: bool


@dataclass(frozen=True)
class CatalogView:
    """A view with its query. catalog: the catalog's key in the estate file; name: as SQL calls the view.

    dialect: of the query. written_in: the catalog and schema, or the schema, that names in it without one belong to.
    """

    catalog: str
    name: str
    query: str
    dialect: str
    written_in: tuple[str, ...]
    columns: tuple[Column, ...] = ()


@dataclass(frozen=True)
class Listing:
    """What one catalog answered. former: metadata files of tables that only its history still names, one a folder.

    committed: every metadata file that its history names, where an account was used that may not see all of it. views:
    those whose queries are read as lineage. unread: whether tables or partitions of a metastore may be missing here.
    created: by the catalog's key, the names of its tables and views with when they were made (microseconds since 1970,
    0 for unknown), where the catalog tells it.
    """

    entries: tuple[CatalogEntry, ...]
    gaps: tuple[InventoryGap, ...]
    former: tuple[str, ...] = ()
    committed: frozenset[str] | None = None
    opaque: tuple[Opaque, ...] = ()
    places: tuple[FilePlace, ...] = ()
    views: tuple[CatalogView, ...] = ()
    unread: bool = False
    created: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class CatalogText:
    """What a catalog itself keeps of a table, which no delete of rows changes. parts: namespace and table.

    place: the kind of text, as people call it. document: parsed, as engines' metadata is searched: bounds are
    `{"columnName": …, "minValue": …}`, values of partitions `{"partition": {column: value}}`. unread: why some of it
    was not read.
    """

    parts: tuple[str, ...]
    place: str
    document: Any = None
    unread: str | None = None


class TableCatalog:
    """One type of catalogs. The estate file's part about one (`Catalog`) is handed to each method.

    It is registered under the type's name, as estate files write it. needed: keys that the estate file must give;
    optional: keys that it may give. uri: what the whole of `uri` looks like; a URI never holds credentials.
    drafted_name: what a first estate file calls it; None where no place names one. default_format: what a table is that
    was created there without a word about its format; None where the engine's own default counts. text_remedy: how an
    owner takes a value out of what `texts` tells. swept: whether `retention sweep` was tried on tables whose metadata
    such a catalog points at.
    no_swap: why the metadata file of an Iceberg table cannot be replaced by compare-and-swap; None where
    `executors.catalogs.base.CatalogOnSpark.metadata_pointer` does it.
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset()
    needed: ClassVar[frozenset[str]] = frozenset()
    optional: ClassVar[frozenset[str]] = frozenset()
    uri: ClassVar[str | None] = None
    drafted_name: ClassVar[str | None] = None
    default_format: ClassVar[Format | None] = None
    swept: ClassVar[bool] = False
    text_remedy: ClassVar[str] = ""
    no_swap: ClassVar[str | None] = "the tool cannot replace the metadata files of its tables by compare-and-swap"

    def can(self, capability: Capability) -> bool:
        """Whether catalogs of this type have something."""
        return capability in self.capabilities

    def drafted(self, place: str) -> dict[str, str] | None:
        """What a first estate file says of it, where a place (its URI) is such a catalog's; None where it is not."""
        named = self.drafted_name is not None and self.uri is not None and re.fullmatch(self.uri, place)
        return {"uri": place} if named else None

    def own_names(self, name: str, catalog: Catalog, base: Path) -> tuple[str, ...]:
        """What such a catalog calls itself, whatever the estate file calls it; several where one place has several
        catalogs. Empty where it has no name of its own, or does not answer. name, base: as of `tables`."""
        return ()

    def warehouse_around(self, table: Path) -> Path | None:
        """The warehouse that a table's folder looks like being in, where such a catalog names tables by folders."""
        return None

    def tables(self, name: str, catalog: Catalog, base: Path) -> Listing:
        """Every table that a catalog has; asked where it has `Capability.TABLES`.

        What it refuses, or does not answer in time, is a gap of the kind `catalog_unreadable`, and never nothing.
        name: its key in the estate file. base: folder of the estate file.

        Raises:
            EstateError: its client library is not installed.
        """
        raise NotImplementedError

    def texts(self, name: str, catalog: Catalog, base: Path) -> Iterator[CatalogText]:
        """What it keeps of its tables beside rows; asked where it has `Capability.TEXTS`, while a plan is made.

        What it refuses is told as unread.

        Raises:
            EstateError: its client library is not installed.
        """
        raise NotImplementedError


def catalog_gap(name: str, kind: GapKind, reason: str, *parts: str) -> InventoryGap:
    """A gap of the catalog called `name`; parts: namespace and table that it is about."""
    return InventoryGap(dataset=None, kind=kind, reason=reason, evidence=catalog_evidence(name, *parts))


def catalog_evidence(name: str, *parts: str) -> str:
    """How gaps name a catalog, or a namespace or table of it."""
    return f"catalog {'.'.join((name, *parts))}"


def sql_name(*parts: str) -> str | None:
    """The dotted name of a table; None where a part holds a dot, which dotted names cannot tell from a namespace."""
    return None if any("." in part or not part for part in parts) else ".".join(parts)


def in_session_catalog(name: str) -> bool:
    """Whether a dotted table name can be one of Spark's session catalog, which has schemas and no catalogs in them."""
    return name.removeprefix("spark_catalog.").count(".") == 1


def secret(catalog: str, what: str) -> str | None:
    """A credential of a catalog: the environment variable `PII_TRACER_CATALOG_<NAME>_<WHAT>`."""
    return os.environ.get(secret_name(catalog, what)) or None


def secret_name(catalog: str, what: str) -> str:
    """The environment variable that has a credential of a catalog."""
    return f"PII_TRACER_CATALOG_{re.sub(r'[^A-Za-z0-9]', '_', catalog).upper()}_{what}"
