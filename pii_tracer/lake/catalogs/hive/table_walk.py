"""Tables of a metastore, Hive's or Glue's, met one by one: what each is listed as, and what stands against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import PurePosixPath
from typing import Any, ClassVar
from urllib.parse import unquote

from pii_tracer.common.plurals import counted
from pii_tracer.lake.catalogs.base import (
    CatalogEntry,
    CatalogView,
    Listing,
    Opaque,
    PartitionsApart,
    catalog_evidence,
    catalog_gap,
    sql_name,
)
from pii_tracer.lake.catalogs.hive.spark_text_tables import spark_text_table
from pii_tracer.lake.catalogs.hive.table_kind_detection import (
    Kept,
    Refused,
    is_csv_of_spark,
    kept_as,
    lies_inside,
    place_of,
    unread_text,
)
from pii_tracer.lake.catalogs.hive.text_tables import is_text, text_table
from pii_tracer.lake.catalogs.hive.view_texts import view_of
from pii_tracer.lake.catalogs.partitions_elsewhere import names_nobody
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.hive_text.columns import UnreadText
from pii_tracer.model.hive_text.layout import Serde, TextLayout, TextTable
from pii_tracer.model.locations import in_place, is_hdfs, is_s3, location_in_place, s3_location

_TEXTS_AND_DATES = ("string", "varchar", "char", "date", "timestamp")


@dataclass(frozen=True)
class PartitionEntry:
    """A partition: its place, what it is, and of a table of text all that the metastore says of it. untold: partition
    columns whose values its place does not tell. telling: its place may tell of a person."""

    place: str | None
    kept: Kept | Refused
    described: Any
    untold: tuple[str, ...]
    telling: bool

    @classmethod
    def of(cls, table: Any, partition: Any) -> PartitionEntry:
        # there may be very many
        described = partition if table.sd is not None and (is_text(table.sd) or is_csv_of_spark(table)) else None
        place, values = place_of(partition.sd), tuple(map(str, partition.values or ()))
        keys = tuple(str(key.name) for key in table.partitionKeys or ())
        untold = untold_keys(place, place_of(table.sd), keys, values)
        types = (str(key.type or "").lower() for key in table.partitionKeys or ())
        numbers = [value for value, kind in zip(values, types, strict=False) if not kind.startswith(_TEXTS_AND_DATES)]
        telling = not names_nobody(place or "", values, numbers)
        return cls(place, kept_as(table, partition.sd), described, untold, telling)

    @property
    def format(self) -> Any:
        """None where it is refused."""
        return self.kept.format if isinstance(self.kept, Kept) else None


class TableWalk:
    """Collects a listing. move: how an owner moves a partition into its table's folder."""

    move: ClassVar[str]

    def __init__(self, name: str) -> None:
        """name: the catalog's key in the estate file."""
        self._name = name
        self._entries: list[CatalogEntry] = []
        self._gaps: list[InventoryGap] = []
        self._unread = False
        self._opaque: list[Opaque] = []
        self._views: list[CatalogView] = []

    def partitions(self, parts: tuple[str, str], table: Any) -> list[PartitionEntry]:
        """Each partition; none where a table has no partition keys. A refusal is a gap."""
        raise NotImplementedError

    def listing(self) -> Listing:
        """What was found."""
        return Listing(
            tuple(self._entries),
            tuple(self._gaps),
            opaque=tuple(self._opaque),
            views=tuple(self._views),
            unread=self._unread,
        )

    def gap(self, reason: str, *parts: str, kind: GapKind = GapKind.CATALOG_UNREADABLE) -> None:
        """A gap of the catalog, a database or a table."""
        self._unread |= kind in (GapKind.CATALOG_UNREADABLE, GapKind.UNKNOWN_CATALOG)
        self._gaps.append(catalog_gap(self._name, kind, reason, *parts))

    def view(self, parts: tuple[str, str], table: Any) -> None:
        """Note the query of a view, which has no rows."""
        name = sql_name(*parts)
        view = None if name is None else view_of(self._name, name, parts, table)
        if view is not None:
            self._views.append(view)
            return
        reason = (
            "the query of the view cannot be read, so its source tables are unknown. Put the CREATE VIEW statement "
            "into a file under `lineage.sql`, then waive this gap"
        )
        self._gaps.append(catalog_gap(self._name, GapKind.CATALOG_UNREADABLE, reason, *parts))

    def table(self, parts: tuple[str, str], table: Any) -> Kept | Refused:
        """List one table that is no view, as a metastore tells it."""
        kept = kept_as(table)
        if isinstance(kept, Kept) and not kept.plain:
            name = sql_name(self._name, *parts) if kept.by_metadata else sql_name(*parts)
            self._entries.append(CatalogEntry(name, parts, kept.format, kept.location, kept.metadata))
            return kept
        gaps = len(self._gaps)
        found = self.partitions(parts, table)
        text: TextTable | None = None
        if isinstance(kept, Kept) and kept.layout is not None:
            try:
                text = _text(table, kept, kept.layout, found, len(self._gaps) == gaps)
            except UnreadText as error:
                kept = Refused(unread_text(error), (str(kept.location),))
        if isinstance(kept, Refused):
            self.gap(kept.reason, *parts, kind=GapKind.UNKNOWN_TABLE)
            places = (*kept.places, *(one.place for one in found if one.place))
            inside, beyond = _by_place(place_of(table.sd), found)
            self._opaque.append(
                Opaque(
                    ".".join((self._name, *parts)),
                    places,
                    name=sql_name(*parts),
                    location=place_of(table.sd),
                    elsewhere=_elsewhere(beyond),
                    keys=_keys(table),
                    untold=_untold(inside),
                )
            )
            return kept
        # Spark knows tables of other formats by its session catalog
        inside, beyond = _by_place(kept.location, found)
        self._entries.append(
            CatalogEntry(
                sql_name(*parts),
                parts,
                kept.format,
                kept.location,
                partitions=tuple(sorted({one.place for one in beyond if one.place and is_hdfs(one.place)})),
                text=text,
                elsewhere=_elsewhere(beyond),
                apart=self._apart(parts, kept, beyond, len(found)),
                keys=_keys(table),
                untold=_untold(inside),
            )
        )
        self._of_other_formats(parts, kept, found)
        return kept

    def _apart(
        self, parts: tuple[str, str], kept: Kept, beyond: Sequence[PartitionEntry], number: int
    ) -> PartitionsApart | None:
        """What is to be said of partitions outside the table's folder and of HDFS; None where there are none."""
        outside = [one for one in beyond if one.place is None or not is_hdfs(one.place)]
        if not outside:
            return None
        alike = (
            one.place
            for one in outside
            if one.place and is_s3(one.place) and one.format == kept.format and kept.layout is None and not one.telling
        )
        return PartitionsApart(
            tuple(sorted(alike)),
            len(outside),
            number,
            catalog_evidence(self._name, *parts),
            self.move,
            sum(one.place is None for one in outside),
        )

    def _of_other_formats(self, parts: tuple[str, str], kept: Kept, found: Sequence[PartitionEntry]) -> None:
        """Partitions of another format are none of the folder's, and are gaps."""
        others = sum(one.format != kept.format for one in found)
        if others:
            self.gap(
                f"{others} of its {counted(len(found), 'partition')} registered with a different format than the table",
                *parts,
                kind=GapKind.MIXED_FORMATS,
            )


