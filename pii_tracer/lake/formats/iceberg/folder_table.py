"""Iceberg tables in HDFS and object stores that steps can erase: named by a catalog, all files in one folder."""

from __future__ import annotations

from pii_tracer.lake.formats.iceberg.table_in_store import BRANCHED, NO_NAME, WholeTable, folders_beyond, two_names
from pii_tracer.lake.stores.looked_table import FolderAsked, Looked

_NO_CATALOG = (
    "Iceberg tables are erased there when a catalog names them: add their catalog to the estate file; or, where it was"
    " dropped, remove the folder"
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
    against = _unclear(asked) or whole.astray
    return Looked(against or whole.found(asked.name, asked.pointed), reads)


def _unclear(asked: FolderAsked) -> str | None:
    """Why what the catalogs tell does not let it be erased."""
    if asked.branched:
        return BRANCHED
    if len(asked.titles) > 1:
        return two_names(asked.titles)
    return NO_NAME if asked.name is None else None
