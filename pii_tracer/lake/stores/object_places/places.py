"""A place in an object store with every version in it, as discovery found it. Pure data."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from pydantic import Field

from pii_tracer.lake.stores.catalog_facts_of_table import NamedTable
from pii_tracer.lake.stores.object_places.version_types import StoredVersion, StoreSettings, VersionState
from pii_tracer.model.datasets import Format, Frozen
from pii_tracer.model.hive_text.layout import FileText, TextTable, text_at, text_near, text_properties
from pii_tracer.model.hive_text.text_reading_rules import NO_TEXTS, TextPlaces
from pii_tracer.model.locations import ObjectLocation


class ObjectPlace(Frozen):
    """versions: sorted by key and id. table: it is the folder of a table; format: the table's, None where the metadata
    of several lies in it. table_name, registered: the name and the format that a catalog gives it; named: what else
    catalogs tell of it. opaque: a catalog's title of a table whose files here are not plain rows. text: of a folder of
    text by columns, how it is read. texts: by what rules all text in it is searched. untreated: why no step erases the
    table. read_by: tables elsewhere whose files may lie in it. agreed: who agreed that versions of deleted objects may
    go, and why, as the estate file says.
    """

    location: ObjectLocation
    versions: tuple[StoredVersion, ...]
    settings: StoreSettings
    table: bool = False
    table_name: str | None = None
    registered: Format | None = None
    opaque: str | None = None
    text: TextTable | None = None
    texts: TextPlaces = Field(default=NO_TEXTS, exclude=True)
    named: NamedTable = NamedTable()
    format: Format | None = None
    untreated: str | None = None
    read_by: tuple[str, ...] = ()
    agreed: str | None = None

    @property
    def is_table(self) -> bool:
        """Whether it is the folder of a table."""
        return self.table

    @property
    def sql_name(self) -> str | None:
        """Its name in Spark SQL, as a catalog has it."""
        return self.table_name

    @property
    def unreached(self) -> str:
        """Why engines do not reach tables there; empty: they do."""
        return self.settings.no_tables

    @property
    def blocks_table(self) -> bool:
        """Whether it may not lie in a table's folder."""
        return True

    def of_state(self, state: VersionState) -> Iterator[StoredVersion]:
        """Its versions of one state."""
        return (version for version in self.versions if version.state is state)

    def rows_of(self, key: str) -> FileText | None:
        """How the rows of an object of text are read, by its key; None of one that has none."""
        return text_at(self.text, self.location.prefix, key)

    def searched_as(self, key: str) -> FileText | None:
        """The columns of text by which an object is searched, by its key. What catalogs say counts first: they know the
        innermost table around it. A plan's copy is searched by what the plan says, and has no `texts`."""
        own = text_near(self.text, self.location.prefix, key)
        return self.texts.of(f"{self.location.store}/{key}") or own

    def fingerprint(self) -> str:
        """`sha256:…` over what can be read in it, and how. What was soft-deleted lapses by itself and is no change."""
        digest = hashlib.sha256("".join(text_properties(self.text).values()).encode())
        for version in self.versions:
            if version.state is not VersionState.SOFT_DELETED:
                digest.update(f"{version.line}\n".encode("utf-8", "surrogateescape"))
        return "sha256:" + digest.hexdigest()
