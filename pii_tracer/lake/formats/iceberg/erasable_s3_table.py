"""Iceberg tables in S3 that steps can erase, by the metadata that their catalogs point at: all files in one folder."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pii_tracer.lake.catalogs.registered_tables import RemoteTable
from pii_tracer.lake.formats.iceberg.erasable_store_table import (
    BRANCHED,
    NO_NAME,
    WholeTable,
    folders_beyond,
    two_names,
)
from pii_tracer.lake.formats.iceberg.metadata_json import metadata_json
from pii_tracer.lake.formats.iceberg.s3_folders import iceberg_folders
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.read_result import Found
from pii_tracer.lake.stores.s3.deletion_obstacles import Folders
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.lake.stores.s3.table_look_types import Looked, judged
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import S3Location

NOT_HERE = "the catalog's metadata file of this table is outside S3; write the metadata into the table's folder"


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
        return two_names(others)
    return NO_NAME if table.name is None else None


def _looked(table: RemoteTable, unclear: str | None, pointed: frozenset[str], folders: Folders) -> Looked:
    """What it reads counts whether it can be erased or not."""
    reads: set[S3Location] = set()

    def look() -> Found | str:
        if table.metadata is None:
            return NOT_HERE
        place = folders.path(table.location)
        reads.update(_led(place, table.metadata))
        whole = WholeTable.of(place, str(table.metadata))
        reads.update(folders_beyond(place, whole.files.referenced))
        reads.update(folders_beyond(place, whole.named))
        return unclear or whole.astray or folders.against(place) or whole.found(table.name, pointed)

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
            f"the metadata file that its catalog references cannot be read: {type(error).__name__}",
            where=str(metadata),
            todo="restore the metadata file, or drop the table from its catalog",
        ) from None
    return [folder for folder in told if not place.location.holds(folder)]
