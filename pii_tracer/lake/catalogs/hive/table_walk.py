"""Tables of a metastore, Hive's or Glue's, met one by one: what each is listed as, and what stands against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, ClassVar

from pii_tracer.common.plurals import counted
from pii_tracer.lake.catalogs.base import CatalogEntry, CatalogView, Listing, Opaque, catalog_gap, sql_name
from pii_tracer.lake.catalogs.hive.storage import Kept, Refused, kept_as, lies_inside, place_of, unread_text
from pii_tracer.lake.catalogs.hive.text_tables import UnreadText, is_text, text_table
from pii_tracer.lake.catalogs.hive.view_texts import view_of
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.hive_text.layout import TextLayout, TextTable
from pii_tracer.model.locations import in_place, is_hdfs, is_s3, location_in_place, s3_location


@dataclass(frozen=True)
class PartitionEntry:
    """A partition: its place, what it is, and of a table of text all that the metastore says of it."""

    place: str | None
    kept: Kept | Refused
    described: Any

    @classmethod
    def of(cls, table: Any, partition: Any) -> PartitionEntry:
        described = partition if table.sd is not None and is_text(table.sd) else None  # there may be very many
        return cls(place_of(partition.sd), kept_as(table, partition.sd), described)

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
        self._opaque: list[Opaque] = []
        self._views: list[CatalogView] = []

    def partitions(self, parts: tuple[str, str], table: Any) -> list[PartitionEntry]:
        """Each partition; none where a table has no partition keys. A refusal is a gap."""
        raise NotImplementedError

    def listing(self) -> Listing:
        """What was found."""
        return Listing(tuple(self._entries), tuple(self._gaps), opaque=tuple(self._opaque), views=tuple(self._views))

    def gap(self, reason: str, *parts: str, kind: GapKind = GapKind.CATALOG_UNREADABLE) -> None:
        """A gap of the catalog, a database or a table."""
        self._gaps.append(catalog_gap(self._name, kind, reason, *parts))

    def view(self, parts: tuple[str, str], table: Any) -> None:
        """Note the query of a view, which has no rows."""
        name = sql_name(*parts)
        view = None if name is None else view_of(self._name, name, parts, table)
        if view is not None:
            self._views.append(view)
            return
        self.gap(
            "no query of the view can be read, so the tables that its readers read are unknown. Put its CREATE VIEW"
            " statement into a file under `lineage.sql`, and waive this",
            *parts,
        )

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
            self._opaque.append(Opaque(".".join((self._name, *parts)), places))
            return kept
        # Spark knows tables of other formats by its session catalog
        beyond = self._beyond(parts, kept, found)
        entry = CatalogEntry(sql_name(*parts), parts, kept.format, kept.location, partitions=beyond, text=text)
        self._entries.append(entry)
        return kept

    def _beyond(self, parts: tuple[str, str], kept: Kept, found: Sequence[PartitionEntry]) -> tuple[str, ...]:
        """The places in HDFS of partitions outside the table's folder. Partitions elsewhere, or of another format, are
        none of the folder's, and are gaps."""
        everywhere = (one.place for one in found)
        places = [place for place in everywhere if place is None or not lies_inside(place, str(kept.location))]
        in_hdfs = tuple(sorted({place for place in places if place and is_hdfs(place)}))
        outside = sum(place not in in_hdfs for place in places)
        if outside:
            self.gap(
                f"outside the table's folder, and not erased with it: {outside} of {counted(len(found), 'partition')};"
                " those below `roots` count as folders of their own. Move them into the table's folder"
                f" ({self.move}), or declare each as a table",
                *parts,
                kind=GapKind.EXTERNAL_FILES,
            )
        others = sum(one.format != kept.format for one in found)
        if others:
            self.gap(
                f"{others} of its {counted(len(found), 'partition')} registered in another format than the table",
                *parts,
                kind=GapKind.MIXED_FORMATS,
            )
        return in_hdfs


def _text(table: Any, kept: Kept, layout: TextLayout, found: Sequence[PartitionEntry], complete: bool) -> TextTable:
    """Text as the metastore describes it. complete: whether it described all partitions.

    Raises:
        UnreadText: a table, or a partition, that is not read exactly.
    """
    if not complete:
        raise UnreadText("not all of its partitions are known")
    return text_table(table, layout, [(_below(one.place, str(kept.location)), one.described) for one in found])


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
