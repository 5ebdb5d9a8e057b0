"""What the rest of the tool asks of a table format. An adapter answers it; nobody else knows the format.

A package registers an adapter in the entry-point group `pii_tracer.formats` under the format's name. Its steps, their
execution and its reader for the verifier stand in groups of their own: `pii_tracer.format_planners`,
`pii_tracer.format_executors` and `pii_tracer.format_verifiers` (docs/architecture.md, "Add a table format").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pii_tracer.model.actions import Action
from pii_tracer.model.identities import Format

if TYPE_CHECKING:
    from pii_tracer.config.catalogs import CatalogType
    from pii_tracer.lake.catalogs.registered_tables import RemoteTable
    from pii_tracer.lake.dataset_paths import EstatePaths
    from pii_tracer.lake.formats.kept_settings import Kept, RefRetention
    from pii_tracer.lake.inventory import InventoryGap
    from pii_tracer.lake.read_result import Found
    from pii_tracer.lake.stores.s3.object_versions import ClientFactory
    from pii_tracer.lake.stores.s3.s3_path import S3Path


class Role(Enum):
    """What an action does to a table, for rules that hold in every format."""

    ON_ROWS = auto()
    """Changes the rows of the current version: deletes, masks, or writes the table again."""
    COUNTS_ROWS = auto()
    """Counts the rows of persons that it took out."""
    REBUILDS = auto()
    """Writes the table again by its recorded query."""
    REWRITES_FILES = auto()
    """Writes data files or their lists again; a shallow clone must not read them any more."""
    LISTS_FILES_AGAIN = auto()
    """Writes the table's lists of files again, for every reference at once."""
    FORGETS_VERSIONS = auto()
    """Takes old versions out of the table's metadata."""
    REMOVES_FILES = auto()
    """Removes or replaces files that another table may read."""
    WAITS = auto()
    """Waits for something outside, and changes nothing."""


class TableFormat:
    """One format of tables in a lake: how to recognise and read it without Spark.

    name: as estate files and plans write it. title: as people write it.
    metadata_folders: names of the folders in a table's folder in which none of its data files lie.
    actions: what its steps do, each with its roles.
    """

    name: ClassVar[Format]
    title: ClassVar[str]
    metadata_folders: ClassVar[frozenset[str]] = frozenset()
    actions: ClassVar[Mapping[Action, frozenset[Role]]] = {}

    def is_table(self, folder: Path) -> bool:
        """Whether a folder is a table of this format, by what lies in it. One that cannot be listed raises OSError."""
        raise NotImplementedError

    def read_state(self, folder: Path, paths: EstatePaths) -> Found:
        """The table in a folder: schema, version, references, properties, and what could not be told.

        Raises:
            EstateError: its metadata cannot be read.
        """
        raise NotImplementedError

    keeps_history: ClassVar[bool] = False
    """Whether tables keep old data by themselves; else there are no settings to compare."""
    has_references: ClassVar[bool] = False
    """Whether tables have branches or tags that keep old data."""
    where_not_stored: ClassVar[str] = "left to the table's owner"
    """What to do about settings that do not stand in the table."""
    caseless_properties: ClassVar[tuple[str, ...]] = ()
    """Names of properties that SQL may write in any case, as the table keeps them."""
    catalog_types: ClassVar[frozenset[CatalogType]] = frozenset()
    """Catalogs in which a table is of this format where its statement does not say what it is."""
    needs_catalog: ClassVar[bool] = False
    """Whether engines reach a table by its name in a catalog alone; else its place does."""
    not_swept: ClassVar[str | None] = "nothing is known that removes their old files alone"
    """Why `retention sweep` leaves tables alone; None where it sweeps them."""
    swept_catalogs: ClassVar[frozenset[CatalogType]] = frozenset()
    """Catalogs whose tables are swept although the catalog points at their metadata."""
    sweeps_partitions: ClassVar[bool] = False
    """Whether a sweep can keep the files of one partition longer than others."""
    sweeps_beside_strange_files: ClassVar[bool] = False
    """Whether a sweep in S3 tells files that are not the table's own, and leaves them."""
    folder_catalogs: ClassVar[frozenset[CatalogType]] = frozenset()
    """Catalogs whose warehouse is a folder of this machine."""
    takes_over_folders: ClassVar[bool] = False
    """Whether SQL makes a table of a folder of Parquet files in place (`CONVERT TO` the format's name)."""
    libraries: ClassVar[tuple[str, ...]] = ()
    """Distributions that read and write tables, as package indexes name them."""
    columns_by_path: ClassVar[bool] = True
    """Whether a table that is read by its path in SQL has the columns that discovery tells of it."""
    table_engines: ClassVar[tuple[str, ...]] = ()
    """What other databases call the engine of a table that is of this format."""
    functions_of_tables: ClassVar[frozenset[str]] = frozenset()
    """SQL functions that read a table by its name, in lower case."""
    functions_of_paths: ClassVar[frozenset[str]] = frozenset()
    """SQL functions that read a table by its path, in lower case."""

    def kept_by(self, properties: Mapping[str, str], refs: Sequence[RefRetention]) -> tuple[Kept, ...]:
        """The settings of a table that decide how long old data stays. Formats without history have none."""
        return ()

    def setting_for(self, setting: str, days: int) -> str | None:
        """What a setting has to be to keep old data for some days; None where that is not the tool's to say."""
        return None

    def keeps_data(self, setting: str) -> bool:
        """Whether a setting of `kept_by` decides over files with rows; else only over the table's notes about them."""
        return True

    def reference_retention(self, location: Path | S3Path, metadata: str | None) -> tuple[RefRetention, ...]:
        """Branches and tags with what each keeps, sorted by name. metadata: what the table's catalog points at.

        Raises:
            EstateError: the table's metadata cannot be read.
        """
        return ()

    def tables_of_sweeps_in_s3(
        self, tables: Sequence[RemoteTable], clients: ClientFactory
    ) -> tuple[Sequence[Found], Sequence[InventoryGap]]:
        """This format's tables in S3 among some, also such as no step erases, and gaps where one cannot be read."""
        return (), ()
