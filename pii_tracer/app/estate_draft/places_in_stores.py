"""What lies in the places of HDFS and of object stores that a first estate file is to have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pii_tracer.app.estate_draft.given_places import Places
from pii_tracer.app.estate_draft.provisional_estate import Say, unfinished_estate
from pii_tracer.app.estate_draft.store_sections import object_store, usual_address
from pii_tracer.common.plurals import counted
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.formats.registry import metadata_folders
from pii_tracer.lake.object_tables import tables_of
from pii_tracer.lake.stores.base import Absent, StoreError
from pii_tracer.lake.stores.hdfs.webhdfs import client_at
from pii_tracer.lake.stores.object_places.protocol import versioned_store
from pii_tracer.lake.stores.object_places.version_types import VersionState
from pii_tracer.model.datasets import PLAIN, Format
from pii_tracer.model.errors import EstateError, UsageError
from pii_tracer.model.locations import ObjectLocation, hdfs_location, is_hdfs, is_s3, object_location, s3_location
from planners.draft.place_split import Cut, cut_place

_NO_RIGHT = "AccessControlException"
_ASKS_KERBEROS = ("SecurityException", "HTTP 401")


def refuse_unseen(name: str, places: Places) -> None:
    """Look at each root in HDFS and in S3.

    Raises:
        UsageError: it is not there or empty, or the NameNode or S3 does not show it.
    """
    estate = unfinished_estate(name, places)
    for root in filter(is_s3, places.roots):
        _refuse_unseen_s3(estate, root)
    for root in filter(is_hdfs, places.roots):
        place = hdfs_location(root)
        client = client_at(estate, place)
        try:
            kind = client.status(place.path).kind
            if kind == "DIRECTORY":
                next(iter(client.entries(place.path)), None)
        except Absent:
            kind = ""
        except StoreError as error:
            raise UsageError(str(error.what), where=root, todo=_todo(places, place.name_node, error)) from None
        if kind != "DIRECTORY":
            raise UsageError(
                "there is no such folder in HDFS",
                where=root,
                todo=f"name a folder that is there: `hdfs dfs -ls {place.parent}` shows what is",
            )


def _refuse_unseen_s3(estate: Estate, root: str) -> None:
    """One object is enough. Versions that were deleted count too: they hold data. A bucket that is not asked is the
    plan's gap."""
    from pii_tracer.lake.stores.s3.clients import kind_against
    from pii_tracer.lake.stores.s3.store import S3Store

    place = s3_location(root)
    if kind_against(place.bucket):
        return
    try:
        store, _ = S3Store.at(estate, root)
        there = next(store.versions(place.prefix), None)
    except StoreError as error:
        raise UsageError(str(error.what), where=root, todo=error.todo) from None
    if there is None:
        raise UsageError("no object lies there", where=root, todo="correct the name of the bucket or folder")


def unseen(name: str, places: Places, roots: Sequence[str]) -> list[str]:
    """For roots that catalogs led to, why HDFS or S3 does not show them, and what to do."""
    notes = []
    for root in (root for root in roots if is_hdfs(root) or is_s3(root)):
        try:
            refuse_unseen(name, replace(places, roots=[root]))
        except UsageError as error:
            notes.append(f"{root} cannot be looked into: {error.what}: {error.todo}")
    return notes


def _todo(places: Places, name_node: str, error: StoreError) -> str:
    """What to type."""
    if error.code == _NO_RIGHT:
        return "add `--hdfs-user NAME` with a user who may list and read there; the best is a superuser"
    if error.code in _ASKS_KERBEROS:
        return "run `kinit`, then add `--hdfs-user NAME@REALM`: the NameNode asks for Kerberos"
    asked = places.hdfs[name_node]["webhdfs"]
    if asked == usual_address(name_node):
        return (
            f"WebHDFS was looked for at {asked}: add `--webhdfs http://HOST:PORT` with the NameNode's web address"
            " (`dfs.namenode.http-address`), once for each NameNode of a nameservice"
        )
    return f"WebHDFS was looked for at {asked}: check `--webhdfs`, `--hdfs-user` and the network; {error.todo}"


