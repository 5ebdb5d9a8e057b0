"""Bare folders in HDFS and in object stores, as tables of which the columns are known before a search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.formats.plain_files.store_folder import Bare, StoredFolder, look_at_folder
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lake.stores.hdfs.hdfs_path import HdfsPath
from pii_tracer.lake.stores.hdfs.places import HdfsKind, HdfsPlace
from pii_tracer.lake.stores.hdfs.webhdfs import WebHdfs, client_at
from pii_tracer.lake.stores.object_places.places import ObjectPlace
from pii_tracer.lake.stores.object_places.protocol import VersionedStore, versioned_store
from pii_tracer.lake.stores.object_places.version_file import VersionFile
from pii_tracer.lake.stores.object_places.version_types import VersionState
from pii_tracer.lake.stores.table_look_types import TableLocation
from pii_tracer.model.locations import in_place, location_in_place

Names = Mapping[TableLocation, str]


def bare_folders(estate: Estate, inventory: Inventory, *, named: bool = False) -> Iterator[Bare]:
    """Every folder of which the files, or the live objects, are data files of one format. named: only those with a name
    in SQL."""
    names = declared_names(estate)
    for place in inventory.hdfs:
        if place.kind is HdfsKind.FOLDER and not place.opaque and not (named and name_of(place, names) is None):
            found = folder_in_hdfs(client_at(estate, place.location), place, names)
            if isinstance(found, Bare):
                yield found
    for stored in inventory.object_places:
        if not stored.table and not stored.opaque and not (named and name_of(stored, names) is None):
            found = folder_of_objects(versioned_store(estate, stored.location), stored, names)
            if isinstance(found, Bare):
                yield found


def named_tables(estate: Estate, inventory: Inventory, *, views: bool) -> tuple[TableState, ...]:
    """The inventory's tables; where lineage is read from statements, which may name no columns, also bare folders in
    HDFS and in object stores that have a name in SQL. views: whether catalogs have some, which are such statements."""
    if not (views or estate.lineage.sql or estate.lineage.dbt or estate.lineage.queries):
        return inventory.tables
    return (*inventory.tables, *(bare.state for bare in bare_folders(estate, inventory, named=True)))


def folder_in_hdfs(client: WebHdfs, place: HdfsPlace, names: Names) -> Bare | str:
    """What a folder is, or why no step can write its files again. names: as of `declared_names`."""
    listed = [HdfsPath(client, one.path, one.size) for one in place.files]
    root, name = HdfsPath(client, place.location.path), name_of(place, names)
    return look_at_folder(StoredFolder(place.location.dataset, root, listed, place.fingerprint(), name, place.text))


def folder_of_objects(store: VersionedStore, place: ObjectPlace, names: Names) -> Bare | str:
    """What a folder is, or why no step can write its objects again. names: as of `declared_names`."""
    for left in (version for version in place.of_state(VersionState.LIVE) if version.unfinished):
        return f"plan {left.plan} left {left.key} behind when it was killed: resume its run, or delete that file"
    live = [VersionFile(store, v.key, v.size, v) for v in place.of_state(VersionState.LIVE)]
    root, name = VersionFile(store, place.location.key), name_of(place, names)
    return look_at_folder(StoredFolder(place.location.dataset, root, live, place.fingerprint(), name, place.text))


def declared_names(estate: Estate) -> Names:
    """By place in HDFS or in an object store, the name of the table that is declared there."""
    declared = (table for catalog in estate.catalogs.values() for table in catalog.tables)
    return {location_in_place(table.location): table.name for table in declared if in_place(table.location)}


def name_of(place: HdfsPlace | ObjectPlace, names: Names) -> str | None:
    """What a place is called in SQL: as the estate file declares it, or a catalog names it."""
    return names.get(place.location, place.sql_name)
