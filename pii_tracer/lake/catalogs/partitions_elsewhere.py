"""Partitions that a catalog names outside of their table's folder: which of them are folders of their own in S3.

Such a folder is one table's partition and nothing else: nobody names a place in it or around it, but for roots. Its
name tells nothing of anybody. All others stay a gap: to write them again could break another table, or lose its rows.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote

from pii_tracer.common.plurals import counted
from pii_tracer.config.estate_file import Estate
from pii_tracer.config.hdfs import as_declared
from pii_tracer.lake.catalog_only_partitions import PartitionedTable
from pii_tracer.lake.catalogs.base import CatalogEntry, Opaque, PartitionsApart
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.lake.read_result import gap
from pii_tracer.model.datasets import DatasetId, Format
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import (
    HdfsLocation,
    ObjectLocation,
    S3Location,
    hdfs_location,
    is_hdfs,
    is_object_place,
    is_s3,
    location_of,
    object_location,
    s3_location,
)

_DAY = re.compile(
    r"(?:19|20)\d\d(?:[-_.]?(?:0[1-9]|1[0-2])(?:[-_.]?(?:0[1-9]|[12]\d|3[01])(?:[-_.Tt]?[0-2]\d)?)?)?|\d\d?"
)
"""A year, month, day or hour, which names nobody."""
_WORD = 3
"""Letters of a value from which on it is looked for inside of names, too."""
_YEAR = 4
_SIGNS = re.compile(r"[\W_]+")
_NUMBER = re.compile(r"\d+(?:[-_.Tt]?\d+)*")


_Folder: TypeAlias = Path | S3Location | HdfsLocation | ObjectLocation


@dataclass(frozen=True)
class OwnFolder:
    """A partition in a folder of its own. of: its table's folder in lineage."""

    title: str
    format: Format
    location: S3Location
    of: DatasetId


@dataclass(frozen=True)
class PartitionsElsewhere:
    """What catalogs name outside of their tables' folders, until all catalogs have been read.

    named: every place in S3 that somebody names and that is no root, each as often as it is named.
    """

    named: Counter[S3Location] = field(default_factory=Counter)
    _tables: list[tuple[CatalogEntry, _Folder | None]] = field(default_factory=list)
    _refused: list[Opaque] = field(default_factory=list)
    _alone: set[S3Location] = field(default_factory=set)

    def take(self, entry: CatalogEntry, folder: _Folder | None) -> None:
        """A table. folder: where it lies; None if that cannot be told."""
        places = (*entry.elsewhere, entry.location or "", entry.metadata or "")
        self.named.update(_in_s3(places))
        if isinstance(folder, S3Location):
            self.named[folder] += 1
        if entry.elsewhere or entry.apart or entry.untold:
            self._tables.append((entry, folder))

    def refuse(self, table: Opaque) -> None:
        """A table whose files are not its rows: where its partitions are counts for others all the same."""
        self.named.update(_in_s3((*table.places, *table.elsewhere)))
        if table.elsewhere or table.untold:
            self._refused.append(table)

    def settled(self, estate: Estate, *, complete: bool) -> tuple[list[OwnFolder], list[InventoryGap]]:
        """The folders that are a partition's own, and a gap for each table that has other partitions elsewhere.

        complete: whether all tables and partitions of the catalogs are known: else another one may be there.
        """
        own, gaps = list[OwnFolder](), list[InventoryGap]()
        taken = _Taken.of(estate, self.named)
        for entry, folder in self._tables:
            if entry.apart is None:
                continue
            alone = list[S3Location]()
            if complete and isinstance(folder, S3Location):
                alone = [place for place in _in_s3(entry.apart.alike) if taken.is_alone(place)]
                self._alone.update(alone)
                title = f"{_title(entry)} (a partition)"
                own += (OwnFolder(title, entry.format, place, folder.dataset) for place in alone)
            if left := entry.apart.outside - len(alone):
                gaps.append(_gap(entry.apart, left, complete=complete))
        return own, gaps

    def partitioned(self, estate: Estate) -> tuple[PartitionedTable, ...]:
        """The tables whose folders do not tell their partitions, sorted. What is a gap is known once it is settled."""
        found = (
            PartitionedTable(
                title=_title(entry),
                location=_written(estate, entry.location or "") if folder is None else str(folder),
                dataset=None if folder is None or isinstance(folder, Path) else folder.dataset,
                keys=entry.keys,
                untold=entry.untold,
                elsewhere=tuple(sorted({_written(estate, place) for place in entry.elsewhere})),
                left=self._left(estate, entry),
            )
            for entry, folder in self._tables
        )
        refused = (
            PartitionedTable(
                title=one.name or one.title,
                location=_written(estate, one.location or ""),
                dataset=_dataset(estate, one.location or ""),
                keys=one.keys,
                untold=one.untold,
                elsewhere=tuple(sorted({_written(estate, place) for place in one.elsewhere})),
            )
            for one in self._refused
        )
        return tuple(sorted((*found, *refused), key=lambda one: (one.title, one.location)))

    def _left(self, estate: Estate, entry: CatalogEntry) -> tuple[str, ...]:
        """Places of a table's partitions that are a gap of it, as of `PartitionedTable`."""
        outside = [place for place in entry.elsewhere if not is_hdfs(place)]
        without = entry.apart.placeless if entry.apart else 0
        left = (place for place in outside if self._alone.isdisjoint(_in_s3([place])))
        return tuple(sorted([*(_written(estate, place) for place in left), *[""] * without]))


def _title(entry: CatalogEntry) -> str:
    return entry.name or ".".join(entry.parts)


