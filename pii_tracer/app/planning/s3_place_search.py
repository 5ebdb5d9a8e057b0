"""Places in S3 as planning reads them: every version of every object is searched, and what that showed is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from pii_tracer.app.planning.folder_search import evidence_of, files_seen, hashes_of, numbers_seen
from pii_tracer.app.planning.not_keys_check import OtherNumbers
from pii_tracer.common.plurals import counted
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.base import ObjectKind
from pii_tracer.lake.formats.registry import table_formats
from pii_tracer.lake.inventory import Inventory, ObjectVersion, RemotePlace
from pii_tracer.lake.tables_in_s3_roots import with_places
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.hive_text.layout import FileText
from pii_tracer.model.hive_text.text_reading_rules import TextPlaces
from pii_tracer.model.locations import S3Location, location_of, object_uri
from pii_tracer.scan.decode.table_metadata import Role, role_of
from pii_tracer.scan.false_min_max_hits import without_explained
from pii_tracer.scan.folder_scan import path_hits, scan_bytes, with_name
from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.hits import FileScan, Hit
from pii_tracer.scan.object_metadata import search_beside
from pii_tracer.scan.referenced_files import named_files, names_files
from pii_tracer.scan.search_workers import THREADS, KnownByStore, Searchers, Stamp, place_in_store
from pii_tracer.scan.shapes.objects_read_before import Keeper
from pii_tracer.scan.shapes.partial_object_reads import search_in_parts, search_whole
from pii_tracer.scan.value_forms import Patterns
from planners.copies.composite_key_match import NO_WHOLE_KEYS, WholeKeys
from planners.copies.scan_evidence import Evidence, RemoteEvidence, RemoteKind
from planners.draft.suggested_table_entry import undeclared_table
from planners.gaps.unerasable_s3_tables import has_no_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from pii_tracer.lake.stores.s3.object_versions import S3Client

    Say = Callable[[str], None]

_TELL_EVERY = 10_000


def with_lake(inventory: Inventory, estate: Estate, paths: EstatePaths) -> Inventory:
    """The inventory with tables in S3 that can be erased among its tables, and for the other places there why not."""
    if estate.s3 is None or not inventory.remote:
        return inventory
    from pii_tracer.lake.erasable_s3_tables import lake_tables
    from pii_tracer.lake.stores.s3.archive_versions import s3_clients

    known = [place.location for place in inventory.remote]
    sources = {s.source for s in estate.subjects} | {k.table for k in estate.keys}
    registry = paths.registry
    named = (paths.declared_remote, registry.remote, known, registry.opaque_s3, paths.found_remote)
    lake = lake_tables(*named, estate.archives, sources, s3_clients(estate), lambda: paths.s3_options)
    places = [p.model_copy(update={"untreated": lake.why.get(str(p.location))}) for p in inventory.remote]
    tables = sorted((*inventory.tables, *(f.state for f in lake.found.values())), key=lambda s: s.location)
    gaps = [g for f in lake.found.values() for g in f.gaps]
    inventory = inventory.model_copy(update={"tables": tuple(tables), "gaps": (*inventory.gaps, *gaps)})
    return with_places(inventory, places)


def with_remote(inventory: Inventory, estate: Estate, paths: EstatePaths, say: Say) -> Inventory:
    """The inventory with its places in S3 listed, where the estate file says how S3 is reached."""
    if estate.s3 is None or not inventory.remote:
        return inventory
    from pii_tracer.lake.erasable_s3_tables import others
    from pii_tracer.lake.stores.s3.archive_versions import s3_clients
    from pii_tracer.lake.stores.s3.table_versions import list_places

    say("listing tables in S3, old versions included")
    places = list_places(paths.remote, inventory.objects, s3_clients(estate), say)
    _refuse_others(inventory, places)
    known = {place.location: place.untreated for place in inventory.remote}
    by_table = {name: place.untreated for place in inventory.remote for name in place.tables if place.untreated}

    def untreated(place: RemotePlace) -> str | None:
        if place.location in known:
            return known[place.location]
        # a table's metadata may lead to folders that nobody named
        return next((by_table[name] for name in place.tables if name in by_table), others())

    found = with_places(inventory, [p.model_copy(update={"untreated": untreated(p)}) for p in places])
    empty = {str(place.location) for place in found.remote if _has_nothing(place, found)}
    gaps = [g for g in found.gaps if not (g.kind == GapKind.REMOTE_TABLE and g.evidence in empty)]
    return found.model_copy(update={"gaps": tuple(gaps)})


def _has_nothing(place: RemotePlace, inventory: Inventory) -> bool:
    """Whether a search of the place would have nothing to search: all that lies there is in tables and archives."""
    return not len(place.versions) and has_no_bytes(place, RemoteEvidence(0, 0, {}), inventory)


def _refuse_others(inventory: Inventory, places: Sequence[RemotePlace]) -> None:
    """Raises EstateError: catalogs tell other places than before, so that part of a table would not be looked at."""
    now = {place.location for place in places}
    new = now - {place.location for place in inventory.remote}
    for mine in (place.location for place in inventory.remote if _is_table(place)):
        if mine not in now or any(mine.holds(other) for other in new):
            raise EstateError(
                "a catalog's folder for a table changed while it was listed",
                where=str(mine),
                todo="run the command again",
            )


@dataclass(frozen=True)
class Searched:
    """By location. tables: those of the inventory. places: all others. why: of tables that no step may touch after all,
    which are among the others.
    """

    tables: Mapping[str, Evidence] = field(default_factory=dict)
    places: Mapping[str, RemoteEvidence] = field(default_factory=dict)
    why: Mapping[str, str] = field(default_factory=dict)


def search_places(
    inventory: Inventory,
    estate: Estate,
    patterns: Patterns,
    short: bool,
    say: Say,
    numbers: OtherNumbers | None = None,
    whole: WholeKeys = NO_WHOLE_KEYS,
    searchers: Searchers = THREADS,
) -> Searched:
    """Search every place in S3. short: whether a short number is looked for.

    Raises:
        ScanError: as `LedgerSearchers.search`.
    """
    listed = [place for place in inventory.remote if not place.unlisted]
    tables = {str(p.location): _unlisted(p) for p in inventory.remote if p.unlisted and _is_table(p)}
    if not listed:
        return Searched(tables)
    from pii_tracer.lake.stores.s3.archive_versions import s3_clients

    clients = s3_clients(estate)
    known = frozenset(place.location for place in inventory.remote)
    states = {state.location: state for state in inventory.tables}
    names = [table.name for catalog in estate.catalogs.values() for table in catalog.tables]
    names += [name for place in inventory.remote for name in place.tables]
    places: dict[str, RemoteEvidence] = {}
    read = set[S3Location]()
    for place in listed:
        state = states.get(str(place.location))
        mine = whole.at((numbers or OtherNumbers()).at(patterns, str(place.location)), state)
        look = _VersionLook(place.location, clients(place.region), known, inventory.texts)
        seen = _seen(place, look, mine, searchers, say)
        told = _told(seen, place.location, short)
        if untold := inventory.texts.untold(str(place.location)):
            untold = tuple(map(patterns.mask, untold))
            told = replace(told, unread=(*told.unread, *untold), unread_versions=max(1, told.unread_versions))
        undeclared = undeclared_table(place, names, estate.catalogs.keys(), patterns.mask)
        places[str(place.location)] = replace(told, undeclared=undeclared)
        if _is_table(place):
            tables[str(place.location)] = _evidence(seen, place, mine, holds_bytes=bool(state and state.bytes))
        else:
            read |= look.read
    why = {str(place): _READ for place in read if str(place) in tables}
    tables = {place: seen for place, seen in tables.items() if place not in why}
    return Searched(tables, {p: told for p, told in places.items() if p not in tables}, why)


_READ = "metadata of a table that is not erased names files in it, and to write them again would break that table"


def _is_table(place: RemotePlace) -> bool:
    """Whether the place is a table of the inventory, which steps can erase."""
    return place.untreated is None


def _unlisted(place: RemotePlace) -> Evidence:
    return Evidence(files=0, files_with_person=0, bytes=0, unread=(f"its old versions: {place.unlisted}",))


def _evidence(seen: _Seen, place: RemotePlace, patterns: Patterns, *, holds_bytes: bool) -> Evidence:
    """As of a table of this machine: all versions of its objects are its files, and deleted objects have names.

    No old version is left behind: a step deletes all of them. holds_bytes: whether its own reader saw bytes there.
    """
    marked = seen.explained(place.location)
    scans = [scan for _, scan in marked]
    found = evidence_of([*scans, *seen.deleted])
    now = [scan for version, scan in marked if version.latest]
    beyond = [f"its metadata names {counted(len(seen.beyond), 'file')} outside of it"] if seen.beyond else []
    doubts = [place.doubt] if place.doubt else []
    files = len(scans) + len(seen.clean)
    missed = ["its objects, of which none was listed"] if holds_bytes and not files else []
    unread = (*found.unread, *beyond, *doubts, *missed)
    compared = patterns.key_columns.rows is not None
    live = replace(found, seen=files_seen(now), numbers=numbers_seen(now))
    return replace(live, files=files, unread=unread, compared=compared)


@dataclass
class _Seen:
    """What is kept of a place while its versions pass: little of those that hold nothing, which are the most.

    marked: with a hit, or not wholly searched. clean: path, size and format of the others. keys: of all; named: those
    that hold a value. deleted: delete markers whose keys do. beyond: what metadata names outside of every place.
    """

    marked: list[tuple[ObjectVersion, FileScan]] = field(default_factory=list)
    clean: list[tuple[str, int, str]] = field(default_factory=list)
    deleted: list[FileScan] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)
    beyond: set[str] = field(default_factory=set)

    def take(self, version: ObjectVersion, scan: FileScan, patterns: Patterns) -> None:
        """scan: of a delete marker, its key."""
        if version.key not in self.keys and _tells(version.key, patterns):
            self.named.add(version.key)
        if version.delete_marker:
            self.deleted += [scan] if scan.hits else []
            return
        self.keys.add(version.key)
        if scan.hits or scan.unread:
            self.marked.append((version, scan))
        else:
            self.clean.append((scan.path, scan.size, scan.decoded_as))

    def explained(self, root: S3Location) -> list[tuple[ObjectVersion, FileScan]]:
        """What is marked, without cut bounds of files that hold nothing of the persons."""
        clean = (FileScan(path=p, size=size, sha256="", decoded_as=kind) for p, size, kind in self.clean)
        scans = without_explained(root, [scan for _, scan in self.marked], clean)
        return [(version, scan) for (version, _), scan in zip(self.marked, scans, strict=True)]


def _seen(place: RemotePlace, look: _VersionLook, patterns: Patterns, searchers: Searchers, say: Say) -> _Seen:
    """All versions, each read once at most."""
    seen, total, shown = _Seen(beyond=look.beyond), len(place.versions), patterns.mask(str(place.location))
    say(f"looking for the persons in {shown}: {counted(total, 'version')}")
    for done, (version, scan) in enumerate(searchers.search(look, place.versions, patterns), 1):
        seen.take(version, scan, patterns)
        if done < total and done % _TELL_EVERY == 0:
            say(f"looking for the persons in {shown}: {done:,} of {counted(total, 'version')}")
    return seen


@dataclass(frozen=True)
class _VersionLook(KnownByStore):
    """How a version in a place is searched (`pii_tracer.scan.search_workers.Look`).

    known: all places of the inventory. texts: by what rules text is read. beyond: what metadata names outside of
    every place, and read: other places in which current metadata names files; from such files both are read each time.
    """

    location: S3Location
    client: S3Client
    known: Collection[S3Location]
    texts: TextPlaces
    beyond: set[str] = field(default_factory=set)
    read: set[S3Location] = field(default_factory=set)
    keeper: Keeper | None = None
    at_once: int = 4
    only_here: ClassVar = True

    def __call__(self, thing: ObjectVersion, patterns: Patterns) -> FileScan:
        """Search the version, its name, and what S3 keeps beside it."""
        from pii_tracer.lake.stores.s3.known_versions import VersionParts, is_that
        from pii_tracer.lake.stores.s3.version_bytes import fetch

        path = self._path(thing, patterns)
        if thing.delete_marker:
            return scan_bytes(thing.key, b"", patterns).model_copy(update={"path": path})
        told, text = self.told(thing), self._text(thing)
        parts = VersionParts(self.client, self.location.bucket, thing, told or "")
        if told and (found := search_in_parts(thing.key, parts, patterns, text, self.keeper)) is not None:
            return self._with_beside(thing, found, parts.answer, patterns).model_copy(update={"of_bytes": found})
        try:
            data, answer = fetch(self.client, self.location.bucket, thing)
        except EstateError as error:
            return FileScan(path=path, size=thing.size, sha256="", decoded_as="", unread=(error.what,))
        same = is_that(thing, answer, len(data))
        alone = search_whole(thing.key, data, told if same else None, patterns, text, self.keeper)
        scan = self._with_beside(thing, alone, answer, patterns)
        untold = self._name_beyond(thing, data)
        kept = alone if same else None
        return scan.model_copy(update={"unread": (*scan.unread, *filter(None, (untold,))), "of_bytes": kept})

    def stamp(self, thing: ObjectVersion) -> Stamp:
        """As it was listed."""
        return thing.size, thing.etag or ""

    def place(self, thing: ObjectVersion) -> str | None:
        """None of files that may name others."""
        if names_files(thing.key):
            return None
        return place_in_store(object_uri(self.location.bucket, ""), thing.key, self._text(thing))

    def identity(self, thing: ObjectVersion) -> str | None:
        """As S3 lists it."""
        from pii_tracer.lake.stores.s3.known_versions import identity_of

        return identity_of(self.client, thing)

    def again(self, thing: ObjectVersion, known: FileScan, patterns: Patterns) -> FileScan | None:
        """With the name and what S3 keeps beside the version now."""
        from pii_tracer.lake.stores.s3.known_versions import first_byte

        answer = first_byte(self.client, self.location.bucket, thing)
        return None if answer is None else self._with_beside(thing, known, answer, patterns)

    def keeping(self, keeper: Keeper) -> _VersionLook:
        """As `Look.keeping`."""
        return replace(self, keeper=keeper)

    def _with_beside(
        self, version: ObjectVersion, alone: FileScan, answer: Mapping[str, Any], patterns: Patterns
    ) -> FileScan:
        from pii_tracer.lake.stores.s3.version_bytes import tags_beside

        tags, refused = tags_beside(self.client, self.location.bucket, version, answer)
        hits, unread = search_beside(answer, tags, patterns)
        scan = with_name(alone, version.key, patterns)
        reasons = (*scan.unread, *unread, *filter(None, (refused,)))
        path = self._path(version, patterns)
        return scan.model_copy(update={"path": path, "hits": (*scan.hits, *hits), "unread": reasons})

    def _path(self, version: ObjectVersion, patterns: Patterns) -> str:
        return patterns.mask(version.key.removeprefix(self.location.prefix))

    def _text(self, version: ObjectVersion) -> FileText | None:
        return self.texts.of(object_uri(self.location.bucket, version.key))

    def _name_beyond(self, version: ObjectVersion, data: memoryview) -> str | None:
        """Note the files that metadata names elsewhere; why these cannot be told."""
        try:
            named = {name: self._place_of(name) for name in named_files(version.key, data)}
        except Exception as error:  # decoders of many families
            return f"the files that it names are unknown ({type(error).__name__})"
        self.beyond.update(name for name, place in named.items() if place is None)
        if version.latest:
            self.read.update(place for place in named.values() if place not in (None, self.location))
        return None

    def _place_of(self, name: str) -> S3Location | None:
        """The innermost place of the inventory in which a file lies."""
        try:
            place = location_of(name)
        except EstateError:
            return None
        folders = place.way_up if isinstance(place, S3Location) else ()
        return next((folder for folder in folders if folder in self.known), None)


def _tells(key: str, patterns: Patterns) -> bool:
    """Whether an object's name holds a value that cannot be mistaken. Short numbers count where the object is read."""
    collector = Collector(patterns)
    path_hits(key, collector)
    return any(not hit.weak for hit in collector.hits())


