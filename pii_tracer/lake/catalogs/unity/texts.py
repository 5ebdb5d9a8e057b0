"""What a Unity Catalog metastore itself keeps of catalogs, schemas, tables, columns and volumes: comments, properties,
texts of views, owners, and tags, of which each thing's cost a request (https://docs.databricks.com/api/workspace/entitytagassignments).

No delete of rows changes any of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from pii_tracer.common.parallel_map import several
from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.base import CatalogText
from pii_tracer.lake.catalogs.hive.texts import PROPERTIES, VIEW
from pii_tracer.lake.catalogs.unity.answers import Named, TableInfo
from pii_tracer.lake.catalogs.unity.client import UnityClient, UnityRefusal
from pii_tracer.lake.catalogs.unity.scope import Scope
from pii_tracer.model.gap_kinds import GapKind

TAGS = "tags"
_COLUMNS = "columns"


def texts_of(name: str, catalog: Catalog) -> Iterator[CatalogText]:
    """Every text of the named catalogs and schemas, or of all. What is refused is told as unread."""
    client, scope, reader = UnityClient(name, catalog), Scope(catalog), _Reader()
    for made in scope.catalogs(client, reader.refused):
        yield from reader.of(client, "catalogs", (made.name,), made)
        for schema in scope.schemas(client, made.name, reader.refused):
            yield from reader.of(client, "schemas", (made.name, schema.name), schema)
            yield from reader.schema(client, (made.name, schema.name))
    yield from reader.unread


class _Reader:
    def __init__(self) -> None:
        self.unread: list[CatalogText] = []
        self._tagged = True

    def refused(self, reason: str, *parts: str, kind: GapKind = GapKind.CATALOG_UNREADABLE) -> None:
        """What was not read; the texts of a catalog that is not read at all are that gap's."""
        if kind is GapKind.CATALOG_UNREADABLE:
            self.unread.append(CatalogText(parts, PROPERTIES, unread=reason))

    def schema(self, client: UnityClient, parts: tuple[str, str]) -> Iterator[CatalogText]:
        """Tables and volumes of a schema."""
        try:
            tables = client.tables(*parts)
            volumes = client.volumes(*parts)
        except UnityRefusal as error:
            self.refused(error.reason, *parts)
            return
        for table in tables:
            named = (*parts, table.name)
            yield from self.of(client, "tables", named, table)
            yield from _view(named, table)
            names = [(*named, column.name) for column in table.columns or ()]
            for tags in several(lambda column: list(self._tags(client, _COLUMNS, column)), names):
                yield from tags
        for volume in volumes:
            yield from self.of(client, "volumes", (*parts, volume.name), volume)

    def of(self, client: UnityClient, kind: str, parts: tuple[str, ...], made: Named) -> Iterator[CatalogText]:
        """What one thing says of itself, and its tags."""
        told = made.texts()
        told.pop("view_definition", None)
        yield CatalogText(parts, PROPERTIES, told)
        if made.browse_only:
            yield CatalogText(parts, PROPERTIES, unread="the account can only browse this object: grant SELECT on it")
        yield from self._tags(client, kind, parts)

    def _tags(self, client: UnityClient, kind: str, parts: tuple[str, ...]) -> Iterator[CatalogText]:
        if not self._tagged:
            return
        shown = parts[:3]
        try:
            tags = client.tags(kind, ".".join(parts))
        except UnityRefusal as error:
            yield CatalogText(shown, TAGS, unread=error.reason)
            return
        if tags is None:
            self._tagged = False
        elif tags:
            yield CatalogText(shown, TAGS, [[tag.tag_key, tag.tag_value] for tag in tags])


def _view(parts: tuple[str, ...], table: TableInfo) -> Iterator[CatalogText]:
    if table.view_definition:
        yield CatalogText(parts, VIEW, {"query": [table.view_definition]})
