"""Bare folders in object stores, as tables of which the columns are known before anything in them is searched."""

from __future__ import annotations

from collections.abc import Iterator

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.formats.plain_files.stored_folder import Bare, StoredFolder, look_at_folder
from pii_tracer.lake.inventory import Inventory
from pii_tracer.lake.stores.object_places.places import ObjectPlace
from pii_tracer.lake.stores.object_places.protocol import VersionedStore, versioned_store
from pii_tracer.lake.stores.object_places.version_file import VersionFile
from pii_tracer.lake.stores.object_places.versions import VersionState


def bare_folders(estate: Estate, inventory: Inventory) -> Iterator[Bare]:
    """Every place of which the live objects are data files of one format."""
    for place in inventory.object_places:
        if not place.table and not place.opaque:
            found = bare_folder(versioned_store(estate, place.location), place)
            if isinstance(found, Bare):
                yield found


def bare_folder(store: VersionedStore, place: ObjectPlace) -> Bare | str:
    """What a folder is, or why no step can write its objects again."""
    live = [VersionFile(store, v.key, v.size, v) for v in place.of_state(VersionState.LIVE)]
    root = VersionFile(store, place.location.key)
    return look_at_folder(StoredFolder(place.location.dataset, root, live, place.fingerprint(), place.table_name))
