"""Which catalog and schema `USE` has set, and what a table's name means there.

Rules: https://spark.apache.org/docs/latest/sql-ref-syntax-ddl-usedb.html and, of `USE CATALOG`,
https://docs.databricks.com/aws/en/sql/language-manual/sql-ref-syntax-ddl-use-catalog (the schema is `default` then).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pii_tracer.lineage.sql.text.script_splitting import NAME
from pii_tracer.lineage.sql.text.table_names import PATH_FORMATS

_USE = re.compile(
    rf"\s*(?:USE\s+(?:(?P<kind>CATALOG|SCHEMA|DATABASE|NAMESPACE)\s+)?|(?P<set>SET\s+CATALOG\s+))(?P<name>{NAME})\s*\Z",
    re.IGNORECASE,
)
_UNTOLD = re.compile(
    r"\s*(?:USE\s+(?:(?:CATALOG|SCHEMA|DATABASE|NAMESPACE)\s+)?|SET\s+CATALOG\s+)(?:IDENTIFIER\s*\(|\S*[${:])",
    re.IGNORECASE,
)
"""What is used is a parameter or an expression."""
_PART = re.compile(r"`((?:[^`]|``)*)`|\"([^\"]*)\"|'([^']*)'|\[([^\]]*)\]|([^.]+)")
_SPARK = "spark_catalog"


@dataclass(frozen=True)
class InUse:
    """The catalog and the schema that count now, as far as they are told. catalogs: known names, in lower case."""

    catalogs: frozenset[str]
    catalog: str | None = None
    schema: str | None = None

    @classmethod
    def at_first(cls, catalogs: Collection[str]) -> InUse:
        """Before any `USE`. catalogs: those that are known."""
        return cls(frozenset(name.lower() for name in (*catalogs, _SPARK)))

    def after(self, statement: str) -> InUse:
        """What counts behind a statement; after one that does not tell what it uses, nothing is known."""
        if _UNTOLD.match(statement):
            return InUse(self.catalogs)
        found = _USE.match(statement)
        if not found:
            return self
        parts, kind = parts_of(found["name"]), (found["kind"] or "").upper()
        if kind == "CATALOG" or found["set"]:
            schema = "default" if kind else _first_schema(parts[0])
            return InUse(self.catalogs | {parts[0].lower()}, parts[0], schema)
        if len(parts) > 1:
            return InUse(self.catalogs | {parts[0].lower()}, parts[0], ".".join(parts[1:]))
        if not kind and parts[0].lower() in self.catalogs:
            return InUse(self.catalogs, parts[0], _first_schema(parts[0]))
        return InUse(self.catalogs, self.catalog, parts[0])

    def full(self, parts: Sequence[str]) -> str:
        """The name of a table, given in its parts, with all that is known of where it is."""
        if len(parts) == 1:
            parts = [*filter(None, (self.catalog, self.schema)), *parts]
        elif len(parts) == 2 and self.catalog and parts[0].lower() not in self.catalogs | PATH_FORMATS:
            parts = [self.catalog, *parts]
        return ".".join(parts)


def parts_of(name: str) -> list[str]:
    """The parts of a dotted name, without their quotes."""
    return [next(filter(None, found), "") for found in _PART.findall(name)]


def _first_schema(catalog: str) -> str | None:
    """Where Spark begins in a catalog: in most of them above all schemas, in its own in `default`."""
    return "default" if catalog.lower() == _SPARK else None
