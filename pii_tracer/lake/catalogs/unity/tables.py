"""Tables, views and volumes of a Unity Catalog metastore.

What a table is, its type and format tell (https://docs.databricks.com/api/workspace/tables/list). A table whose files
are not its rows, or whose rows are kept elsewhere, is a gap, and its files are never read as a plain table's.
"""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.base import (
    CatalogEntry,
    CatalogView,
    FilePlace,
    Listing,
    Opaque,
    catalog_gap,
    sql_name,
)
from pii_tracer.lake.catalogs.hive.spark_text_tables import spark_text_table
from pii_tracer.lake.catalogs.hive.table_kind_detection import Refused, kept_as, unread_text
from pii_tracer.lake.catalogs.hive.view_texts import written_in
from pii_tracer.lake.catalogs.unity.answers import TableInfo
from pii_tracer.lake.catalogs.unity.client import UnityClient, UnityRefusal
from pii_tracer.lake.catalogs.unity.scope import Scope
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.model.datasets import Column
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.hive_text.columns import UnreadText
from pii_tracer.model.hive_text.layout import TextTable

VIEW = "VIEW"
METRIC_VIEW = "METRIC_VIEW"
_WITH_FILES = frozenset({"MANAGED", "EXTERNAL", "MANAGED_SHALLOW_CLONE", "EXTERNAL_SHALLOW_CLONE"})
_ELSEWHERE = {
    "MATERIALIZED_VIEW": (
        "a materialized view, which contains rows of its source tables. Erase the source tables, ask the owner to "
        "refresh the view completely (REFRESH MATERIALIZED VIEW … FULL), then waive this gap"
    ),
    "STREAMING_TABLE": (
        "a streaming table: only its pipeline writes it, and it keeps rows that its sources no longer have. Ask the "
        "owner to delete the person there, then to refresh and vacuum the table, then waive this gap"
    ),
    "FOREIGN": "a table of a different system, which stores its rows. Erase the person there, then waive this gap",
}
_COMPUTED = "information_schema"
_OWN_LISTS = "UNITY_CATALOG"
"""The schema and format of views that the server makes of its own lists; they have no text."""
_DIALECT = "databricks"
_OPTION = "option."
"""How properties begin that are options of the reader of a table's files, as Spark writes them into its tables."""
_COMMITS = re.compile(r".+\.feature\.catalog(managed|owned.*)")
_PARTITIONS = "partitionmetadataenabled"
"""https://docs.databricks.com/tables/external-partition-discovery.html"""


def list_unity(name: str, catalog: Catalog) -> Listing:
    """Every table of the catalogs and schemas that `databases` names, or of all. What is refused is a gap."""
    client, scope, walk = UnityClient(name, catalog), Scope(catalog), _Walk(name)
    for made in scope.catalogs(client, walk.gap):
        for schema in scope.schemas(client, made.name, walk.gap):
            walk.schema(client, made.name, schema.name)
    if scope.all and walk.answered:
        walk.external_locations(client)
    return Listing(
        tuple(walk.entries),
        tuple(walk.gaps),
        opaque=tuple(walk.opaque),
        places=tuple(walk.places),
        views=tuple(walk.views),
        created={name: walk.created},
    )


