"""Bare folders in HDFS and in object stores, as tables of which the columns are known before a search."""

from __future__ import annotations

from collections.abc import Iterator

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.formats.plain_files.store_folder import Bare, StoredFolder, look_at_folder
from pii_tracer.lake.inventory import Inventory
from pii_tracer.lake.stores.hdfs.hdfs_path import HdfsPath
from pii_tracer.lake.stores.hdfs.places import HdfsKind, HdfsPlace
from pii_tracer.lake.stores.hdfs.webhdfs import WebHdfs, client_at
from pii_tracer.lake.stores.object_places.places import ObjectPlace
from pii_tracer.lake.stores.object_places.protocol import VersionedStore, versioned_store
from pii_tracer.lake.stores.object_places.version_file import VersionFile
from pii_tracer.lake.stores.object_places.versions import VersionState
from pii_tracer.model.locations import HdfsLocation, hdfs_location, is_hdfs


def bare_folders(estate: Estate, inventory: Inventory) -> Iterator[Bare]:
    """Every folder of which the files, or the live objects, are data files of one format."""
    names = declared_names(estate)
    for place in inventory.hdfs:
        if place.kind is HdfsKind.FOLDER and not place.opaque:
            found = folder_in_hdfs(client_at(estate, place.location), place, names)
            if isinstance(found, Bare):
                yield found
    for stored in inventory.object_places:
        if not stored.table and not stored.opaque:
            found = folder_of_objects(versioned_store(estate, stored.location), stored)
            if isinstance(found, Bare):
                yield found


def folder_in_hdfs(client: WebHdfs, place: HdfsPlace, names: dict[HdfsLocation, str]) -> Bare | str:
    """What a folder is, or why no step can write its files again. names: as of `declared_names`."""
    listed = [HdfsPath(client, one.path, one.size) for one in place.files]
    root, table = HdfsPath(client, place.location.path), names.get(place.location, place.table)
    return look_at_folder(StoredFolder(place.location.dataset, root, listed, place.fingerprint(), table, place.text))


def folder_of_objects(store: VersionedStore, place: ObjectPlace) -> Bare | str:
    """What a folder is, or why no step can write its objects again."""
    for left in (version for version in place.of_state(VersionState.LIVE) if version.unfinished):
        return f"plan {left.plan} left {left.key} behind when it was killed: resume its run, or delete that file"
    live = [VersionFile(store, v.key, v.size, v) for v in place.of_state(VersionState.LIVE)]
    root = VersionFile(store, place.location.key)
    name, text = place.table_name, place.text
    return look_at_folder(StoredFolder(place.location.dataset, root, live, place.fingerprint(), name, text))


def declared_names(estate: Estate) -> dict[HdfsLocation, str]:
    """By place in HDFS, the name of the table that is declared there."""
    declared = (table for catalog in estate.catalogs.values() for table in catalog.tables)
    return {hdfs_location(table.location): table.name for table in declared if is_hdfs(table.location)}
