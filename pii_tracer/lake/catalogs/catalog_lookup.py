"""What the estate's catalogs know: names of tables, where they lie, and which metadata file of an Iceberg table counts.

Iceberg's SQL, REST and Glue catalogs point at one metadata file of each table; the folder alone does not tell which one
counts, since a commit that failed leaves a file too (https://iceberg.apache.org/spec/#metastore-tables). What a catalog
does not answer is a gap, and the rest of it is read all the same.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pii_tracer.config.catalogs import Catalog, CatalogType
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.catalogs.catalog_types import REST, SQL, SQL_KIND, SQL_TABLES, TABLES
from pii_tracer.lake.inventory import InventoryGap, RefKind
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind

SQLITE = "sqlite:///"


@dataclass(frozen=True)
class Head:
    """Where a catalog with branches (Nessie) names a table: on which reference, and with which snapshot.

    default: whether it is the branch that plain table names mean.
    """

    catalog: str
    ref: str
    kind: RefKind
    snapshot: int | None
    default: bool


@dataclass(frozen=True)
class CatalogEntry:
    """A table as a catalog names it. name: as Spark SQL writes it; None where it cannot be written there.

    location and metadata: as the catalog writes them, paths or URIs; an Iceberg table may have no location here, it
    then stands in its metadata. head: only in catalogs with branches, which have an entry for each reference.
    """

    name: str | None
    parts: tuple[str, ...]
    format: Format
    location: str | None
    metadata: str | None = None
    head: Head | None = None


@dataclass(frozen=True)
class Listing:
    """What one catalog answered. former: metadata files of tables that only its history still names, one a folder.

    committed: every metadata file that its history names, where an account was used that may not see all of it.
    """

    entries: tuple[CatalogEntry, ...]
    gaps: tuple[InventoryGap, ...]
    former: tuple[str, ...] = ()
    committed: frozenset[str] | None = None


def catalog_gap(name: str, kind: GapKind, reason: str, *parts: str) -> InventoryGap:
    """A gap of the catalog called `name`; parts: namespace and table that it is about."""
    evidence = ".".join((name, *parts))
    return InventoryGap(dataset=None, kind=kind, reason=reason, evidence=f"catalog {evidence}")


def sql_name(*parts: str) -> str | None:
    """The dotted name of a table; None where a part holds a dot, which dotted names cannot tell from a namespace."""
    return None if any("." in part or not part for part in parts) else ".".join(parts)


def secret(catalog: str, what: str) -> str | None:
    """A credential of a catalog: the environment variable `PII_TRACER_CATALOG_<NAME>_<WHAT>`."""
    return os.environ.get(f"PII_TRACER_CATALOG_{re.sub(r'[^A-Za-z0-9]', '_', catalog).upper()}_{what}") or None


def list_catalogs(estate: Estate, base: Path) -> Iterator[Listing]:
    """Ask every catalog that lists its own tables, in the order of their names. base: folder of the estate file."""
    for name, catalog in sorted(estate.catalogs.items()):
        if catalog.type is SQL:
            yield _sql(name, catalog, base)
        elif catalog.type is REST:
            from pii_tracer.lake.catalogs.rest.tables import list_rest

            yield list_rest(name, catalog)
        elif catalog.type is CatalogType.GLUE:
            from pii_tracer.lake.catalogs.glue.tables import list_glue

            yield list_glue(name, catalog)
        elif catalog.type is CatalogType.NESSIE:
            from pii_tracer.lake.catalogs.nessie.tables import list_nessie

            yield list_nessie(name, catalog)


# --- SQL catalogs (https://iceberg.apache.org/docs/latest/jdbc/) ---


def sqlite_file(uri: str, base: Path) -> Path | None:
    """The file of a `sqlite:///` URI, relative to the estate file's folder; None for other databases."""
    return (base / uri.removeprefix(SQLITE)).resolve() if uri.startswith(SQLITE) else None


def _sql(name: str, catalog: Catalog, base: Path) -> Listing:
    """All tables in one query: the database's table has a row for each, whatever the namespace."""
    try:
        rows = list(_rows(name, str(catalog.uri), base))
    except EstateError:
        raise
    except Exception as error:  # every driver has errors of its own
        reason = f"the catalog's database cannot be read ({type(error).__name__}): its tables are unknown"
        return Listing((), (catalog_gap(name, GapKind.CATALOG_UNREADABLE, reason),))
    entries, gaps = [], []
    for row in rows:
        parts = (*str(row["table_namespace"]).split("."), str(row["table_name"]))
        if row["catalog_name"] != name:
            reason = "the database holds a table of another catalog, which the estate file does not name"
            gaps.append(catalog_gap(str(row["catalog_name"]), GapKind.UNKNOWN_CATALOG, reason, *parts))
        elif (row.get(SQL_KIND) or "TABLE") == "TABLE":
            entries.append(CatalogEntry(sql_name(name, *parts), parts, TABLES, None, row["metadata_location"]))
    return Listing(tuple(entries), tuple(gaps))


def _rows(name: str, uri: str, base: Path) -> Iterable[Mapping[str, Any]]:
    """Rows of `iceberg_tables`. Catalogs of the first schema version have no `iceberg_type`: all of it are tables."""
    query = f"SELECT * FROM {SQL_TABLES} ORDER BY catalog_name, table_namespace, table_name"  # noqa: S608 (a constant)
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
        raise EstateError("the estate names a SQL catalog and sqlalchemy is missing", todo="pip install sqlalchemy")
    import sqlalchemy

    place = sqlalchemy.make_url(uri).set(username=secret(name, "USER"), password=secret(name, "PASSWORD"))
    engine = sqlalchemy.create_engine(place)
    try:
        with engine.connect() as connected:
            return [dict(row) for row in connected.execute(sqlalchemy.text(query)).mappings()]
    finally:
        engine.dispose()
