"""Tables of a SQL catalog, read from its database (https://iceberg.apache.org/docs/latest/jdbc/)."""

from __future__ import annotations

import importlib.util
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.base import CatalogEntry, CatalogText, Listing, catalog_gap, secret, sql_name
from pii_tracer.lake.catalogs.default_table_format import SQL_KIND, SQL_PROPERTIES, SQL_TABLES, TABLES
from pii_tracer.lake.catalogs.hive.texts import PROPERTIES
from pii_tracer.lake.catalogs.sql.adapter import sqlite_file
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind


def list_sql(name: str, catalog: Catalog, base: Path) -> Listing:
    """All tables in one query: the database's table has a row for each, whatever the namespace."""
    try:
        rows = list(_rows(name, str(catalog.uri), base))
    except EstateError:
        raise
    except Exception as error:  # every driver has errors of its own
        reason = f"the catalog's database cannot be read ({type(error).__name__}), so its tables are unknown"
        return Listing((), (catalog_gap(name, GapKind.CATALOG_UNREADABLE, reason),))
    entries, gaps = [], []
    for row in rows:
        parts = (*str(row["table_namespace"]).split("."), str(row["table_name"]))
        if row["catalog_name"] != name:
            reason = "the database contains a table of a different catalog, which the estate file does not declare"
            gaps.append(catalog_gap(str(row["catalog_name"]), GapKind.UNKNOWN_CATALOG, reason, *parts))
        elif (row.get(SQL_KIND) or "TABLE") == "TABLE":
            entries.append(CatalogEntry(sql_name(name, *parts), parts, TABLES, None, row["metadata_location"]))
    return Listing(tuple(entries), tuple(gaps))


def catalogs_there(name: str, catalog: Catalog, base: Path) -> tuple[str, ...]:
    """The catalogs of which the database has tables; none where it does not answer."""
    try:
        return tuple(sorted({str(row["catalog_name"]) for row in _rows(name, str(catalog.uri), base)}))
    except Exception:  # `list_sql` says why
        return ()


def texts_of(name: str, catalog: Catalog, base: Path) -> Iterator[CatalogText]:
    """The properties of namespaces. They may name persons, and no delete of rows changes them."""
    told: dict[str, dict[str, Any]] = defaultdict(dict)
    try:
        for row in _rows(name, str(catalog.uri), base, SQL_PROPERTIES):
            if row["catalog_name"] == name:
                told[str(row["namespace"])][str(row["property_key"])] = row["property_value"]
    except EstateError:
        raise
    except Exception as error:
        yield CatalogText((), PROPERTIES, unread=type(error).__name__)
    for namespace, properties in told.items():
        yield CatalogText(tuple(namespace.split(".")), PROPERTIES, properties)


def _rows(name: str, uri: str, base: Path, table: str = SQL_TABLES) -> Iterable[Mapping[str, Any]]:
    """Rows of a table of the database, `iceberg_tables` or another. Catalogs of the first schema version have no
    `iceberg_type`: all of it are tables."""
    query = f"SELECT * FROM {table} ORDER BY 1, 2, 3"  # noqa: S608 (a constant)
    file = sqlite_file(uri, base)
    if file is not None:
        # read-only: a missing file must not be made
        connection = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=30)
        try:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(query)]
        finally:
            connection.close()
    if importlib.util.find_spec("sqlalchemy") is None:
        raise EstateError(
            "the estate file names a SQL catalog, but sqlalchemy is not installed", todo="run `pip install sqlalchemy`"
        )
    import sqlalchemy

    place = sqlalchemy.make_url(uri).set(username=secret(name, "USER"), password=secret(name, "PASSWORD"))
    engine = sqlalchemy.create_engine(place)
    try:
        with engine.connect() as connected:
            return [dict(row) for row in connected.execute(sqlalchemy.text(query)).mappings()]
    finally:
        engine.dispose()
