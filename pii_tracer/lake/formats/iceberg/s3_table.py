"""Iceberg tables in S3 that steps can erase, by the metadata that their catalogs point at: all files in one folder."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pii_tracer.lake.catalogs.registered_tables import RemoteTable
from pii_tracer.lake.formats.iceberg.metadata_json import metadata_json
from pii_tracer.lake.formats.iceberg.properties import LEADING
from pii_tracer.lake.formats.iceberg.s3_folders import iceberg_folders
from pii_tracer.lake.formats.iceberg.stray_files import other_metadata_in, strange_objects
from pii_tracer.lake.formats.iceberg.table_state import (
    At,
    TableFiles,
    files_of,
    gaps_of,
    load_iceberg,
    state_of,
)
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.read_result import Found
from pii_tracer.lake.stores.s3.deletion_obstacles import Folders
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.lake.stores.s3.table_reading import Looked, judged
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import S3Location

if TYPE_CHECKING:
    from pyiceberg.table import StaticTable

BRANCHED = "it is kept by a catalog with branches (Nessie), of which only tables of this machine are erased"
NO_NAME = "a part of its name in the catalog has a dot, which cannot be told from a namespace: rename it"
NOT_HERE = "its catalog points at a metadata file outside of S3: have its metadata written in its folder"


def look_at_iceberg(
    registered: Sequence[RemoteTable], names: Mapping[str, Collection[str]], folders: Folders
) -> list[Looked]:
    """The Iceberg tables among those that catalogs name. names: by location, of all that anybody names there."""
    tables = [table for table in registered if table.format is ICEBERG]
    pointed = frozenset(str(table.metadata) for table in tables)
    return [_looked(table, _unclear(table, names), pointed, folders) for table in tables]


def _unclear(table: RemoteTable, names: Mapping[str, Collection[str]]) -> str | None:
    """Why what the catalogs tell does not let it be erased."""
    others = names[str(table.location)]
    if table.branched:
        return BRANCHED
    if len(others) > 1:
        told = ", ".join(sorted(others))
        return f"it has more than one name ({told}), and erasing it by one breaks it under the other: drop all but one"
    return NO_NAME if table.name is None else None


def _looked(table: RemoteTable, unclear: str | None, pointed: frozenset[str], folders: Folders) -> Looked:
    """What it reads counts whether it can be erased or not."""
    reads: set[S3Location] = set()

    def look() -> Found | str:
        if table.metadata is None:
            return NOT_HERE
        place = folders.path(table.location)
        reads.update(_led(place, table.metadata))
        whole = _Whole.of(place, table.metadata)
        reads.update(_parents(place, whole.files.referenced))
        reads.update(_parents(place, whole.named))
        return unclear or whole.astray or folders.against(place) or whole.found(table, pointed)

    result = judged(look)
    return Looked(table, unclear or result, reads)


def _led(place: S3Path, metadata: S3Location) -> list[S3Location]:
    """The folders beyond its own that the metadata file by itself tells: manifests may be damaged.

    Raises:
        EstateError: there is no such file, or it is no table's metadata.
        OSError: S3 refuses.
    """
    try:
        told, _ = iceberg_folders(metadata_json(place.placed(str(metadata)).open("rb").read()), metadata)
    except (FileNotFoundError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EstateError(
            f"the metadata file that its catalog points at cannot be read: {type(error).__name__}",
            where=str(metadata),
            todo="restore it, or drop the table from its catalog",
        ) from None
    return [folder for folder in told if not place.location.holds(folder)]


@dataclass(frozen=True)
class _Whole:
    """A table with all that its metadata names."""

    place: S3Path
    table: StaticTable
    files: TableFiles[S3Path]

    @classmethod
    def of(cls, place: S3Path, metadata: S3Location) -> _Whole:
        """Raises EstateError: something cannot be read, or a data file does not lie in S3."""
        table = load_iceberg(place, str(metadata))
        return cls(place, table, files_of(table, place))

    @cached_property
    def named(self) -> frozenset[S3Path]:
        """Every file, of metadata too. Raises EstateError: one does not lie in S3."""
        return self.files.referenced | _described(self.table, self.files, self.place)

    @property
    def astray(self) -> str | None:
        """Why its files are not all in its folder, which is the one that its metadata file lies below.

        Raises:
            EstateError: they are led out of S3.
        """
        own = self.place.placed(self.table.location())
        if own != self.place:
            return f"its metadata file does not lie in its folder, {own}: have its metadata written there"
        for name in LEADING:
            text = self.table.properties.get(name)
            if text and not (path := self.place.placed(text)).is_relative_to(self.place):
                return (
                    f"its property {name} leads new files out of its folder, to {path}: unset it, and have the files"
                    " written again in the table's folder"
                )
        beyond = sum(not path.is_relative_to(self.place) for path in self.named)
        if beyond:
            return (
                f"{beyond} file(s) that its metadata names lie outside its folder: have them written again in it"
                " (rewrite_data_files), and expire the snapshots that name them"
            )
        return None

    def found(self, table: RemoteTable, pointed: frozenset[str]) -> Found:
        """Its state and gaps. pointed: metadata files that catalogs point at.

        Raises:
            OSError: S3 refuses.
        """
        where = At(table.location.dataset, table.name, str(self.place), self.table.metadata_location)
        state = state_of(self.table, self.files, where)
        there = {path: size for path, size, _ in self.place.walk()}
        current = (str(self.place.placed(file.file_path)) for file in self.files.current)
        missing = sorted(path for path in current if path not in there)
        others = other_metadata_in(self.table, self.place, there, pointed)
        strange = strange_objects(there, frozenset(map(str, self.named)))
        return Found(state, gaps_of(state, missing, others, strange))


def _parents(place: S3Path, files: Iterable[S3Path]) -> set[S3Location]:
    """The folders of those files that lie outside of a place."""
    return {file.location.parent for file in files if not file.is_relative_to(place)}


def _described(table: StaticTable, files: TableFiles[S3Path], place: S3Path) -> frozenset[S3Path]:
    """Files of metadata that a table names, its metadata file itself among them.

    https://iceberg.apache.org/spec/#table-metadata-fields
    """
    told = table.metadata
    texts = [table.metadata_location, *(entry.metadata_file for entry in told.metadata_log), *files.manifests]
    texts += [snapshot.manifest_list for snapshot in told.snapshots]
    texts += [entry.statistics_path for entry in (*told.statistics, *told.partition_statistics)]
    return frozenset(map(place.placed, texts))