def _told(seen: _Seen, location: S3Location, short: bool) -> RemoteEvidence:
    marked = seen.explained(location)
    holding = [version for version, scan in marked if scan.strong]
    unread = [(version, scan) for version, scan in marked if scan.unread]
    return RemoteEvidence(
        objects=len(seen.keys),
        versions=len(marked) + len(seen.clean),
        holding=_counted(kind_of(version.key) for version in holding),
        holders=len({version.key for version in holding}),
        noncurrent=sum(not version.latest for version in holding),
        places=_places(hit for _, scan in marked for hit in scan.strong),
        named=len(seen.named),
        digits=_places(hit for _, scan in marked for hit in scan.weak),
        in_digits=sum(bool(scan.weak and not scan.strong) for _, scan in marked),
        short=short,
        unread=tuple(f"{scan.path}?versionId={v.version_id}: {why}" for v, scan in unread for why in scan.unread),
        unread_versions=len(unread),
        beyond=len(seen.beyond),
        hashes=hashes_of(scan for _, scan in marked),
    )


def _places(hits: Iterable[Hit]) -> tuple[str, ...]:
    return tuple(sorted({hit.column or hit.where for hit in hits}))


def _counted(kinds: Iterable[RemoteKind]) -> dict[RemoteKind, int]:
    counts = Counter(kinds)
    return {kind: counts[kind] for kind in RemoteKind if counts[kind]}


def kind_of(key: str) -> RemoteKind:
    """What an object is for, by its place in a table's folder."""
    *folders, name = key.split("/")
    kinds = {one.object_kind(folders, name) for one in table_formats()}
    if ObjectKind.LOG in kinds:
        return RemoteKind.LOG
    return RemoteKind.METADATA if ObjectKind.METADATA in kinds or role_of(key) is Role.ENGINE else RemoteKind.DATA
