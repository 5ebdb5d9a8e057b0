"""Tables and views of an Iceberg REST catalog, and what it keeps of them, through PyIceberg.

https://iceberg.apache.org/rest-catalog-spec/. A token or a credential (`id:secret`) comes from the environment: the
variables `PII_TRACER_CATALOG_<NAME>_TOKEN` and `…_CREDENTIAL`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.base import (
    CatalogEntry,
    CatalogText,
    CatalogView,
    Listing,
    catalog_gap,
    secret,
    sql_name,
)
from pii_tracer.lake.catalogs.default_table_format import TABLES
from pii_tracer.lake.catalogs.hive.texts import PROPERTIES, VIEW
from pii_tracer.lake.catalogs.rest.views import document_of, view_of
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.model.gap_kinds import GapKind

if TYPE_CHECKING:
    from pyiceberg.catalog.rest import RestCatalog

# a catalog that answers an endless tree is not followed for ever
_DEEPEST = 32
CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 120.0


def credentials(name: str) -> dict[str, str]:
    """The credentials of a REST catalog as PyIceberg and Spark call them."""
    found = {"token": secret(name, "TOKEN"), "credential": secret(name, "CREDENTIAL")}
    return {key: value for key, value in found.items() if value}


def list_rest(name: str, catalog: Catalog) -> Listing:
    """Every table and view of every namespace, nested ones too. One that is refused is a gap of its own."""
    try:
        client = _client(name, catalog)
    except Exception as error:  # the client lets errors of many families through
        reason = f"the catalog does not answer ({type(error).__name__}): its tables are unknown"
        return Listing((), (catalog_gap(name, GapKind.CATALOG_UNREADABLE, reason),))
    walk = _Lists(name, client)
    walk.namespaces(())
    return Listing(tuple(walk.entries), tuple(walk.gaps), views=tuple(walk.views))


def texts_of(name: str, catalog: Catalog) -> Iterator[CatalogText]:
    """Properties of every namespace, and all versions of every view. Those of tables are in their metadata files."""
    try:
        client = _client(name, catalog)
    except Exception as error:
        yield CatalogText((), PROPERTIES, unread=type(error).__name__)
        return
    walk = _Texts(name, client)
    walk.namespaces(())
    yield from walk.texts


def _client(name: str, catalog: Catalog) -> RestCatalog:
    """PyIceberg's client, which by itself would wait for ever for a server that has fallen silent."""
    from pyiceberg.catalog.rest import RestCatalog
    from requests import PreparedRequest, Response, Session
    from requests.adapters import HTTPAdapter

    class Impatient(HTTPAdapter):
        def send(self, request: PreparedRequest, *args: Any, **kwargs: Any) -> Response:
            return super().send(request, *args, **{**kwargs, "timeout": (CONNECT_SECONDS, ANSWER_SECONDS)})

    class Client(RestCatalog):
        def _create_session(self) -> Session:
            session = super()._create_session()
            for scheme in ("http://", "https://"):
                session.mount(scheme, Impatient())
            return session

    warehouse = {"warehouse": catalog.warehouse} if catalog.warehouse else {}
    return Client(name, uri=str(catalog.uri), **warehouse, **credentials(name))


class _Walk:
    """Through all namespaces. What is refused is told by `_gap`."""

    def __init__(self, name: str, client: RestCatalog) -> None:
        self._name = name
        self._client = client
        self._seen: set[tuple[str, ...]] = set()

    def namespaces(self, parent: tuple[str, ...]) -> None:
        try:
            children = sorted(tuple(child) for child in self._client.list_namespaces(parent))
        except Exception as error:
            self._gap(f"the namespaces cannot be listed ({type(error).__name__})", parent)
            return
        for child in children:
            if child in self._seen or child == parent:
                continue
            self._seen.add(child)
            self._namespace(child)
            if len(child) < _DEEPEST:
                self.namespaces(child)
            else:
                self._gap(f"namespaces below the {_DEEPEST}th level are not read", child)

    def _namespace(self, namespace: tuple[str, ...]) -> None:
        raise NotImplementedError

    def _gap(self, reason: str, parts: tuple[str, ...]) -> None:
        raise NotImplementedError

    def _each(
        self,
        what: str,
        namespace: tuple[str, ...],
        listed: Callable[[tuple[str, ...]], Any],
        load: Callable[[tuple[str, ...]], Any],
    ) -> Iterator[tuple[tuple[str, ...], Any]]:
        """The tables or views of a namespace. what: what they are called."""
        try:
            found = sorted(tuple(one) for one in listed(namespace))
        except Exception as error:
            self._gap(f"the {what}s of the namespace cannot be listed ({type(error).__name__})", namespace)
            return
        for parts in found:
            try:
                made = load(parts)
            except Exception as error:
                self._gap(f"the {what} cannot be loaded ({type(error).__name__}): nothing is known of it", parts)
                continue
            yield parts, made

    def _views(self, namespace: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
        return self._each("view", namespace, self._client.list_views, lambda parts: self._client.load_view(parts))


class _Lists(_Walk):
    """What the catalog has."""

    def __init__(self, name: str, client: RestCatalog) -> None:
        super().__init__(name, client)
        self.entries: list[CatalogEntry] = []
        self.views: list[CatalogView] = []
        self.gaps: list[InventoryGap] = []

    def _namespace(self, namespace: tuple[str, ...]) -> None:
        for parts, table in self._each("table", namespace, self._client.list_tables, self._client.load_table):
            name = sql_name(self._name, *parts)
            self.entries.append(CatalogEntry(name, parts, TABLES, table.location(), table.metadata_location))
        for parts, made in self._views(namespace):
            view = view_of(self._name, parts, made)
            if view is not None:
                self.views.append(view)
                continue
            reason = (
                "no query of the view can be read, so the tables that its readers read are unknown. Put its CREATE VIEW"
                " statement into a file under `lineage.sql`, and waive this"
            )
            self._gap(reason, parts)

    def _gap(self, reason: str, parts: tuple[str, ...]) -> None:
        self.gaps.append(catalog_gap(self._name, GapKind.CATALOG_UNREADABLE, reason, *parts))


class _Texts(_Walk):
    """What the catalog keeps beside tables."""

    def __init__(self, name: str, client: RestCatalog) -> None:
        super().__init__(name, client)
        self.texts: list[CatalogText] = []

    def _namespace(self, namespace: tuple[str, ...]) -> None:
        try:
            told = self._client.load_namespace_properties(namespace)
        except Exception as error:
            self._gap(type(error).__name__, namespace)
        else:
            self.texts.append(CatalogText(namespace, PROPERTIES, dict(told)))
        self.texts += (CatalogText(parts, VIEW, document_of(made)) for parts, made in self._views(namespace))

    def _gap(self, reason: str, parts: tuple[str, ...]) -> None:
        self.texts.append(CatalogText(parts, PROPERTIES, unread=reason))
