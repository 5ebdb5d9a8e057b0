"""Places of object stores as planning reads them: every version is searched, and what that showed is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial

from pii_tracer.app.planning.folder_search import (
    as_registered,
    evidence_of,
    files_seen,
    named_below,
    numbers_seen,
    seen_in,
)
from pii_tracer.app.planning.not_keys_check import OtherNumbers
from pii_tracer.app.stored_places.erasable_bare_folders import Names, declared_names, folder_of_objects
from pii_tracer.app.stored_places.object_reading import StoredLook, scan_beside
from pii_tracer.common.parallel_map import several
from pii_tracer.common.plurals import counted
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.formats.plain_files.store_folder import Bare
from pii_tracer.lake.inventory import Inventory
from pii_tracer.lake.stores.base import StoreError
from pii_tracer.lake.stores.object_places.places import ObjectPlace
from pii_tracer.lake.stores.object_places.protocol import VersionedStore, versioned_store
from pii_tracer.lake.stores.object_places.version_types import StoredVersion, VersionState
from pii_tracer.model.timestamps import instant
from pii_tracer.scan.false_min_max_hits import without_explained
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.search_workers import THREADS, Searchers
from pii_tracer.scan.value_forms import Patterns
from planners.copies.composite_key_match import NO_WHOLE_KEYS, WholeKeys
from planners.copies.scan_evidence import Evidence, StoredEvidence, StoredRead


@dataclass(frozen=True)
class _Looked:
    """One version. beside: its metadata holds a value of the persons."""

    version: StoredVersion
    scan: FileScan
    beside: bool

    @property
    def live(self) -> bool:
        return self.version.state is VersionState.LIVE


def search_object_places(
    inventory: Inventory,
    estate: Estate,
    patterns: Patterns,
    as_of: datetime,
    say: Callable[[str], None],
    numbers: OtherNumbers,
    whole: WholeKeys = NO_WHOLE_KEYS,
    searchers: Searchers = THREADS,
) -> dict[str, StoredEvidence]:
    """Search every place. as_of: when retentions are looked at.

    Raises:
        ScanError: as `LedgerSearchers.search`.
    """
    found, tables = {}, {state.location: state for state in inventory.tables}
    names = declared_names(estate)
    for place in inventory.object_places:
        readable = [v for v in place.versions if v.state is not VersionState.SOFT_DELETED]
        say(f"looking for the persons in {patterns.mask(str(place.location))}: {counted(len(readable), 'version')}")
        store = versioned_store(estate, place.location)
        mine = numbers.at(patterns, place.location.dataset, str(place.location))
        state = tables.get(str(place.location))
        bare = cache(partial(_bare, store, place, names))
        mine = mine if state or place.table else whole.at_folder(mine, bare)
        found_there = searchers.search(StoredLook(store, place), readable, mine)
        looked = [_Looked(v, scan, bool(scan_beside(v, mine).hits)) for v, scan in found_there]
        told = _told(looked, as_of, patterns)
        if state:
            looked, unseen = _explained(looked, place), whole.match(state) is not None
            told = _told(looked, as_of, patterns, unseen=unseen)
            told = replace(told, state=state, evidence=_of_table(place, looked))
        elif not place.table:
            told = replace(told, lost=tuple(sorted(set(_lost(store, looked)))))
            told = told if told.unread else _with_state(told, looked, bare(), place, mine)
        found[str(place.location)] = told
    return found


def _bare(store: VersionedStore, place: ObjectPlace, names: Names) -> Bare | str:
    """A bare folder whose live objects can be written again, or why they cannot."""
    return as_registered(place.opaque, place.registered, partial(folder_of_objects, store, place, names))


def _with_state(
    told: StoredEvidence, looked: Sequence[_Looked], bare: Bare | str, place: ObjectPlace, patterns: Patterns
) -> StoredEvidence:
    """What a bare folder showed, as of a table of this machine, where its live objects can be written again."""
    if isinstance(bare, str):
        return replace(told, stuck=patterns.mask(bare))
    scans = _below(place, looked)
    read = tuple(
        replace(one, data=one.version.state is VersionState.LIVE and one.version.key in bare.paths) for one in told.read
    )
    evidence = replace(evidence_of(scans), compared=patterns.key_columns.rows is not None)
    return replace(told, state=bare.state, evidence=evidence, read=read)


def _of_table(place: ObjectPlace, looked: Sequence[_Looked]) -> Evidence:
    """What a table's files showed. No old version is left behind: a step deletes all of them."""
    now = _below(place, [one for one in looked if one.live])
    return replace(evidence_of(_below(place, looked)), seen=files_seen(now), numbers=numbers_seen(now))


def _explained(looked: Sequence[_Looked], place: ObjectPlace) -> list[_Looked]:
    """Versions of a table's files without cut bounds of those that hold nothing of the persons."""
    scans = without_explained(place.location, _below(place, looked))
    return [
        replace(o, scan=o.scan.model_copy(update={"hits": scan.hits})) for o, scan in zip(looked, scans, strict=True)
    ]


def _below(place: ObjectPlace, looked: Sequence[_Looked]) -> list[FileScan]:
    return named_below(place.location.prefix, (one.scan for one in looked))


def _told(looked: Sequence[_Looked], as_of: datetime, patterns: Patterns, *, unseen: bool = False) -> StoredEvidence:
    scans = [one.scan for one in looked]
    weak = [one for one in looked if one.scan.weak and not one.scan.strong]
    return replace(
        seen_in(StoredEvidence, scans, patterns),
        in_digits=sum(one.live for one in weak),
        old_in_digits=sum(not one.live for one in weak),
        beside=sum(one.beside for one in looked),
        read=tuple(StoredRead(one.version, one.scan.sha256, bool(one.scan.hits)) for one in looked),
        held=tuple(sorted({why for one in looked if one.scan.hits or unseen for why in _held(one.version, as_of)})),
        unseen=unseen,
    )


def _lost(store: VersionedStore, looked: Sequence[_Looked]) -> Iterator[str]:
    """What of live versions with a value a rewrite could not keep."""
    asked = (one.version for one in looked if one.live and one.scan.hits)
    for reasons in several(partial(_cannot_keep, store), asked):
        yield from reasons


def _cannot_keep(store: VersionedStore, version: StoredVersion) -> tuple[str, ...]:
    """As the store says, or why that is not known."""
    try:
        return store.cannot_keep(version)
    except StoreError as error:
        return ("; ".join(filter(None, (error.what, error.todo))),)


def _held(version: StoredVersion, as_of: datetime) -> Iterator[str]:
    yield from version.holds
    if version.retained_until and instant(version.retained_until) > as_of:
        yield f"a retention until {version.retained_until}"
