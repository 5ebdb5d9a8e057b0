"""Tables of an Iceberg REST catalog, through PyIceberg.

https://iceberg.apache.org/rest-catalog-spec/. A token or a credential (`id:secret`) comes from the environment: the
variables `PII_TRACER_CATALOG_<NAME>_TOKEN` and `…_CREDENTIAL`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.base import (
    CatalogEntry,
    Listing,
    catalog_gap,
    secret,
    sql_name,
)
from pii_tracer.lake.catalogs.default_table_format import TABLES
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
    """Every table of every namespace, nested ones too. A namespace or table that is refused is a gap of its own."""
    settings = {"uri": str(catalog.uri), **({"warehouse": catalog.warehouse} if catalog.warehouse else {})}
    try:
        client = _client(name, {**settings, **credentials(name)})
    except Exception as error:  # the client lets errors of many families through
        reason = f"the catalog does not answer ({type(error).__name__}): its tables are unknown"
        return Listing((), (catalog_gap(name, GapKind.CATALOG_UNREADABLE, reason),))
    walk = _Walk(name, client)
    walk.namespaces(())
    return Listing(tuple(walk.entries), tuple(walk.gaps))


def _client(name: str, settings: dict[str, str]) -> RestCatalog:
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

    return Client(name, **settings)


class _Walk:
    def __init__(self, name: str, client: RestCatalog) -> None:
        self._name = name
        self._client = client
        self._seen: set[tuple[str, ...]] = set()
        self.entries: list[CatalogEntry] = []
        self.gaps: list[InventoryGap] = []

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
            self._tables(child)
            if len(child) < _DEEPEST:
                self.namespaces(child)
            else:
                self._gap(f"namespaces below the {_DEEPEST}th level are not read", child)

    def _tables(self, namespace: tuple[str, ...]) -> None:
        try:
            tables = sorted(tuple(table) for table in self._client.list_tables(namespace))
        except Exception as error:
            self._gap(f"the tables of the namespace cannot be listed ({type(error).__name__})", namespace)
            return
        for parts in tables:
            try:
                table = self._client.load_table(parts)
            except Exception as error:
                self._gap(f"the table cannot be loaded ({type(error).__name__}): nothing is known of it", parts)
                continue
            name = sql_name(self._name, *parts)
            entry = CatalogEntry(name, parts, TABLES, table.location(), table.metadata_location)
            self.entries.append(entry)

    def _gap(self, reason: str, parts: tuple[str, ...]) -> None:
        self.gaps.append(catalog_gap(self._name, GapKind.CATALOG_UNREADABLE, reason, *parts))
