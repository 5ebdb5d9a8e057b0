"""What lies in HDFS: tables, bare folders, and the places in which HDFS keeps what was deleted. Pure data."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.lake.stores.catalog_facts_of_table import NamedTable
from pii_tracer.lake.stores.hdfs.former_paths import former_paths
from pii_tracer.model.datasets import Format, Frozen
from pii_tracer.model.hive_text.layout import (
    FileText,
    TextFolder,
    TextTable,
    kept_text,
    text_at,
    text_near,
    text_properties,
)
from pii_tracer.model.locations import HdfsLocation


class HdfsKind(StrEnum):
    """What a place is for."""

    TABLE = "table"
    FOLDER = "folder"
    SNAPSHOT = "snapshot"
    TRASH = "trash"
    TEMPORARY = "temporary"


class HdfsFile(NamedTuple):
    """A file, or an empty folder (its path ends with `/`). modified: milliseconds since 1970."""

    path: str
    size: int
    modified: int
    file_id: int


class HdfsPlace(Frozen):
    """A place in HDFS with all its files, without those that lie in another place.

    format: of a table, where one format alone claims it. encrypted: something in it lies in an encryption zone;
    striped: or is erasure-coded. mark: of a snapshot: another one of the same name has another. agreed: who agreed that
    it may be deleted, and why, as the estate file says. untreated: why no step erases a table, where that was asked.
    table: its name in Spark SQL, and registered: its format, as a catalog has them; named: what else
    catalogs tell of it. partitions_of: tables whose
    partitions lie in it, outside their own folders. opaque: a catalog's title of a table whose files here are not
    its rows, though they may look so. text: of a folder of text by columns, how it is read; texts: of any other place,
    the tables of text in whose folders its files lie or lay. unreached: why engines do not reach tables there; empty:
    they do.
    """

    location: HdfsLocation
    kind: HdfsKind
    format: Format | None = None
    files: tuple[HdfsFile, ...] = ()
    encrypted: bool = False
    striped: bool = False
    mark: str = ""
    agreed: str | None = None
    untreated: str | None = None
    table: str | None = None
    registered: Format | None = None
    named: NamedTable = NamedTable()
    partitions_of: tuple[HdfsLocation, ...] = ()
    opaque: str | None = None
    text: TextTable | None = None
    texts: tuple[TextFolder, ...] = ()
    unreached: str = ""

    @property
    def is_table(self) -> bool:
        """Whether it is the folder of a table."""
        return self.kind is HdfsKind.TABLE

    @property
    def sql_name(self) -> str | None:
        """Its name in Spark SQL, as a catalog has it."""
        return self.table

    @property
    def blocks_table(self) -> bool:
        """Whether it may not lie in a table's folder; snapshots and trash in one are places apart."""
        return self.kind not in (HdfsKind.SNAPSHOT, HdfsKind.TRASH)

    @property
    def by_files(self) -> bool:
        """Whether steps work on it file by file, or on the whole of it; a table is written by its engine."""
        return self.kind is not HdfsKind.TABLE

    def rows_of(self, file: str) -> FileText | None:
        """How the rows of a file of text are read, by its path; None of one that has none."""
        return text_at(self.text, self.location.prefix, file)

    def searched_as(self, file: str) -> FileText | None:
        """The columns of text by which a file is searched, by its path."""
        if self.text is not None:
            return text_near(self.text, self.location.prefix, file)
        return kept_text(self.texts, former_paths(file)) if self.texts else None

    def fingerprint(self) -> str:
        """`sha256:…` over what lies in it: changes when a file comes, goes, is written, or is read otherwise."""
        digest = hashlib.sha256(f"{self.kind} {self.mark}\n".encode())
        digest.update("".join(text_properties(self.text).values()).encode())
        for file in self.files:
            digest.update(
                f"{file.path}\0{file.size}\0{file.modified}\0{file.file_id}\n".encode("utf-8", "surrogateescape")
            )
        return "sha256:" + digest.hexdigest()
