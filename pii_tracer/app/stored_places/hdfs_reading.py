"""Places in HDFS as planning and verification read them, as they are at that moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pii_tracer.app.stored_places.hdfs_files import HdfsLook, held
from pii_tracer.app.stored_places.row_counts import RowCounts
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.catalogs.registered_tables import Registry
from pii_tracer.lake.inventory import Inventory
from pii_tracer.lake.stores.base import Absent
from pii_tracer.lake.stores.hdfs.discovery import places_now
from pii_tracer.lake.stores.hdfs.hdfs_path import HdfsPath
from pii_tracer.lake.stores.hdfs.places import HdfsPlace
from pii_tracer.lake.stores.hdfs.registered_places import with_registered
from pii_tracer.lake.stores.hdfs.webhdfs import WebHdfs, client_at
from pii_tracer.model.errors import EstateError
from pii_tracer.model.hive_text.layout import kept_texts_of, text_of
from pii_tracer.model.locations import HdfsLocation, hdfs_location
from pii_tracer.model.non_key_columns import no_keys_at
from pii_tracer.model.plan import Copy, ErasurePlan
from pii_tracer.model.waivers import MarkKey
from pii_tracer.scan.false_min_max_hits import without_explained
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.incremental_search import LedgerSearchers
from pii_tracer.scan.known_columns import key_columns
from pii_tracer.scan.search_workers import THREADS, Searchers
from pii_tracer.scan.value_forms import Patterns
from pii_tracer.verify.byte_search import look_past
from pii_tracer.verify.short_numbers import short_numbers_then
from pii_tracer.verify.stores.non_copies import beside_copies
from pii_tracer.verify.stores.stored_files import PlaceLook, ReadFile, counts_rows, judge_place
from pii_tracer.verify.stores.stored_tables import judge_table
from pii_tracer.verify.verdicts import ByteVerdict
from pii_tracer.verify.waived_files import NOTHING_WAIVED, waived_files


def look(estate: Estate, copy: Copy, patterns: Patterns, searchers: Searchers = THREADS) -> PlaceLook:
    """Read a copy in HDFS, all of it; a place that is gone holds nobody.

    Raises:
        EstateError: the NameNode does not answer, or the estate file does not declare it any more.
        ScanError: rows of a file cannot be read; or as `LedgerSearchers.search`.
    """
    location = hdfs_location(copy.location)
    try:
        places, gaps = places_now(estate, location, copy.format if copy.stored_table else None)
    except Absent:
        places, gaps = (), ()
    told = {"text": text_of(copy.facts), "texts": kept_texts_of(copy.facts)}
    mine = [place.model_copy(update=told) for place in places if place.location == location]
    unlisted = tuple(f"{patterns.mask(gap.evidence)}: {gap.reason}" for gap in gaps)
    whole = patterns.comparing(key_columns(copy.places, kind=copy.format))
    client = client_at(estate, location)
    files = _read(client, mine, location, whole, searchers, None if copy.stored_table else copy)
    if not copy.stored_table:
        return judge_place(copy, files, unlisted, whole)
    folder = HdfsPath(client, location.path)
    return judge_table(copy, location, files, unlisted, whole, lambda name: (folder / name).open("rb"))


def look_at(
    estate: Estate,
    location: HdfsLocation,
    name: str,
    patterns: Patterns,
    registry: Registry,
    searchers: Searchers = THREADS,
    *,
    alone: bool = False,
) -> ByteVerdict:
    """Everything in a place that is no copy, with all places in it (see `look_past`). registry: what catalogs say."""
    root = patterns.mask(str(location))
    try:
        places, gaps = places_now(estate, location)
        scans = _scans(estate, location, with_registered(places, registry), patterns, searchers)
        found = look_past(name, root, scans, alone=alone)
    except EstateError as error:
        return ByteVerdict(copy_id=name, root=root, files=(), unverified=(f"{root}: not searched: {error.what}",))
    unlisted = (f"{patterns.mask(gap.evidence)}: {gap.reason}" for gap in gaps)
    return found.model_copy(update={"unverified": (*found.unverified, *unlisted)})


def elsewhere(
    estate: Estate,
    plan: ErasurePlan,
    inventory: Inventory,
    patterns: Patterns,
    marks: MarkKey,
    searchers: Searchers = THREADS,
) -> Iterator[ByteVerdict]:
    """Places that are no copies of a plan: examined and waived ones, and those that have come since, new snapshots and
    new trash among them.
    """
    waived = waived_files(plan, marks)
    for place, shown, name in beside_copies(plan, inventory.hdfs, patterns.mask):
        mine = patterns.leaving_out(no_keys_at(plan.not_keys, place.location.dataset))
        stays = waived.get(place.location.dataset, NOTHING_WAIVED)
        scans = _scans(estate, place.location, [place], mine, searchers)
        short = short_numbers_then(plan, place.location.dataset, name, mine.key_sets)
        found = look_past(name, shown, scans, named=not plan.copies, short=short, waived=stays)
        yield found.at(place.location.dataset)


def _scans(
    estate: Estate, location: HdfsLocation, places: Iterable[HdfsPlace], patterns: Patterns, searchers: Searchers
) -> tuple[FileScan, ...]:
    """Every file of some places, named from the root of HDFS, without cut bounds that the files' rows explain."""
    files = _read(client_at(estate, location), places, None, patterns, searchers)
    return without_explained(location.root, [file.scan for file in files])


def _read(
    client: WebHdfs,
    places: Iterable[HdfsPlace],
    root: HdfsLocation | None,
    patterns: Patterns,
    searchers: Searchers,
    copy: Copy | None = None,
) -> Iterator[ReadFile]:
    """Every file of some places. root: what their names are told from; from the root of HDFS without one. copy: of
    which rows are counted."""
    ledger = searchers.ledger if isinstance(searchers, LedgerSearchers) else None
    for place in places:
        files, rows = held(client, place.files, searchers, patterns), None
        if copy is not None and counts_rows(copy):
            rows = RowCounts(copy, client.name, place, files, patterns, ledger)
        # one after the other where rows are counted: they take room
        look = HdfsLook(client, place, root.prefix if root else "/", rows, at_once=4 if rows is None else 1)
        for file, scan in searchers.search(look, files, patterns):
            yield ReadFile(scan, rows.of(file, scan) if rows is not None else None)
        if rows is not None:
            rows.keep()
