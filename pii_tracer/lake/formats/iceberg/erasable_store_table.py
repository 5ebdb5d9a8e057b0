"""Iceberg tables in stores, by the metadata that their catalogs point at: the same in every store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pii_tracer.common.plurals import counted
from pii_tracer.lake.formats.iceberg.stray_files import other_metadata_in, strange_objects
from pii_tracer.lake.formats.iceberg.table_state import (
    At,
    TableFiles,
    files_of,
    gaps_of,
    load_iceberg,
    state_of,
)
from pii_tracer.lake.formats.iceberg.vocabulary import LEADING
from pii_tracer.lake.read_result import Found
from pii_tracer.lake.stores.any_place import RemotePath
from pii_tracer.lake.stores.table_look_types import FolderAsked, Looked
from pii_tracer.model.locations import engines_read

if TYPE_CHECKING:
    from pyiceberg.table import StaticTable

BRANCHED = (
    "it belongs to a catalog with branches (Nessie), and the tool erases only tables on this machine for such catalogs"
)
NO_NAME = (
    "a part of its name in the catalog contains a dot, which Spark takes for the end of a namespace: rename the table"
)


def two_names(names: Iterable[str]) -> str:
    """Why a table that catalogs name more than once is not erased."""
    told = ", ".join(sorted(names))
    return (
        f"it has more than one name ({told}), and an erasure under one name breaks it under the others: drop all "
        "names except one"
    )


@dataclass(frozen=True)
class WholeTable:
    """A table with all that its metadata names."""

    place: RemotePath
    table: StaticTable
    files: TableFiles[Any]

    @classmethod
    def of(cls, place: RemotePath, metadata: str) -> WholeTable:
        """Raises EstateError: something cannot be read, or a data file lies in another store."""
        table = load_iceberg(place, metadata)
        return cls(place, table, files_of(table, place))

    @cached_property
    def named(self) -> frozenset[Any]:
        """Every file, of metadata too. Raises EstateError: one lies in another store."""
        return self.files.referenced | _described(self.table, self.files, self.place)

    def _placed(self, text: str) -> Any:
        return self.place.placed(text)

    @property
    def astray(self) -> str | None:
        """Why its files are not all in its folder, which is the one that its metadata file lies below.

        Raises:
            EstateError: they are led out of its store.
        """
        own = self.place.placed(self.table.location())
        if own != self.place:
            return f"its metadata file is not in its folder, {own}: write the metadata into that folder"
        for name in LEADING:
            text = self.table.properties.get(name)
            if text and not (path := self._placed(text)).is_relative_to(self.place):
                return (
                    f"its property {name} puts new files outside of its folder, in {path}: unset the property, and "
                    "rewrite the files into the table's folder"
                )
        beyond = sum(not path.is_relative_to(self.place) for path in self.named)
        if beyond:
            return (
                f"its metadata references {counted(beyond, 'file')} outside of its folder: rewrite them into the "
                "folder (rewrite_data_files), and expire the snapshots that reference them"
            )
        return None

    @property
    def unreached(self) -> str | None:
        """Why engines do not reach its files: Spark takes the names in its metadata as they are."""
        current = (file.file_path for file in self.files.current)
        texts = [*_told(self.table, self.files), self.table.location(), *current]
        other = next((text for text in texts if not engines_read(text)), None)
        return other and (
            f"its metadata references files with {_store(other)}, but Spark can access only "
            f"{_store(str(self.place))}. Create the table again there, then drop this table with its files"
        )

    def found(self, name: str | None, pointed: frozenset[str]) -> Found:
        """Its state and gaps. name: in Spark SQL. pointed: metadata files that catalogs point at.

        Raises:
            OSError: the store refuses.
        """
        where = At(self.place.location.dataset, name, str(self.place), self.table.metadata_location)
        state = state_of(self.table, self.files, where)
        there = {path: size for path, size, _ in self.place.walk()}
        current = (str(self.place.placed(file.file_path)) for file in self.files.current)
        missing = sorted(path for path in current if path not in there)
        others = other_metadata_in(self.table, self.place, there, pointed)
        strange = strange_objects(there, frozenset(map(str, self.named)))
        return Found(state, gaps_of(state, missing, others, strange))


def folders_beyond(place: RemotePath, files: Iterable[Any]) -> set[Any]:
    """The folders of those files that lie outside of a place."""
    return {file.location.parent for file in files if not file.is_relative_to(place)}


def _store(address: str) -> str:
    return "/".join(address.split("/")[:3])


def _described(table: StaticTable, files: TableFiles[Any], place: RemotePath) -> frozenset[Any]:
    """Files of metadata that a table names, its metadata file itself among them.

    https://iceberg.apache.org/spec/#table-metadata-fields
    """
    return frozenset(map(place.placed, _told(table, files)))


def _told(table: StaticTable, files: TableFiles[Any]) -> list[str]:
    told = table.metadata
    texts = [table.metadata_location, *(entry.metadata_file for entry in told.metadata_log), *files.manifests]
    texts += [snapshot.manifest_list for snapshot in told.snapshots]
    return [*texts, *(entry.statistics_path for entry in (*told.statistics, *told.partition_statistics))]


_NO_CATALOG = (
    "the tool erases Iceberg tables there only if a catalog names them: add their catalog to the estate file. If the "
    "table was dropped, remove the folder"
)


def look_at_iceberg(asked: FolderAsked) -> Looked:
    """An Iceberg table, or why nothing is erased in it. What it reads counts either way.

    Raises:
        EstateError: its metadata or manifests cannot be read, or name a file in another store.
        OSError: the store refuses.
    """
    if asked.metadata is None:
        return Looked(_NO_CATALOG)
    whole = WholeTable.of(asked.place, asked.metadata)
    reads = frozenset(folders_beyond(asked.place, whole.named))
    against = _unclear(asked) or whole.unreached or whole.astray
    return Looked(against or whole.found(asked.name, asked.pointed), reads)


def _unclear(asked: FolderAsked) -> str | None:
    """Why what the catalogs tell does not let it be erased."""
    if asked.branched:
        return BRANCHED
    if len(asked.titles) > 1:
        return two_names(asked.titles)
    return NO_NAME if asked.name is None else None
