"""Places in HDFS as planning reads them: every file is searched, and what that showed is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain

from pii_tracer.app.planning.folder_search import as_registered, evidence_of, named_below, seen_in
from pii_tracer.app.planning.not_keys_check import OtherNumbers
from pii_tracer.app.stored_places.erasable_bare_folders import Names, declared_names, folder_in_hdfs
from pii_tracer.app.stored_places.hdfs_files import HdfsLook, HeldFile, checksum_of, held
from pii_tracer.app.stored_places.hdfs_quotas import crowded, room_in
from pii_tracer.common.parallel_map import several
from pii_tracer.common.plurals import counted
from pii_tracer.config.estate_file import Estate
from pii_tracer.config.hdfs import NameNode, as_declared
from pii_tracer.lake.formats.plain_files.store_folder import Bare
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lake.stores.hdfs.discovery import places_in_hdfs
from pii_tracer.lake.stores.hdfs.places import HdfsKind, HdfsPlace
from pii_tracer.lake.stores.hdfs.webhdfs import Room, WebHdfs, client_at
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import HdfsLocation, hdfs_location, is_hdfs
from pii_tracer.scan.false_min_max_hits import without_explained
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.referenced_files import named_files, names_files
from pii_tracer.scan.search_workers import THREADS, Searchers
from pii_tracer.scan.value_forms import Patterns
from pii_tracer.verify.stores.stored_files import unread_file
from planners.copies.composite_key_match import NO_WHOLE_KEYS, WholeKeys
from planners.copies.scan_evidence import HdfsEvidence, HdfsRead


@dataclass(frozen=True)
class _Looked:
    """One file. beyond: how many files it names that lie in no place of the estate; named: paths of the others."""

    scan: FileScan
    read: HdfsRead | None = None
    beyond: int = 0
    named: frozenset[str] = frozenset()


def search_hdfs(
    inventory: Inventory,
    estate: Estate,
    patterns: Patterns,
    short: bool,
    say: Callable[[str], None],
    numbers: OtherNumbers | None = None,
    whole: WholeKeys = NO_WHOLE_KEYS,
    searchers: Searchers = THREADS,
) -> dict[str, HdfsEvidence]:
    """Search every place in HDFS. short: whether a short number is looked for.

    Raises:
        ScanError: as `LedgerSearchers.search`.
    """
    known = (p.location for p in inventory.hdfs if p.kind in (HdfsKind.TABLE, HdfsKind.FOLDER))
    wanted, names = places_in_hdfs(estate, known), declared_names(estate)
    tables = {state.location: state for state in inventory.tables if state.in_hdfs}
    found = {}
    rooms = dict[str, Callable[[str], Room]]()
    for place in inventory.hdfs:
        say(f"looking for the persons in {patterns.mask(str(place.location))}: {counted(len(place.files), 'file')}")
        client = client_at(estate, place.location)
        mine = (numbers or OtherNumbers()).at(patterns, place.location.dataset, str(place.location))
        state = tables.get(str(place.location))
        bare = cache(partial(_bare, client, place, names))
        mine = whole.at_folder(mine, bare) if place.kind is HdfsKind.FOLDER else mine
        looked = _looked(client, estate.hdfs, mine, wanted, place, searchers)
        if state:
            told = _of_table(state, _explained(looked, place), place, short, mine)
            told = replace(told, unseen=whole.match(state) is not None)
        else:
            told = _told(looked, short, patterns)
            if place.kind is HdfsKind.FOLDER and not told.unread:
                told = _with_state(told, looked, bare(), place, mine)
        if told.state is not None:
            holding = [one.read for one in looked if one.read and one.read.holds]
            room = rooms.setdefault(place.location.name_node, cache(partial(room_in, client)))
            told = replace(told, crowded=crowded(client, holding, room, by_engine=state is not None))
        found[str(place.location)] = told
    return found


def _bare(client: WebHdfs, place: HdfsPlace, names: Names) -> Bare | str:
    """A bare folder whose files can be written again, or why they cannot."""
    bare = as_registered(place.opaque, place.registered, partial(folder_in_hdfs, client, place, names))
    if isinstance(bare, str):
        return bare
    of = tuple(table.dataset for table in place.partitions_of)
    return replace(bare, state=bare.state.model_copy(update={"partitions_of": of}))


def _with_state(
    told: HdfsEvidence, looked: Sequence[_Looked], bare: Bare | str, place: HdfsPlace, patterns: Patterns
) -> HdfsEvidence:
    """What a bare folder showed, as of a table of this machine, where its files can be written again."""
    if isinstance(bare, str):
        return replace(told, stuck=patterns.mask(bare))
    data = tuple(one.read for one in looked if one.read and (one.read.holds or one.read.path in bare.paths))
    evidence = replace(evidence_of(_below(place, looked)), compared=patterns.key_columns.rows is not None)
    return replace(told, state=bare.state, evidence=evidence, touched=data)


def _explained(looked: Sequence[_Looked], place: HdfsPlace) -> list[_Looked]:
    """Files of a table without cut bounds of those that hold nothing of the persons."""
    scans = without_explained(place.location, _below(place, looked))
    hits = (scan.hits for scan in scans)
    return [replace(o, scan=o.scan.model_copy(update={"hits": h})) for o, h in zip(looked, hits, strict=True)]


def _of_table(
    state: TableState, looked: Sequence[_Looked], place: HdfsPlace, short: bool, patterns: Patterns
) -> HdfsEvidence:
    """What a table showed that steps can erase, as one of this machine does."""
    evidence = evidence_of(_below(place, looked))
    return replace(_told(looked, short, patterns), state=state, evidence=evidence, touched=())


def _below(place: HdfsPlace, looked: Iterable[_Looked]) -> list[FileScan]:
    return named_below(f"{place.location.path.lstrip('/')}/", (one.scan for one in looked))


def _looked(
    client: WebHdfs,
    name_nodes: Sequence[NameNode],
    patterns: Patterns,
    wanted: Sequence[HdfsLocation],
    place: HdfsPlace,
    searchers: Searchers,
) -> list[_Looked]:
    """Every file of a place. What a file names is read from its bytes each time."""
    named: dict[str, frozenset[str]] = {}

    def take(file: HeldFile, data: memoryview) -> Iterator[str]:
        try:
            named[file.key] = frozenset(named_files(file.key.lstrip("/"), data))
        except Exception as error:  # decoders of many families
            yield f"it is unknown which files it names ({type(error).__name__})"

    def remembers(file: HeldFile) -> bool:
        return not names_files(file.key.lstrip("/"))

    def told(found: tuple[HeldFile, FileScan]) -> _Looked:
        file, scan = found
        read = _read_of(client, place, file, scan)
        if isinstance(read, EstateError | OSError):
            return _Looked(unread_file(file.key.lstrip("/"), read, patterns))
        places = {one: _in_estate(client, name_nodes, one, wanted) for one in named.get(file.key, ())}
        return _Looked(scan, read, list(places.values()).count(None), frozenset(p.path for p in places.values() if p))

    look = HdfsLook(client, place, "/", takes=take, remembers=remembers)
    files = held(client, place.files, searchers, patterns, remembers)
    return list(several(told, searchers.search(look, files, patterns)))


def _read_of(
    client: WebHdfs, place: HdfsPlace, file: HeldFile, scan: FileScan
) -> HdfsRead | EstateError | OSError | None:
    """A file whose bytes were searched, with its checksum where a step may work on it: nothing in a snapshot is ever
    written. None of an empty folder, and of a file that cannot be read."""
    if file.key.endswith("/") or not scan.sha256:
        return None
    wanted = place.kind is not HdfsKind.SNAPSHOT and (scan.hits or place.kind is HdfsKind.FOLDER)
    try:
        return HdfsRead(*file.file, checksum=checksum_of(client, file) if wanted else "", holds=bool(scan.hits))
    except (EstateError, OSError) as error:
        return error


def _in_estate(
    client: WebHdfs, name_nodes: Sequence[NameNode], name: str, wanted: Sequence[HdfsLocation]
) -> HdfsLocation | None:
    """A file that metadata names, where it lies in a place of the estate in HDFS. A path alone is one of its own."""
    text = f"{client.name}{name}" if name.startswith("/") else name
    try:
        location = as_declared(name_nodes, hdfs_location(text)) if is_hdfs(text) else None
    except EstateError:
        return None
    return location if location and any(place.holds(location) for place in wanted) else None


def _told(looked: Sequence[_Looked], short: bool, patterns: Patterns) -> HdfsEvidence:
    scans = [one.scan for one in looked]
    return replace(
        seen_in(HdfsEvidence, scans, patterns, "/"),
        files=sum(not scan.path.endswith("/") for scan in scans),
        short=short,
        beyond=sum(one.beyond for one in looked),
        named=frozenset(chain.from_iterable(one.named for one in looked)),
        touched=tuple(one.read for one in looked if one.read and one.read.holds),
    )