class _Walk:
    def __init__(self, name: str) -> None:
        self._name = name
        self.answered = False
        self.entries: list[CatalogEntry] = []
        self.gaps: list[InventoryGap] = []
        self.opaque: list[Opaque] = []
        self.places: list[FilePlace] = []
        self.views: list[CatalogView] = []
        self.created: dict[str, int] = {}

    def gap(self, reason: str, *parts: str, kind: GapKind = GapKind.CATALOG_UNREADABLE) -> None:
        """A gap of the metastore, a catalog, a schema or a table."""
        self.gaps.append(catalog_gap(self._name, kind, reason, *parts))

    def schema(self, client: UnityClient, catalog: str, schema: str) -> None:
        """Tables and volumes of one schema."""
        self.answered = True
        try:
            for table in client.tables(catalog, schema):
                self._table((catalog, schema, table.name), table)
        except UnityRefusal as error:
            self.gap(f"{error.reason}. The tables of the schema are unknown", catalog, schema)
        try:
            for volume in client.volumes(catalog, schema):
                parts = (catalog, schema, volume.name)
                if volume.storage_location:
                    self.places.append(FilePlace(f"the volume {'.'.join(parts)}", volume.storage_location, whole=True))
                else:
                    self.gap(
                        "the server does not show the place of the volume: grant the account READ VOLUME on the volume",
                        *parts,
                    )
        except UnityRefusal as error:
            self.gap(f"{error.reason}. The volumes of the schema are unknown", catalog, schema)

    def external_locations(self, client: UnityClient) -> None:
        """Places where files of no table and no volume may lie, too."""
        try:
            for made in client.external_locations():
                if made.url:
                    self.places.append(FilePlace(f"the external location {made.name}", made.url, whole=False))
                else:
                    self.gap("the server does not show its place: grant the account BROWSE on it", made.name)
        except UnityRefusal as error:
            self.gap(f"{error.reason}. Other places with files of the metastore are unknown")

    def _table(self, parts: tuple[str, str, str], table: TableInfo) -> None:
        kind, place = table.table_type or "", table.storage_location
        textless = kind == VIEW and not table.view_definition
        of_lists = parts[1].casefold() == _COMPUTED and (table.data_source_format == _OWN_LISTS or textless)
        if of_lists or kind == METRIC_VIEW:
            return
        if kind == VIEW:
            self._view(parts, table)
        elif kind not in _WITH_FILES:
            self._refuse(_ELSEWHERE.get(kind, "neither a table nor a view, but an object of an unknown kind"), table)
        elif not place and table.browse_only:
            self.gap(
                "the account can only browse the table, and cannot see its location: grant SELECT on the table", *parts
            )
        elif not place:
            self.gap("the server does not show the place of the table", *parts)
        else:
            self._files(parts, table, place)

    def _view(self, parts: tuple[str, str, str], table: TableInfo) -> None:
        name = sql_name(*parts)
        if not table.view_definition or name is None:
            self.gap("the server does not show the text of the view: grant the account SELECT on it", *parts)
            return
        properties = _lower(table)
        columns = tuple(Column(name=column.name, type=column.type_text or "") for column in table.columns or ())
        query = table.view_definition
        self.created[name] = 0  # its query is read, and not what was written into it
        self.views.append(CatalogView(self._name, name, query, _DIALECT, written_in(properties) or parts[:2], columns))

    def _files(self, parts: tuple[str, str, str], table: TableInfo, place: str) -> None:
        properties = _lower(table)
        kept = kept_as(_as_metastore(table, properties))
        if isinstance(kept, Refused):
            self._refuse(kept.reason, table)
            return
        if kept.by_metadata:
            self._refuse(
                f"a table of the format {kept.format}, but this interface does not return the metadata file. List the "
                "table through the server's interface for that format (docs/catalogs.md), then waive this gap",
                table,
            )
            return
        text: TextTable | None = None
        if kept.layout is not None:
            try:
                text = spark_text_table(_as_metastore(table, properties), kept.layout, ())
            except UnreadText as error:
                self._refuse(unread_text(error), table)
                return
        name = sql_name(*parts)
        self.entries.append(CatalogEntry(name, parts, kept.format, place, text=text))
        if name is not None:
            self.created[name] = (table.created_at or 0) * 1_000
        if any(map(_COMMITS.fullmatch, properties)):
            self.gap(
                "its catalog has commits that may not be in the table's log yet, and rejects commits of other "
                "engines. Ask the owner to erase the person, or to drop the feature",
                *parts,
                kind=GapKind.UNKNOWN_TABLE,
            )
        if kept.plain and properties.get(_PARTITIONS, "").lower() == "true":
            self.gap(
                "its partitions are registered one by one, and this interface does not return their locations. The "
                "plan does not erase partitions outside of the table's folder. List the partitions with SHOW "
                "PARTITIONS, declare each as a table, then waive this gap",
                *parts,
                kind=GapKind.EXTERNAL_FILES,
            )

    def _refuse(self, reason: str, table: TableInfo) -> None:
        parts = (table.catalog_name, table.schema_name, table.name)
        self.gap(reason, *parts, kind=GapKind.UNKNOWN_TABLE)
        if table.storage_location:
            self.opaque.append(Opaque(".".join(parts), (table.storage_location,)))


def _lower(table: TableInfo) -> dict[str, str]:
    return {key.lower(): value for key, value in (table.properties or {}).items()}


def _as_metastore(table: TableInfo, properties: dict[str, str]) -> Any:
    """A table in the words of a Hive metastore. What is written as another format as well is a table of the first."""
    word = (table.data_source_format or "").lower().partition("_uniform_")[0]
    options = {key.removeprefix(_OPTION): value for key, value in properties.items() if key.startswith(_OPTION)}
    keys = sorted(
        (c for c in table.columns or () if c.partition_index is not None), key=lambda c: c.partition_index or 0
    )
    return SimpleNamespace(
        tableType="EXTERNAL_TABLE",
        partitionKeys=[SimpleNamespace(name=column.name) for column in keys],
        parameters={"spark.sql.sources.provider": word or "none", "table_type": word},
        sd=SimpleNamespace(
            location=table.storage_location,
            cols=[SimpleNamespace(name=column.name, type=column.type_text) for column in table.columns or ()],
            inputFormat=None,
            parameters=None,
            storedAsSubDirectories=False,
            serdeInfo=SimpleNamespace(parameters=options, serializationLib=None),
        ),
    )