def with_object_stores(
    name: str, places: Places, registered: Sequence[ObjectLocation], folders: Sequence[ObjectLocation], say: Say
) -> tuple[Places, list[str]]:
    """The places with those in object stores, cut so that each folder of files is a dataset; and what to look at.

    registered: where catalogs name tables in them; folders: where catalogs name folders that are no tables. A store in
    which nobody named a place is listed as one whole.

    Raises:
        UsageError: nothing lies in a place that was named.
        EstateError: a place that was named cannot be listed.
    """
    named: dict[str, list[ObjectLocation]] = defaultdict(list)
    of_catalogs: dict[str, list[ObjectLocation]] = defaultdict(list)
    around: dict[str, list[ObjectLocation]] = defaultdict(list)
    for place in map(object_location, places.in_stores):
        named[place.store].append(place)
    declared, notes = _that_can_be_declared(name, places, registered)
    for place in declared:
        of_catalogs[place.store].append(place)
    declared, further = _that_can_be_declared(name, places, folders)
    notes += further
    for place in declared:
        around[place.store].append(place)
    sections = {}
    for store in sorted(named.keys() | of_catalogs.keys() | around.keys()):
        prefixes = list[str]()
        tables = {place.key for place in of_catalogs[store]}
        whole = ObjectLocation(store=store, key="")
        for place in _outermost([*named[store], *around[store]] if named[store] else [whole]):
            alone = replace(places, object_stores={store: object_store(store, [place.key], places.reach)})
            try:
                estate = unfinished_estate(name, alone)
                say(f"listing {place}")
                cut = _cut(estate, place, tables)
            except (EstateError, UsageError) as error:
                if place in named[store]:
                    raise
                beneath = [one for one in (*of_catalogs[store], *around[store]) if place.holds(one)]
                cut = Cut([one.key for one in _outermost(beneath)])
                notes.append(
                    f"{place} cannot be listed ({error.what}): only the catalogs' tables in it are places of"
                    f" `object_stores`. To look for dropped tables, too: {error.todo}"
                )
            prefixes += cut.places
            if cut.whole:
                uncut = ", ".join(str(ObjectLocation(store=store, key=key)) for key in cut.whole)
                notes.append(
                    f"names of folders in {uncut} look like mails, phones or numbers of persons: each is one place,"
                    " and no place or table below it is named"
                )
            if cut.left:
                what = counted(len(set(cut.left)), "object")
                notes.append(
                    f"{place} has {what} beside its folders, which no place contains: look into it, and move what holds"
                    " persons into a folder of its own"
                )
        # what catalogs name beyond the places that were named
        held = set(prefixes)
        filled = {above for key in held for above in _way_up(key)}
        beyond = [one for one in of_catalogs[store] if held.isdisjoint(_way_up(one.key))]
        beyond += [one for one in around[store] if held.isdisjoint(_way_up(one.key)) and one.key not in filled]
        prefixes += [one.key for one in _outermost(beyond)]
        sections[store] = object_store(store, prefixes, places.reach)
    return replace(places, object_stores=sections), notes


def _cut(estate: Estate, place: ObjectLocation, tables: set[str]) -> Cut:
    """Raises UsageError: nothing lies there."""
    marks: Mapping[str, Format | None] = dict.fromkeys(metadata_folders())
    keys, live = set[str](), set[str]()
    for version in versioned_store(estate, place).all_versions(place.prefix):
        keys.add(version.key)
        if version.state is VersionState.LIVE:
            live.add(version.key)
    if not keys:
        raise UsageError(
            "there is no object under this folder", where=str(place), todo="correct the name of the folder"
        )
    bare = {folder for folder, kind in tables_of(live, marks).items() if kind in PLAIN}
    return cut_place(place.key, keys, bare, {table for table in tables if place.key in _way_up(table)})


def _that_can_be_declared(
    name: str, places: Places, registered: Sequence[ObjectLocation]
) -> tuple[list[ObjectLocation], list[str]]:
    """Of what catalogs name, the places that an estate file can have; and notes of the others.

    The notes do not show places: an old spelling has a password where the bucket should be.
    """
    found, others = list[ObjectLocation](), defaultdict[str, int](int)
    for place in registered:
        entry = object_store(place.store, [place.key], places.reach)
        try:
            unfinished_estate(name, Places(object_stores={place.store: entry}))
        except UsageError as error:
            others[error.what] += 1
        else:
            found.append(place)
    notes = [
        f"{counted(many, 'place')} of the catalogs' tables cannot be declared ({what}): correct them in the catalogs,"
        " or declare them by hand"
        for what, many in others.items()
    ]
    return found, notes


def _outermost(places: Sequence[ObjectLocation]) -> list[ObjectLocation]:
    """Of places in one store, those that lie in no other one."""
    keys = {place.key for place in places}
    return sorted({p for p in places if not p.key or keys.isdisjoint(_way_up(p.parent.key))}, key=str)


def _way_up(key: str) -> Iterator[str]:
    """A folder, and all that it lies in, up to the whole store."""
    yield key
    while key:
        key = key.rpartition("/")[0]
        yield key
