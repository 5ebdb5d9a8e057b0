"""Tables of a metastore, Hive's or Glue's, met one by one: what each is listed as, and what stands against it."""

from __future__ import annotations

from typing import Any, ClassVar

from pii_tracer.common.plurals import counted
from pii_tracer.lake.catalogs.base import CatalogEntry, CatalogView, Listing, Opaque, catalog_gap, sql_name
from pii_tracer.lake.catalogs.hive.storage import Kept, Refused, kept_as, lies_inside
from pii_tracer.lake.catalogs.hive.view_texts import view_of
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import is_hdfs


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

    def partitions(self, parts: tuple[str, str], table: Any) -> list[tuple[str | None, Any]]:
        """The place and format of each partition; none where a table has no partition keys. A refusal is a gap."""
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
        if isinstance(kept, Refused):
            self.gap(kept.reason, *parts, kind=GapKind.UNKNOWN_TABLE)
            places = (*kept.places, *(place for place, _ in self.partitions(parts, table) if place))
            self._opaque.append(Opaque(".".join((self._name, *parts)), places))
        elif kept.by_metadata:
            name = sql_name(self._name, *parts)
            self._entries.append(CatalogEntry(name, parts, kept.format, kept.location, kept.metadata))
        else:
            # Spark knows tables of other formats by its session catalog
            beyond = self._beyond(parts, table, kept) if kept.plain else ()
            entry = CatalogEntry(sql_name(*parts), parts, kept.format, kept.location, partitions=beyond)
            self._entries.append(entry)
        return kept

    def _beyond(self, parts: tuple[str, str], table: Any, kept: Kept) -> tuple[str, ...]:
        """The places in HDFS of partitions outside the table's folder. Partitions elsewhere, or of another format, are
        none of the folder's, and are gaps."""
        found = self.partitions(parts, table)
        places = [place for place, _ in found if place is None or not lies_inside(place, str(kept.location))]
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
        others = sum(kind != kept.format for _, kind in found)
        if others:
            self.gap(
                f"{others} of its {counted(len(found), 'partition')} registered in another format than the table",
                *parts,
                kind=GapKind.MIXED_FORMATS,
            )
        return in_hdfs
