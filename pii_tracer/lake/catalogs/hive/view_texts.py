"""The query of a view, as the engine that made it keeps it in a metastore, or in Glue.

Hive keeps it twice; `viewExpandedText` has every name with its database. Spark keeps the text as it was written, and in
properties where names without a database belong (`CatalogTable.viewCatalogAndNamespace`, before Spark 3
`view.default.database`). Trino, Presto and Athena keep JSON in base64, in a comment (Trino's `ViewReaderUtil`).
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any

from pii_tracer.lake.catalogs.base import CatalogView
from pii_tracer.lake.catalogs.hive.table_kind_detection import parameters_of
from pii_tracer.model.datasets import Column

_IN_COMMENT = re.compile(r"\s*/\*\s*(?:Presto|Trino) (?:Materialized )?View:\s*([A-Za-z0-9+/=\s]+?)\s*\*/\s*")
_CREATED_IN = "view.catalogandnamespace."
_SESSION = "spark_catalog"


def view_of(catalog: str, name: str, parts: tuple[str, str], table: Any) -> CatalogView | None:
    """A view with its query. name: as SQL calls it; parts: its database and its own name. None where no text is there
    that can be read."""
    original, expanded = str(table.viewOriginalText or ""), str(table.viewExpandedText or "")
    if coded := _IN_COMMENT.fullmatch(original):
        return _of_trino(catalog, name, parts[0], coded.group(1))
    own = parameters_of(table)
    columns = tuple(
        Column(name=str(c.name), type=str(c.type or "")) for c in (table.sd.cols if table.sd else None) or ()
    )
    by_spark = any(key.startswith(("spark.sql.", "view.")) for key in own)
    query = (original or expanded) if by_spark else (expanded or original)
    if not query.strip() or query.lstrip().startswith("/*"):
        return None
    home = written_in(own) or (parts[0],)
    # the session catalog of who made the view is this metastore, whatever the estate file calls it
    home = home[1:] if len(home) > 1 and home[0].lower() == _SESSION else home
    return CatalogView(catalog, name, query, "spark" if by_spark else "hive", home, columns)


def written_in(own: Mapping[str, str]) -> tuple[str, ...]:
    """The catalog and database in which the text of a view was written, where Spark noted them. own: its properties, by
    names in small letters."""
    count = own.get(f"{_CREATED_IN}numparts", "")
    if re.fullmatch("[0-9]", count):
        return tuple(own.get(f"{_CREATED_IN}part.{at}", "") for at in range(int(count)))
    return (own["view.default.database"],) if "view.default.database" in own else ()


def _of_trino(catalog: str, name: str, database: str, coded: str) -> CatalogView | None:
    try:
        made = json.loads(base64.b64decode(coded, validate=False))
        query, home = made["originalSql"], made.get("schema") or database
        columns = tuple(Column(name=str(c["name"]), type=str(c.get("type") or "")) for c in made.get("columns") or ())
    except (binascii.Error, ValueError, KeyError, TypeError, AttributeError):
        return None
    if not isinstance(query, str) or not isinstance(home, str) or not query.strip():
        return None
    return CatalogView(catalog, name, query, "trino", (home,), columns)
