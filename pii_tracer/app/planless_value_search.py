"""`verify --values`: search places for values, without a plan, a manifest, a key or lineage.

For an auditor who trusts none of them: what was searched, what was found and what nobody could read, and no more.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, TypeVar

from pii_tracer.app.progress import SILENT, Shows
from pii_tracer.app.s3_reading import look_at
from pii_tracer.app.settings import Settings
from pii_tracer.app.stored_places import hdfs_reading as hdfs_places
from pii_tracer.app.stored_places import object_reading as stored_places
from pii_tracer.app.unplanned_places import SEEN
from pii_tracer.common.str_enum import StrEnum
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.catalogs.registered_tables import Registry
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.lake.keys.parquet_encryption.master_keys import file_keys
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.errors import ExitCode, ScanError, UsageError
from pii_tracer.model.gap_kinds import HDFS_PLACES, GapKind
from pii_tracer.model.hive_text.text_reading_rules import NO_TEXTS, TextPlaces
from pii_tracer.model.locations import (
    HdfsLocation,
    ObjectLocation,
    S3Location,
    hdfs_location,
    is_hdfs,
    is_object_place,
    is_s3,
    object_location,
    s3_location,
)
from pii_tracer.model.number_keys import is_short_number
from pii_tracer.scan.folder_scan import scan_tree
from pii_tracer.scan.search_workers import Searchers
from pii_tracer.scan.value_forms import Patterns, build_patterns
from pii_tracer.verify.byte_search import look_past
from pii_tracer.verify.verdicts import ByteVerdict, Residue

Place = Path | S3Location | HdfsLocation | ObjectLocation
L = TypeVar("L", S3Location, HdfsLocation, ObjectLocation)
_NEEDS_ESTATE: dict[type, str] = {
    S3Location: "S3 needs an estate file, which says how to reach it",
    HdfsLocation: "HDFS needs an estate file, which says how to reach it",
    ObjectLocation: "object stores need an estate file, which says how to reach them",
}

_WITHIN = (
    SEEN | HDFS_PLACES | {GapKind.OBJECT_PLACE, GapKind.FORMAT_MISMATCH, GapKind.HIDDEN_DATA, GapKind.UNNAMEABLE_TABLE}
) - {
    GapKind.MISSING_FILES,
    GapKind.MISSING_TABLE,
}
"""What discovery says of files in the roots, all of which are searched. Any other kind means files of the estate that
lie, or may lie, where its roots do not lead."""

_UNANSWERED = frozenset({GapKind.CATALOG_UNREADABLE, GapKind.UNKNOWN_CATALOG})
"""Kinds of what catalogs did not say, perhaps of the text in a place that is searched."""

_NO_FILES = "no place contains a file: nothing was searched (is the disk mounted, and the place spelled right?)"


@dataclass(frozen=True)
class Wanted:
    """Places to search. beyond: what belongs to the estate besides, and cannot be searched so."""

    places: tuple[Place, ...]
    beyond: tuple[str, ...] = ()


class State(StrEnum):
    """What a search says: clean only where everything was read."""

    CLEAN = "clean"
    FOUND = "found"
    UNVERIFIED = "unverified"


@dataclass(frozen=True)
class Searched:
    """values: how many were looked for. short: how many of them are numbers that may be other people's.

    beyond: what belongs to the estate and was not searched.
    """

    values: int
    short: int
    places: tuple[ByteVerdict, ...]
    beyond: tuple[str, ...]

    @property
    def residue(self) -> tuple[Residue, ...]:
        return tuple(item for place in self.places for item in place.residue)

    @property
    def unverified(self) -> tuple[str, ...]:
        nothing = () if any(place.files for place in self.places) else (_NO_FILES,)
        return (*(item for place in self.places for item in place.unverified), *self.beyond, *nothing)

    @property
    def state(self) -> State:
        if self.residue:
            return State.FOUND
        return State.UNVERIFIED if self.unverified else State.CLEAN

    @property
    def exit_code(self) -> ExitCode:
        codes = {State.CLEAN: ExitCode.DONE, State.FOUND: ExitCode.RESIDUE, State.UNVERIFIED: ExitCode.PARTIAL}
        return codes[self.state]

    def as_json(self) -> dict[str, Any]:
        """The final object (docs/commands.md)."""
        return {
            "state": self.state.value,
            "values": self.values,
            "short_numbers": self.short,
            "places": [
                {
                    "place": place.root,
                    "files": len(place.files),
                    "bytes": sum(file.size for file in place.files),
                    "residue": len(place.residue),
                }
                for place in self.places
            ],
            "residue": [item.as_json() for item in self.residue],
            "unverified": list(self.unverified),
        }

    def lines(self) -> Iterator[str]:
        """The same for people, the verdict last."""
        from pii_tracer.common.plurals import counted
        from reports.wording import size

        for place in self.places:
            read = size(sum(file.size for file in place.files))
            yield f"searched: {place.root}: {counted(len(place.files), 'file')}, {read}"
        for item in self.residue[:50]:
            yield f"found: {item.copy_id}: {item.file}: {item.where} ({item.form})"
        for line in self.unverified[:50]:
            yield f"unverified: {line}"
        if self.short and self.residue:
            yield f"{self.short} of the values are short numbers: only their columns show whose they are"
        numbers = f"found in {counted(len(self.residue), 'place')} · unverified {len(self.unverified)}"
        yield f"{self.state.value}: searched for {counted(self.values, 'value')} · {numbers}"


def read_values(source: TextIO, name: str) -> tuple[KeySet, ...]:
    """One value a line; spaces around it and empty lines do not count. Nothing is kept of them but in memory.

    A value in quotes is looked for with and without them.

    Raises:
        UsageError: there are none, or it is no text in UTF-8 with one value a line.
    """
    values: dict[str, None] = {}
    try:
        for number, line in enumerate(source, 1):
            value = line.strip()
            if any(unicodedata.category(sign) in ("Cc", "Zl", "Zp", "Co", "Cn") for sign in value):
                raise _no_text(f"line {number} contains a sign that is no part of a text", name)
            values |= dict.fromkeys(one for one in (value, _unquoted(value)) if one)
    except UnicodeError:
        raise _no_text("the file is not in UTF-8", name) from None
    if not values:
        raise UsageError("there are no values to look for", where=name, todo="give one value a line")
    sets = []
    for kind, weak in (("value", False), ("short number", True)):
        if pairs := sorted((kind, value) for value in values if is_short_number(value) is weak):
            sets.append(KeySet(name=kind, origin="--values", weak=weak, values=tuple(pairs)))
    return tuple(sets)


def _unquoted(value: str) -> str:
    return value[1:-1].strip() if len(value) > 2 and value[0] == value[-1] and value[0] in "\"'" else value


def _no_text(what: str, name: str) -> UsageError:
    return UsageError(what, where=name, todo="save the values as plain text in UTF-8, one value a line")


def search(
    keys: Sequence[KeySet],
    wanted: Wanted,
    estate: Estate | None,
    base: Path,
    searchers: Searchers,
    say: Callable[[str], None],
) -> Searched:
    """Search the places for the values of the keys.

    estate: says how S3 is reached, which keys open encrypted Parquet files, and by what rules text is read. base: the
    folder of its file. say: is told each place before it is searched.

    Raises:
        UsageError: a place lies in S3 or HDFS, and there is no estate file.
        EstateError: a catalog's client library is not installed.
    """
    patterns = build_patterns(keys, file_keys(estate.parquet_encryption if estate else None, base))
    registry, texts = Registry(), NO_TEXTS
    if estate is not None:
        paths = EstatePaths(estate, base)
        registry, texts = paths.registry, paths.texts
    found = []
    for place in wanted.places:
        say(patterns.mask(str(place)))
        untold = texts.untold(str(place.resolve() if isinstance(place, Path) else place))
        seen = _look(place, patterns, estate, registry, texts, searchers)
        found.append(seen.model_copy(update={"unverified": (*seen.unverified, *map(patterns.mask, untold))}))
    counts = {key.weak: len(key.values) for key in keys}
    unanswered = map(_told, (gap for gap in registry.gaps if gap.kind in _UNANSWERED))
    beyond = tuple(map(patterns.mask, dict.fromkeys((*wanted.beyond, *unanswered))))
    return Searched(sum(counts.values()), counts.get(True, 0), tuple(found), beyond)


def place_of(text: str) -> Place:
    """A place as the command line names it: `s3://bucket/prefix`, `hdfs://host:port/path`, `gs://bucket/prefix`, or
    one of this machine.

    Raises:
        UsageError, EstateError: it is neither.
    """
    if is_s3(text):
        return s3_location(text)
    if is_hdfs(text):
        return hdfs_location(text)
    if is_object_place(text):
        return object_location(text)
    path = Path(text)
    if not path.exists():
        raise UsageError(
            "the place to search does not exist", where=text, todo="name a folder, a file, s3://…, hdfs://… or gs://…"
        )
    return path


def places_of(estate: Estate, base: Path) -> Wanted:
    """Where an estate has data: its roots, its archives, everything in S3 that its catalogs lead to, and all places in
    HDFS and in object stores, snapshots and trash among them.
    """
    inventory = discover(estate, base)
    remote = [place.location for place in inventory.remote]
    # an archive's prefix need not end at a folder: the folder that it lies in has all of it
    remote += [S3Location(bucket=a.bucket, key=a.prefix.rpartition("/")[0]) for a in estate.archives]
    roots = [root for root in EstatePaths(estate, base).roots if root.exists()]
    searched = {place.dataset for place in inventory.remote}
    gaps = [gap for gap in inventory.gaps if gap.kind not in _WITHIN]
    gaps = [gap for gap in gaps if gap.kind is not GapKind.REMOTE_TABLE or gap.dataset not in searched]
    topics = [f"{cluster.bootstrap}/{topic.name}" for cluster in estate.kafka for topic in cluster.topics]
    repositories = [f"{server.endpoint}/{repo.name}" for server in estate.lakefs for repo in server.repositories]
    others = [*topics, *repositories, *(vault.name for vault in estate.vaults), *(b.name for b in estate.backups)]
    beyond = list(map(_told, gaps))
    beyond += [f"{name}: not searched: it is searched with a plan only" for name in others]
    in_hdfs = [place.location for place in inventory.hdfs]
    stored = [place.location for place in inventory.object_places]
    return Wanted(_outermost([*roots, *remote, *in_hdfs, *stored]), tuple(beyond))


def _told(gap: InventoryGap) -> str:
    return f"{gap.kind}: {gap.reason} ({gap.evidence})"


def _outermost(places: Sequence[Place]) -> tuple[Place, ...]:
    """Each place once: what lies in another is searched with it."""
    folders = sorted({place.resolve() for place in places if isinstance(place, Path)})
    kept: list[Place] = [p for p in folders if not any(p != other and p.is_relative_to(other) for other in folders)]
    # what is searched at a folder of HDFS is all that lies in it, with the snapshots of what lies in it
    return (*kept, *_outer(places, S3Location), *_outer(places, HdfsLocation), *_outer(places, ObjectLocation))


def _outer(places: Sequence[Place], kind: type[L]) -> list[L]:
    """Those of one kind of store that lie in no other."""
    mine = sorted({place for place in places if isinstance(place, kind)}, key=str)
    return [p for p in mine if not any(p != other and other.holds(p) for other in mine)]


def _look(
    place: Place,
    patterns: Patterns,
    estate: Estate | None,
    registry: Registry,
    texts: TextPlaces,
    searchers: Searchers,
) -> ByteVerdict:
    name = patterns.mask(str(place))
    if not isinstance(place, Path):
        if estate is None:
            raise UsageError(_NEEDS_ESTATE[type(place)], where=name, todo="name it with `--estate`")
        if isinstance(place, S3Location):
            return look_at(estate, place, name, patterns, texts, searchers, alone=True)
        if isinstance(place, HdfsLocation):
            return hdfs_places.look_at(estate, place, name, patterns, registry, alone=True)
        return stored_places.look_at(estate, place, name, patterns, texts, alone=True)
    try:
        scanned = scan_tree(place, patterns, searchers=searchers, texts=texts).files
    except ScanError as error:
        return ByteVerdict(copy_id=name, root=name, files=(), unverified=(f"{name}: not searched: {error.what}",))
    return look_past(name, name, scanned, alone=True)


def search_values(values: TextIO, places: Sequence[str], settings: Settings, show: Shows = SILENT) -> Searched:
    """Search places, or without any the whole estate, for values that are told one a line.

    Raises:
        UsageError: there are no values, or a place is none.
        ConfigError: the estate is to be searched and its file cannot be read.
    """
    from pii_tracer.scan.search_workers import THREADS

    keys = read_values(values, getattr(values, "name", "-"))
    named = Wanted(tuple(map(place_of, places)))
    estate = settings.estate() if settings.estate_file.exists() or not places else None
    show.stage("verify: bytes")
    wanted = places_of(estate, settings.base) if estate and not places else named
    searchers = _searchers(estate, settings.base, show.warn) if estate else THREADS
    return search(keys, wanted, estate, settings.base, searchers, show.step)


def _searchers(estate: Estate, base: Path, warn: Callable[[str], None]) -> Searchers:
    from executors.engine.spark_session import open_session
    from pii_tracer.verify.cluster_byte_search import searchers_of

    return searchers_of(estate.spark, lambda: open_session(estate, base), warn)
