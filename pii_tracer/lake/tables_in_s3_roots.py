"""Tables in an estate's roots in S3 that nobody names, by the keys of objects alone. Nothing is read but listings."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.catalogs.registered_tables import RemoteTable
from pii_tracer.lake.inventory import Inventory, ObjectSet, ObjectVersion, RemotePlace
from pii_tracer.lake.object_tables import like, tables_below
from pii_tracer.lake.packed_versions import Packed
from pii_tracer.lake.read_result import in_order
from pii_tracer.lake.stores.s3.archive_versions import s3_clients
from pii_tracer.lake.stores.s3.object_versions import ClientFactory
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.lake.stores.s3.table_places import gap_of, is_nameless
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import S3Location, is_s3, object_uri, s3_location


def tables_in_roots(
    estate: Estate, named: Sequence[RemoteTable], opaque: Collection[S3Location]
) -> tuple[RemoteTable, ...]:
    """The tables and bare folders below the estate's roots in S3 that are no table of somebody's, nor in one; sorted.

    named: what the estate file and catalogs name in S3, and the roots. opaque: as of `Registry.opaque_s3`. Of a root
    that refuses, nothing is told: who lists it says so.
    """
    roots = {s3_location(root) for root in estate.roots if is_s3(root)}
    if estate.s3 is None or not roots:
        return ()
    known = {*(table.location for table in named if table.title or table.format is not None), *opaque}
    clients = s3_clients(estate)
    found = {
        table.location: table
        for root in roots
        if roots.isdisjoint(root.way_up[1:])
        for table in _below(root, estate, clients)
        if known.isdisjoint(table.location.way_up)
    }
    return tuple(sorted(found.values(), key=lambda table: str(table.location)))


def _below(root: S3Location, estate: Estate, clients: ClientFactory) -> Iterator[RemoteTable]:
    apart = tuple(one.prefix for one in estate.archives if one.bucket == root.bucket)
    front = object_uri(root.bucket, "")
    try:
        listed = (name.removeprefix(front) for name, _, _ in S3Path.of(root, clients).walk())
        keys = {like(key) for key in listed if not key.startswith(apart)}
    except OSError:
        return
    for folder, kind in tables_below(sorted(keys), root.key).items():
        yield RemoteTable(None, None, kind, S3Location(bucket=root.bucket, key=folder))


def with_places(inventory: Inventory, places: Sequence[RemotePlace]) -> Inventory:
    """The inventory with other places in S3, and a gap for each where nothing is erased."""
    before = {str(place.location) for place in inventory.remote}
    gaps = [g for g in inventory.gaps if not (g.kind == GapKind.REMOTE_TABLE and g.evidence in before)]
    gaps += [gap_of(place) for place in places if place.untreated is not None]
    return inventory.model_copy(update={"remote": tuple(places), "gaps": in_order(gaps)})


def without_telling(inventory: Inventory, masked: Callable[[str], str]) -> Inventory:
    """The inventory without what would tell of the persons in a plan: tables that nobody names and whose place holds a
    value of theirs are the root's, and reasons that name an object are masked. masked: a text without such values.
    """
    telling = {p.location: p for p in inventory.remote if is_nameless(p) and masked(str(p.location)) != str(p.location)}
    roots = {p.location for p in inventory.remote if not p.tables and p.location not in telling}
    back: dict[S3Location, list[RemotePlace]] = {}
    for location, place in telling.items():
        root = next((folder for folder in location.way_up[1:] if folder in roots), None)
        if root is not None:
            back.setdefault(root, []).append(place)
    gone = {str(place.location) for places in back.values() for place in places}
    places = [
        _joined(p, back.get(p.location, ())).model_copy(update={"untreated": p.untreated and masked(p.untreated)})
        for p in inventory.remote
        if str(p.location) not in gone
    ]
    return inventory if tuple(places) == inventory.remote else with_places(inventory, places)


def left_alone(inventory: Inventory, why: Mapping[str, str]) -> Inventory:
    """The inventory with some tables in S3 as places where nothing is erased. why: by their places. What else is told
    of such a place stays told.
    """
    if not why:
        return inventory
    places = [p.model_copy(update={"untreated": why.get(str(p.location), p.untreated)}) for p in inventory.remote]
    kept = {
        "tables": tuple(one for one in inventory.tables if one.location.rstrip("/") not in why),
        "objects": tuple(one for one in inventory.objects if not _is_of(one, why)),
    }
    return with_places(inventory.model_copy(update=kept), places)


def _joined(root: RemotePlace, inner: Iterable[RemotePlace]) -> RemotePlace:
    places = [root, *inner]
    if len(places) == 1:
        return root
    versions = heapq.merge(*(place.versions for place in places), key=lambda version: version.key.encode())
    uploads = tuple(upload for place in places for upload in place.uploads)
    told = {"versions": Packed(ObjectVersion, versions), "uploads": uploads}
    return root.model_copy(update={**told, "unlisted": next((p.unlisted for p in places if p.unlisted), None)})


def _is_of(objects: ObjectSet, places: Collection[str]) -> bool:
    return objects.location.rstrip("/") in places or (objects.replica_of or "").rstrip("/") in places