def _written(estate: Estate, place: str) -> str:
    """A place in the one spelling that an inventory has; as it is, if it cannot be read."""
    try:
        if is_hdfs(place):
            return str(as_declared(estate.hdfs, hdfs_location(place)))
        if is_object_place(place):
            return str(object_location(place))
        found = location_of(place)
        return str(found) if isinstance(found, S3Location) else str(found.resolve())
    except EstateError:
        return place


def _dataset(estate: Estate, place: str) -> DatasetId | None:
    """What lineage calls a folder in a store; None of all others."""
    try:
        if is_hdfs(place):
            return as_declared(estate.hdfs, hdfs_location(place)).dataset
        if is_object_place(place):
            return object_location(place).dataset
        return s3_location(place).dataset if is_s3(place) else None
    except EstateError:
        return None


def names_nobody(place: str, values: Iterable[str], numbers: Iterable[str] = ()) -> bool:
    """Whether the name of a folder has none of a partition's values but days, and nothing else that looks like a number
    or address of a person. numbers: those of the values whose columns hold neither texts nor dates: only years and
    shorter ones are days there."""
    whole, of_numbers = _plain(place.partition("://")[2]), {*map(_plain, numbers)}
    told = [value for value in map(_plain, values) if value]
    days = {_squeezed(v) for v in told if _DAY.fullmatch(v) and (v not in of_numbers or len(v) <= _YEAR)}
    bucket, _, path = whole.partition("/")
    named = days.union(_joined(told))
    if "@" in path or any(not _is_day(number, named) for number in _NUMBER.findall(path)):
        return False
    parts = {part for name in path.split("/") for part in (name, name.partition("=")[2])}
    words, squeezed = {*_SIGNS.split(path), *map(_squeezed, parts)} | parts, _squeezed(path)
    words |= {bucket, *(word for word in _SIGNS.split(bucket) if len(word) >= _WORD)}
    telling = (found for value in told if (found := _squeezed(value) or value) not in days)
    return not any(value in words or (len(value) >= _WORD and value in squeezed) for value in telling)


def _joined(values: Sequence[str]) -> Iterator[str]:
    """The months, days and hours that values beside each other make: a year, and what follows it."""
    for at, value in enumerate(values):
        day = value if len(value) == _YEAR else ""
        for part in values[at + 1 : at + 4]:
            day += part.zfill(2)
            if not day.isdecimal() or _DAY.fullmatch(day) is None:
                break
            yield day


def _is_day(number: str, days: Collection[str]) -> bool:
    """Whether a number in a name is a year or shorter, or the whole day that a partition is of."""
    if _DAY.fullmatch(number) is None:
        return False
    return len(number) <= _YEAR or _squeezed(number) in days


def _plain(text: str) -> str:
    """A text in one of the spellings that mean the same, however often it was encoded."""
    while (decoded := unquote(text)) != text:
        text = decoded
    return unicodedata.normalize("NFKC", text).casefold()


def _squeezed(text: str) -> str:
    """Its letters and digits."""
    return _SIGNS.sub("", text)


def _gap(apart: PartitionsApart, left: int, *, complete: bool) -> InventoryGap:
    unknown = "" if complete else ". A metastore did not list all its tables and partitions: fix that first"
    reason = (
        f"{left} of {counted(apart.partitions, 'partition is', 'partitions are')} "
        "outside of the table's folder, so the "
        ""
        "plan does not erase them with the table. Partitions below `roots` are "
        "treated as separate folders. Move the partitions "
        f"into the table's folder ({apart.move}). Or move each into a separate folder whose name contains no key, and "
        f"that no table or archive uses. Or declare each as a table, and waive this gap{unknown}"
    )
    return gap(None, GapKind.EXTERNAL_FILES, reason, apart.evidence)


@dataclass(frozen=True)
class _Taken:
    """named: as of `PartitionsElsewhere`, with what the estate file declares. around: every folder around a named place
    or root. archives: bucket, and what their keys begin with."""

    named: Counter[S3Location]
    around: frozenset[S3Location]
    archives: Sequence[tuple[str, str]]

    @classmethod
    def of(cls, estate: Estate, named: Counter[S3Location]) -> _Taken:
        named = Counter(named)
        named.update(_in_s3(table.location for catalog in estate.catalogs.values() for table in catalog.tables))
        named.update([folded for place in list(named) if (folded := _folded(place)) != place])
        inner = Counter(named)
        inner.update(_in_s3(estate.roots))  # a root in a partition's folder has files that are looked at apart
        around = frozenset(folder for place in inner for folder in place.way_up[1:])
        return cls(named, around, [(one.bucket, one.prefix) for one in estate.archives])

    def is_alone(self, place: S3Location) -> bool:
        """Whether one partition, and nothing else that is named, has files there."""
        if _folded(place) != place or not place.key:
            return False
        if self.named[place] != 1 or place in self.around or any(self.named[folder] for folder in place.way_up[1:]):
            return False
        mine = place.prefix
        apart = (theirs for bucket, theirs in self.archives if bucket == place.bucket)
        return not any(mine.startswith(theirs) or theirs.startswith(mine) for theirs in apart)


def _folded(place: S3Location) -> S3Location:
    """The place that Spark's file system takes it for, which knows no empty names, `.` and `..`."""
    key = posixpath.normpath(f"/{place.key}").lstrip("/")
    return place if key == place.key else S3Location(bucket=place.bucket, key=key)


def _in_s3(places: Iterable[str]) -> Iterator[S3Location]:
    for text in filter(is_s3, places):
        with suppress(EstateError):
            yield s3_location(text)
