"""What the rest of the tool asks of a table format. An adapter answers it; nobody else knows the format.

A package registers an adapter in the entry-point group `pii_tracer.formats` under the format's name. Its steps, their
execution and its reader for the verifier stand in groups of their own: `pii_tracer.format_planners`,
`pii_tracer.format_executors` and `pii_tracer.format_verifiers` (docs/architecture.md, "Add a table format").
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from re import Pattern
from typing import TYPE_CHECKING, Any, ClassVar

from pii_tracer.common.plurals import counted
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Format

if TYPE_CHECKING:
    import pyarrow as pa

    from pii_tracer.lake.catalogs.glue.table_format_marks import GlueMarks
    from pii_tracer.lake.catalogs.registered_tables import RemoteTable
    from pii_tracer.lake.dataset_paths import EstatePaths
    from pii_tracer.lake.formats.retention_terms import Kept, RefRetention
    from pii_tracer.lake.inventory import InventoryGap, TableState
    from pii_tracer.lake.read_result import Found
    from pii_tracer.lake.rows.former_versions import Sought, Version
    from pii_tracer.lake.stores.any_place import AnyPlace
    from pii_tracer.lake.stores.s3.object_versions import ClientFactory
    from pii_tracer.lake.stores.s3.table_look_types import Looked, TablesAsked
    from pii_tracer.lake.stores.table_look_types import FolderAsked
    from pii_tracer.lake.stores.table_look_types import Looked as LookedByFolder
    from pii_tracer.lake.table_descriptions import FileNotes
    from pii_tracer.model.locations import S3Location


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


class NamedBy(Enum):
    """Who must name a table in S3, so that steps erase it there."""

    ESTATE_FILE = auto()
    CATALOG = auto()


class ObjectKind(Enum):
    """What a file of a table is for, beside its data."""

    LOG = auto()
    METADATA = auto()


@dataclass(frozen=True)
class CommitLog:
    """Where a table keeps a file for each of its versions.

    folders: below the table's folder, with slashes. name: of such a file, whole; its first group orders them.
    """

    folders: tuple[str, ...]
    name: Pattern[str]


def named_as_data(path: Path) -> bool:
    """Whether a file has the name of a data file, or of a log of rows."""
    return path.suffix in (".parquet", ".orc", ".avro") or ".log." in path.name


class TableFormat:
    """One format of tables in a lake: how to recognise and read it without Spark.

    name: as estate files and plans write it. title: as people write it.
    metadata_folders: names of the folders in a table's folder in which none of its data files lie.
    footer_entries: names of entries that its writers, and no others, put into the footers of Parquet files.
    actions: what its steps do, each with its roles.
    """

    name: ClassVar[Format]
    title: ClassVar[str]
    metadata_folders: ClassVar[frozenset[str]] = frozenset()
    footer_entries: ClassVar[frozenset[str]] = frozenset()
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

    # -- what discovery and catalogs ask ------------------------------------------------------------------------------

    registered_by_metadata: ClassVar[bool] = False
    """Whether a catalog names a table of this format by a metadata file, which counts wherever it lies."""
    spares_shared_files: ClassVar[bool] = False
    """Whether its clean-up takes account of files that another table reads as well."""
    erased_in_s3: ClassVar[NamedBy | None] = None
    """Who must name a table of this format in S3, so that it is erased there; None where it is erased by nobody."""

    def view_at(self, folder: Path) -> str | None:
        """What a view in a folder is called ("an Example view"); None where there is none. A view has metadata like a
        table, and no rows. A folder that cannot be listed raises OSError."""
        return None

    def is_in_glue(self, marks: GlueMarks) -> bool:
        """Whether the marks of a table in the AWS Glue Data Catalog are those of this format."""
        return False

    def location_told_by(self, metadata: Path) -> str:
        """The location that a metadata file tells of its table; asked where `registered_by_metadata`.

        Raises:
            EstateError: no such file, or not a metadata file.
        """
        raise NotImplementedError

    def folders_told_by(self, metadata: bytes, file: S3Location) -> tuple[tuple[S3Location, ...], str | None]:
        """The folders in S3 that a metadata file there leads to, the table's own first, none inside another; and what
        of it leads out of S3, if anything. Asked where `registered_by_metadata`.

        Raises:
            OSError, EOFError, ValueError, KeyError, TypeError, AttributeError: not a table's metadata.
        """
        raise NotImplementedError

    def tables_in_s3(self, asked: TablesAsked) -> Sequence[Looked]:
        """Its tables among those that are named in S3: the state of each, or why nothing is erased in it."""
        return ()

    named_by_catalog: ClassVar[bool] = False
    """Whether a catalog alone says that a folder in a store is a table, and what counts there (`FolderAsked.notes`)."""

    erased_in: ClassVar[frozenset[str]] = frozenset()
    """Stores, by their scheme (`hdfs`, `gs`), in which a table of this format is erased, known by its folder."""

    def look_in_store(self, asked: FolderAsked) -> LookedByFolder:
        """A table in one of these stores, or why nothing is erased in it.

        Raises:
            EstateError: its metadata cannot be read.
            OSError: the store refuses.
        """
        raise NotImplementedError

    def object_kind(self, folders: Sequence[str], name: str) -> ObjectKind | None:
        """What a file of a table is for, by its folders, from the outermost, and its name; None of data."""
        return ObjectKind.METADATA if not self.metadata_folders.isdisjoint(folders) else None

    # -- what rows are read by, without Spark -------------------------------------------------------------------------

    added_columns: ClassVar[str | None] = None
    """How the names of columns begin that the format itself writes beside the table's, made of them; None: there are
    none."""

    changes_rows_by: ClassVar[tuple[str, ...]] = ()
    """Columns of the format's own by which its engine finds the rows that a statement changes; none where it finds them
    by the statement's condition. Several rows with the same values are one to it."""

    purges_dropped: ClassVar[bool] = False
    """Whether the plan's steps write every file again that has a column which the table dropped."""

    def data_files(self, state: TableState, paths: EstatePaths) -> tuple[AnyPlace, ...]:
        """Files that the current rows are read from, sorted.

        Raises:
            EstateError: the table's metadata cannot be read.
        """
        raise NotImplementedError

    def read_columns(self, state: TableState, columns: Sequence[str], paths: EstatePaths) -> pa.Table:
        """The current rows of a table, without those that are deleted, with at least these top-level columns.

        Whatever its library raises becomes an EstateError of the caller.
        """
        raise NotImplementedError

    def read_file_rows(
        self, state: TableState, columns: Sequence[str], files: Collection[AnyPlace], paths: EstatePaths
    ) -> Iterator[pa.RecordBatch]:
        """The current rows in some of its data files, with these columns in this order; one a file lacks is NULL.

        Whatever its library raises becomes an EstateError of the caller.
        """
        raise NotImplementedError

    def field_names(self, state: TableState, paths: EstatePaths) -> Iterable[tuple[str, str]]:
        """What top-level columns are called in files, each with the name of now. A name may mean several columns, and
        one that is no more, of which the name is empty."""
        return [(column.name, column.name) for column in state.columns]

    def fields_in_files(self, state: TableState, paths: EstatePaths) -> Iterable[tuple[str, bool]]:
        """Labels of fields at any depth, by the names that files may have, and whether the table still has the field.

        One label may be that of a field that is no more and of one of now. Only where a dropped field stays in files.
        """
        return ()

    def former_versions(self, state: TableState, sought: Sought, paths: EstatePaths) -> Iterator[Version]:
        """The retained versions, the current one first and then the newest; none where `unread_history` says why."""
        return iter(())

    def unread_history(self, state: TableState) -> str | None:
        """Why rows of former versions are not read; None where they are, or where the table keeps none."""
        if state.versions <= 1:
            return None
        name = state.table or state.location
        return (
            f"{name} keeps {counted(state.versions, 'version')}, but the tool does not read former rows of "
            f"{self.title} tables"
        )

    def may_hold_rows(self, path: Path) -> bool:
        """Whether a file below a table's folder, in no folder of metadata, may hold rows of whatever version."""
        return True

    def own_texts(self, state: TableState, paths: EstatePaths) -> Mapping[str, Any]:
        """By kind of place (`lake.table_texts`): documents with the texts that owners of a table wrote in it.

        Raises:
            EstateError: the table's metadata cannot be read.
        """
        from pii_tracer.lake.table_descriptions import PROPERTIES

        return {PROPERTIES: state.properties}

    def notes_of_files(self, state: TableState, paths: EstatePaths) -> Iterator[FileNotes]:
        """What the table's metadata says of each data file of now; nothing where the files tell all of it themselves.

        Raises:
            EstateError: the table's metadata cannot be read.
        """
        return iter(())

    # -- what a run's witness asks ------------------------------------------------------------------------------------

    commit_log: ClassVar[CommitLog | None] = None
    """Where a table's versions are written down, a file for each; None where every file is looked at instead."""

    # -- what retention, lineage and the doctor ask --------------------------------------------------------------------

    keeps_history: ClassVar[bool] = False
    """Whether tables keep old data by themselves; else there are no settings to compare."""
    has_references: ClassVar[bool] = False
    """Whether tables have branches or tags that keep old data."""
    where_not_stored: ClassVar[str] = "left to the table's owner"
    """What to do about settings that do not stand in the table."""
    caseless_properties: ClassVar[tuple[str, ...]] = ()
    """Names of properties that SQL may write in any case, as the table keeps them."""
    needs_catalog: ClassVar[bool] = False
    """Whether engines reach a table by its name in a catalog alone; else its place does."""
    not_swept: ClassVar[str | None] = "the tool cannot remove only their old files"
    """Why `retention sweep` leaves tables alone; None where it sweeps them."""
    sweeps_partitions: ClassVar[bool] = False
    """Whether a sweep can keep the files of one partition longer than others."""
    sweeps_beside_strange_files: ClassVar[bool] = False
    """Whether a sweep in S3 tells files that are not the table's own, and leaves them."""
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

    def reference_retention(self, location: AnyPlace, metadata: str | None) -> tuple[RefRetention, ...]:
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

    # -- signs of a table in listings ----------------------------------------------------------------------------

    sign_folders: ClassVar[frozenset[str]] = frozenset()
    """Names of folders that lie in the folders of such tables and of no others."""
    sign_endings: ClassVar[tuple[str, ...]] = ()
    """How names of files end that lie in a metadata folder of such tables and nowhere else."""

    def owns_place(self, parts: tuple[str, ...]) -> bool:
        """Whether a place with the sign of a table belongs to the table around it. parts: its path below that table."""
        return parts[:1] != () and parts[0] in self.metadata_folders

    def is_signed(self, names: Iterable[str]) -> bool:
        """Whether a folder of `metadata_folders` is a table's, and not only called so. names: of its files."""
        return True

    def listed_signs(self) -> tuple[str, ...]:
        """The signs as regular expressions of the end of a table's folder's path and of what follows it."""
        folders = tuple(f"{re.escape(name)}/" for name in sorted(self.sign_folders))
        ends = "|".join(map(re.escape, self.sign_endings))
        within = sorted(self.metadata_folders) if ends else ()
        return folders + tuple(f"{re.escape(name)}/[^/]*({ends})" for name in within)