def _by_place(folder: str | None, found: Sequence[PartitionEntry]) -> tuple[list[PartitionEntry], list[PartitionEntry]]:
    """The partitions in a table's folder, and those elsewhere."""
    inside, beyond = list[PartitionEntry](), list[PartitionEntry]()
    for one in found:
        is_inside = one.place is not None and folder is not None and lies_inside(one.place, folder)
        (inside if is_inside else beyond).append(one)
    return inside, beyond


def _elsewhere(beyond: Sequence[PartitionEntry]) -> tuple[str, ...]:
    return tuple(sorted(one.place for one in beyond if one.place))


def _keys(table: Any) -> tuple[str, ...]:
    return tuple(str(key.name) for key in table.partitionKeys or ())


def _untold(inside: Sequence[PartitionEntry]) -> tuple[str, ...]:
    return tuple(sorted({key for one in inside for key in one.untold}))


def _text(table: Any, kept: Kept, layout: TextLayout, found: Sequence[PartitionEntry], complete: bool) -> TextTable:
    """Text as the metastore describes it. complete: whether it described all partitions.

    Raises:
        UnreadText: a table, or a partition, that is not read exactly.
    """
    if not complete:
        raise UnreadText("not all of its partitions are known")
    read = spark_text_table if layout.serde is Serde.SPARK else text_table
    return read(table, layout, [(_below(one.place, str(kept.location)), one.described) for one in found])


def untold_keys(place: str | None, folder: str | None, keys: Sequence[str], values: Sequence[str]) -> tuple[str, ...]:
    """Partition columns whose values do not stand in the names of folders (`day=1`) between a table and a partition."""
    told = set()
    for name in (_below(place, folder or "") or "").split("/"):
        key, _, value = name.partition("=")
        told.add((unquote(key).lower(), unquote(value)))
    both = zip_longest(keys, values[: len(keys)])
    return tuple(key for key, value in both if (key.lower(), unquote(value or "")) not in told)


def _below(place: str | None, folder: str) -> str | None:
    """A partition's folder below its table's; None where it lies elsewhere."""
    try:
        front, inner = f"{_spelled(folder)}/", _spelled(place or "")
    except EstateError:
        return None
    below = inner.removeprefix(front)
    return None if not inner.startswith(front) or {"", ".", ".."} & {*below.split("/")} else below


def _spelled(place: str) -> str:
    """A place in one of the spellings that mean the same."""
    if is_s3(place):
        return str(s3_location(place))
    return str(location_in_place(place)) if in_place(place) else str(PurePosixPath(place))
