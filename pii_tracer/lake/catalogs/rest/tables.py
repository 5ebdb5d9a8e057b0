"""Tables and views of an Iceberg REST catalog, and what it keeps of them, through PyIceberg.

https://iceberg.apache.org/rest-catalog-spec/. A token or a credential (`id:secret`) comes from the environment: the
variables `PII_TRACER_CATALOG_<NAME>_TOKEN` and `…_CREDENTIAL`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

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

M = TypeVar("M")

# a catalog that answers an endless tree is not followed for ever
_DEEPEST = 32
CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 120.0
MOST_PAGES = 20_000
"""Of one list: a server that always has one more page is not followed for ever."""
_NO_VIEWS = frozenset({404, 405, 501})
"""Answers to a list of views by servers that have none, if they do not tell their endpoints."""


def credentials(name: str) -> dict[str, str]:
    """The credentials of a REST catalog as PyIceberg and Spark call them."""
    found = {"token": secret(name, "TOKEN"), "credential": secret(name, "CREDENTIAL")}
    return {key: value for key, value in found.items() if value}


def list_rest(name: str, catalog: Catalog) -> Listing:
    """Every table and view of every namespace, nested ones too. One that is refused is a gap of its own."""
    try:
        client = _client(name, catalog)
    except Exception as error:  # the client lets errors of many families through
        reason = f"the catalog does not answer ({type(error).__name__}), so its tables are unknown"
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


class EndlessList(Exception):
    """A server hands out a page a second time, or ever more of them."""


def _client(name: str, catalog: Catalog) -> RestCatalog:
    """PyIceberg's client, which by itself would wait for ever for a server that has fallen silent, follow a list for
    ever, and ask no server for views that does not tell its endpoints."""
    from pyiceberg.catalog.rest import (
        DEFAULT_ENDPOINTS,
        VIEW_ENDPOINTS,
        VIEW_ENDPOINTS_SUPPORTED,
        RestCatalog,
    )
    from requests import HTTPError, PreparedRequest, Response, Session
    from requests.adapters import HTTPAdapter

    followed = _Followed()

    class Impatient(HTTPAdapter):
        def send(self, request: PreparedRequest, *args: Any, **kwargs: Any) -> Response:
            followed.check(str(request.url))
            return super().send(request, *args, **{**kwargs, "timeout": (CONNECT_SECONDS, ANSWER_SECONDS)})

    class Client(RestCatalog):
        def _create_session(self) -> Session:
            session = super()._create_session()
            for scheme in ("http://", "https://"):
                session.mount(scheme, Impatient())
            return session

        def list_views(self, namespace: str | tuple[str, ...]) -> list[tuple[str, ...]]:
            try:
                found: list[tuple[str, ...]] = super().list_views(namespace)
            except Exception as error:
                answer = error.__cause__.response if isinstance(error.__cause__, HTTPError) else None
                untold = self._supported_endpoints == {*DEFAULT_ENDPOINTS, *VIEW_ENDPOINTS}
                if untold and answer is not None and answer.status_code in _NO_VIEWS:
                    return []
                raise
            return found

    told = {"warehouse": catalog.warehouse} if catalog.warehouse else {}
    told[VIEW_ENDPOINTS_SUPPORTED] = "true"  # for servers that do not tell their endpoints
    return Client(name, uri=str(catalog.uri), **told, **credentials(name))


class _Followed:
    """The pages that were asked for, by list."""

    def __init__(self) -> None:
        self._tokens: dict[str, set[str]] = {}

    def check(self, url: str) -> None:
        """Raises EndlessList: this page of the list was asked for before, or they are too many."""
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query))
        token = query.pop("pageToken", "")
        tokens = self._tokens.setdefault(f"{parts.path}?{query}", set())
        if not token:
            tokens.clear()  # the list from its beginning, which is asked for again with another login
        elif token in tokens or len(tokens) >= MOST_PAGES:
            raise EndlessList
        else:
            tokens.add(token)


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
                self._gap(f"the tool does not read namespaces below level {_DEEPEST}", child)

    def _namespace(self, namespace: tuple[str, ...]) -> None:
        raise NotImplementedError

    def _gap(self, reason: str, parts: tuple[str, ...]) -> None:
        raise NotImplementedError

    def _each(
        self,
        what: str,
        namespace: tuple[str, ...],
        listed: Callable[[tuple[str, ...]], Any],
        load: Callable[[tuple[str, ...]], M],
    ) -> Iterator[tuple[tuple[str, ...], M]]:
        """The tables or views of a namespace. what: what they are called."""
        try:
            found = sorted({tuple(one) for one in listed(namespace)})
        except Exception as error:
            self._gap(f"the {what}s of the namespace cannot be listed ({type(error).__name__})", namespace)
            return
        for parts in found:
            try:
                made = load(parts)
            except Exception as error:
                self._gap(f"the {what} cannot be loaded ({type(error).__name__}), so its contents are unknown", parts)
                continue
            yield parts, made

    def _views(
        self, namespace: tuple[str, ...], read: Callable[[tuple[str, ...], Any], M]
    ) -> Iterator[tuple[tuple[str, ...], M]]:
        """Each view, as `read` makes it of what the client has."""
        client = self._client
        return self._each("view", namespace, client.list_views, lambda parts: read(parts, client.load_view(parts)))


_NO_QUERY = (
    "the query of the view cannot be read, so its source tables are unknown. Put the CREATE VIEW statement into a "
    "file under `lineage.sql`, then waive this gap"
)
_UNNAMED = (
    "a part of the view's name contains a dot, which looks like the end of a namespace, so its source tables are "
    "unknown: rename the view"
)


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
        for parts, view in self._views(namespace, partial(view_of, self._name)):
            if view is not None:
                self.views.append(view)
            else:
                self._gap(_UNNAMED if sql_name(self._name, *parts) is None else _NO_QUERY, parts)

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
        documents = self._views(namespace, lambda _, made: document_of(made))
        self.texts += (CatalogText(parts, VIEW, document) for parts, document in documents)

    def _gap(self, reason: str, parts: tuple[str, ...]) -> None:
        self.texts.append(CatalogText(parts, PROPERTIES, unread=reason))
