"""Places of object stores as planning and verification read them, as they are at that moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from pii_tracer.app.stored_places.row_counts import RowCounts
from pii_tracer.common.unnamed_file import in_unnamed_file
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.inventory import Inventory
from pii_tracer.lake.stores.base import StoreError
from pii_tracer.lake.stores.object_places.discovery import place_now, places_now, with_texts
from pii_tracer.lake.stores.object_places.object_path import ObjectPath
from pii_tracer.lake.stores.object_places.places import ObjectPlace
from pii_tracer.lake.stores.object_places.protocol import VersionedStore, versioned_store
from pii_tracer.lake.stores.object_places.version_file import VersionFile
from pii_tracer.lake.stores.object_places.version_types import StoredVersion, VersionState
from pii_tracer.model.errors import EstateError
from pii_tracer.model.hive_text.layout import text_of
from pii_tracer.model.hive_text.text_reading_rules import TextPlaces
from pii_tracer.model.locations import ObjectLocation, object_location
from pii_tracer.model.non_key_columns import no_keys_at
from pii_tracer.model.plan import Copy, ErasurePlan
from pii_tracer.model.waivers import MarkKey
from pii_tracer.scan.false_min_max_hits import without_explained
from pii_tracer.scan.folder_scan import scan_bytes, with_name
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.incremental_search import LedgerSearchers
from pii_tracer.scan.known_columns import key_columns
from pii_tracer.scan.search_workers import THREADS, KnownByStore, Searchers, Stamp, place_in_store
from pii_tracer.scan.shapes.objects_read_before import Keeper
from pii_tracer.scan.shapes.partial_object_reads import search_in_parts, search_whole
from pii_tracer.scan.value_forms import Patterns
from pii_tracer.verify.byte_search import look_past
from pii_tracer.verify.short_numbers import short_numbers_then
from pii_tracer.verify.stores.non_copies import beside_copies
from pii_tracer.verify.stores.stored_files import PlaceLook, ReadFile, counts_rows, judge_place, unread_file
from pii_tracer.verify.stores.stored_tables import judge_table
from pii_tracer.verify.verdicts import ByteVerdict
from pii_tracer.verify.waived_files import NOTHING_WAIVED, waived_files

OFFLINE = "its bytes are archived: bring them back online, then plan again"


def fetch(store: VersionedStore, version: StoredVersion) -> memoryview:
    """The bytes of a live or noncurrent version, in a file without a name here.

    Raises:
        EstateError: refused, gone, or broken off.
    """
    if version.offline:
        raise EstateError(OFFLINE)
    data = in_unnamed_file(VersionFile(store, version.key, version.size, version).pieces())
    if len(data) != version.size:
        raise StoreError("the object's content ends early", "Cut", where=store.name)
    return data


@dataclass(frozen=True)
class _Parts:
    """Parts of one version (`pii_tracer.scan.shapes.objects_read_before.Stored`)."""

    store: VersionedStore
    version: StoredVersion
    told: str

    @property
    def size(self) -> int:
        return self.version.size

    def part(self, first: int, at_most: int) -> bytes:
        """On the condition that it is the version that was listed."""
        return self.store.read_version(self.version, first, at_most)


@dataclass(frozen=True)
class StoredLook(KnownByStore):
    """How a version in a place is searched, with the metadata that stands beside its bytes
    (`pii_tracer.scan.search_workers.Look`). Its path names the version where it is old.

    rows: counts those of live versions, when they are read. Which are not known are read for that.
    """

    store: VersionedStore
    where: ObjectPlace
    rows: RowCounts | None = None
    keeper: Keeper | None = None
    at_once: int = 4
    only_here: ClassVar = True

    def __call__(self, thing: StoredVersion, patterns: Patterns) -> FileScan:
        """Search the version."""
        kept: FileScan | None = None
        told, text = self.told(thing), self.where.searched_as(thing.key)
        if told and (self.rows is None or self.rows.knows(thing)):
            kept = search_in_parts(thing.key, _Parts(self.store, thing, told), patterns, text, self.keeper)
        if kept is not None:
            return self._with_beside(thing, kept, patterns).model_copy(update={"of_bytes": kept})
        try:
            data = fetch(self.store, thing)
            found = kept = search_whole(thing.key, data, told, patterns, text, self.keeper)
        except (EstateError, OSError) as error:
            found = unread_file(thing.key, error, patterns).model_copy(update={"hits": (), "left": ()})
        else:
            if self.rows is not None:
                self.rows.take(thing, data)
        return self._with_beside(thing, found, patterns).model_copy(update={"of_bytes": kept})

    def stamp(self, thing: StoredVersion) -> Stamp:
        """As it was listed."""
        return thing.size, thing.mark

    def place(self, thing: StoredVersion) -> str | None:
        """The bucket or container, and the key."""
        return place_in_store(self.store.name, thing.key, self.where.searched_as(thing.key))

    def identity(self, thing: StoredVersion) -> str | None:
        """As the store lists it."""
        return thing.identity

    def again(self, thing: StoredVersion, known: FileScan, patterns: Patterns) -> FileScan | None:
        """With the name and the metadata, which the listing shows, if the version can still be read, and its rows are
        known where they are counted."""
        if self.rows is not None and not self.rows.knows(thing):
            return None
        try:
            there = len(self.store.read_version(thing, 0, 1)) == min(1, thing.size)
        except (EstateError, OSError):
            there = False
        return self._with_beside(thing, known, patterns) if there else None

    def keeping(self, keeper: Keeper) -> StoredLook:
        """As `Look.keeping`."""
        return replace(self, keeper=keeper)

    def _with_beside(self, version: StoredVersion, alone: FileScan, patterns: Patterns) -> FileScan:
        old = "" if version.state is VersionState.LIVE else f"?version={version.version_id}"
        scan = with_name(alone, version.key, patterns)
        hits = (*scan.hits, *scan_beside(version, patterns).hits)
        return scan.model_copy(update={"path": patterns.mask(f"{version.key}{old}"), "hits": hits})


def scan_beside(version: StoredVersion, patterns: Patterns) -> FileScan:
    """The metadata of a version, searched as a text of its own."""
    return scan_bytes("metadata", memoryview("\n".join(version.beside).encode()), patterns)


def kept_until(version: StoredVersion) -> str:
    """What is said of a soft-deleted version."""
    return f"it was deleted, and the store keeps its bytes until {version.gone_on or 'a day that it does not name'}"


def look(estate: Estate, copy: Copy, patterns: Patterns, searchers: Searchers = THREADS) -> PlaceLook:
    """Read every version of a copy. What is soft-deleted is unverified, with the day on which it goes.

    Raises:
        EstateError: the place cannot be listed, or the estate file does not declare it any more.
        ScanError: rows of an object cannot be read; or as `LedgerSearchers.search`.
    """
    location = object_location(copy.location)
    place = place_now(estate, location).model_copy(update={"text": text_of(copy.facts)})
    whole = patterns.comparing(key_columns(copy.places, kind=copy.format))
    ledger = searchers.ledger if isinstance(searchers, LedgerSearchers) else None
    rows = None
    if counts_rows(copy) and not copy.stored_table:
        rows = RowCounts(copy, location.store, place, tuple(place.of_state(VersionState.LIVE)), whole, ledger)
    files = _read(versioned_store(estate, location), place, whole, searchers, rows=rows)
    unlisted = tuple(_soft_deleted(place, patterns))
    if not copy.stored_table:
        return judge_place(copy, files, unlisted, whole)
    folder = ObjectPath.at(estate, location)
    return judge_table(copy, location, files, unlisted, whole, lambda name: (folder / name).open("rb"))


def look_at(
    estate: Estate,
    location: ObjectLocation,
    name: str,
    patterns: Patterns,
    texts: TextPlaces,
    searchers: Searchers = THREADS,
    *,
    alone: bool = False,
) -> ByteVerdict:
    """Everything in a place that is no copy (see `look_past`). texts: by what rules text is read."""
    root = patterns.mask(str(location))
    try:
        places = [with_texts(place, texts) for place in places_now(estate, location)]
        store = versioned_store(estate, location)
        files = (file for place in places for file in _read(store, place, patterns, searchers, location.prefix))
        found = look_past(name, root, without_explained(location, [file.scan for file in files]), alone=alone)
    except EstateError as error:
        return ByteVerdict(copy_id=name, root=root, files=(), unverified=(f"{root}: not searched: {error.what}",))
    kept = (told for place in places for told in _soft_deleted(place, patterns))
    return found.model_copy(update={"unverified": (*found.unverified, *kept)})


def elsewhere(
    estate: Estate,
    plan: ErasurePlan,
    inventory: Inventory,
    patterns: Patterns,
    marks: MarkKey,
    searchers: Searchers = THREADS,
) -> Iterator[ByteVerdict]:
    """Places that are no copies of a plan: examined and waived ones, and those that came since."""
    waived = waived_files(plan, marks)
    for place, shown, name in beside_copies(plan, inventory.object_places, patterns.mask):
        mine = patterns.leaving_out(no_keys_at(plan.not_keys, place.location.dataset))
        files = _read(versioned_store(estate, place.location), place, mine, searchers)
        stays = waived.get(place.location.dataset, NOTHING_WAIVED)
        scans = without_explained(place.location, [file.scan for file in files])
        short = short_numbers_then(plan, place.location.dataset, name, mine.key_sets)
        found = look_past(name, shown, scans, named=not plan.copies, short=short, waived=stays)
        kept = tuple(_soft_deleted(place, patterns))
        told = found.model_copy(update={"unverified": (*found.unverified, *kept)})
        yield told.at(place.location.dataset)


def _soft_deleted(place: ObjectPlace, patterns: Patterns) -> Iterable[str]:
    return (f"{patterns.mask(v.key)}: {kept_until(v)}" for v in place.of_state(VersionState.SOFT_DELETED))


def _read(
    store: VersionedStore,
    place: ObjectPlace,
    patterns: Patterns,
    searchers: Searchers,
    front: str | None = None,
    *,
    rows: RowCounts | None = None,
) -> Iterator[ReadFile]:
    """Every version that can be read. rows: counts those of live versions.

    front: what names are told without; those of the place's own folder if none is given.
    """
    readable = [version for version in place.versions if version.state is not VersionState.SOFT_DELETED]
    # one after the other: rows take room
    counted = [version for version in readable if rows is not None and rows.counts(version)]
    others = (version for version in readable if rows is None or not rows.counts(version))

    def told(version: StoredVersion, scan: FileScan) -> ReadFile:
        path = scan.path.removeprefix(place.location.prefix if front is None else front)
        own = rows.of(version, scan) if rows is not None else None
        return ReadFile(scan.model_copy(update={"path": path}), own)

    for version, scan in searchers.search(StoredLook(store, place, rows, at_once=1), counted, patterns):
        yield told(version, scan)
    if rows is not None:
        rows.keep()
    for version, scan in searchers.search(StoredLook(store, place), others, patterns):
        yield told(version, scan)
