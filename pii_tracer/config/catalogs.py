"""The estate file's part about catalogs: where tables get their names from."""

from __future__ import annotations

import re

from pydantic import Field, model_validator

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.config.formats import InstalledFormat
from pii_tracer.model.datasets import Format, Frozen


class CatalogType(StrEnum):
    """Catalogs that discovery can read and Spark sessions are set up with."""

    ICEBERG_HADOOP = "iceberg-hadoop"
    ICEBERG_REST = "iceberg-rest"
    ICEBERG_SQL = "iceberg-sql"
    GLUE = "glue"
    NESSIE = "nessie"
    DECLARED = "declared"


class TextEncoding(StrEnum):
    """Encodings of CSV files other than UTF-8: one byte a character, ASCII as ASCII. Java knows them by these names.

    No more than these: the byte scan reads text that is no UTF-8 in Windows-1252, which but for control characters
    holds ISO 8859-1; values in other encodings it would not find.
    """

    WINDOWS_1252 = "windows-1252"
    ISO_8859_1 = "iso-8859-1"


class DeclaredTable(Frozen):
    """A table that has a name in the session catalog and lives at a path. encoding: of CSV; UTF-8 where not given."""

    name: str
    format: InstalledFormat
    location: str
    encoding: TextEncoding | None = None

    @model_validator(mode="after")
    def _text(self) -> DeclaredTable:
        if self.encoding is not None and self.format is not Format.CSV:
            raise ValueError("`encoding` is for tables of the format csv")
        return self


_URIS = {
    CatalogType.ICEBERG_REST: r"https?://[^@\s]+",
    CatalogType.ICEBERG_SQL: r"(sqlite:///|postgresql://)[^@\s?]+",
    CatalogType.NESSIE: r"https?://[^@\s?#]+/v2/?",
}
_KEYS: dict[CatalogType, tuple[frozenset[str], frozenset[str]]] = {  # needed, allowed
    CatalogType.ICEBERG_HADOOP: (frozenset({"warehouse"}), frozenset({"warehouse"})),
    CatalogType.ICEBERG_REST: (frozenset({"uri"}), frozenset({"uri", "warehouse"})),
    CatalogType.ICEBERG_SQL: (frozenset({"uri", "warehouse"}), frozenset({"uri", "warehouse"})),
    CatalogType.GLUE: (frozenset({"region"}), frozenset({"region", "endpoint_url", "databases", "warehouse"})),
    CatalogType.NESSIE: (frozenset({"uri", "warehouse"}), frozenset({"uri", "warehouse", "ref"})),
    CatalogType.DECLARED: (frozenset(), frozenset({"tables"})),
}


class Catalog(Frozen):
    """A Spark catalog; its key in the estate file is the name that Spark SQL knows it by.

    iceberg-hadoop: `warehouse`. iceberg-rest: `uri`, `warehouse` as the server wants it. iceberg-sql: `uri`
    (`sqlite:///FILE`, relative to the estate file, or `postgresql://HOST/DATABASE`), `warehouse`. glue: `region`,
    `databases` (all where empty). nessie: `uri` of its API v2 (`http://HOST:19120/api/v2`), `warehouse`, `ref` (the
    branch that plain table names mean; the server's default branch where not given). declared: `tables`, names in
    spark_catalog. Credentials come from the environment.
    """

    type: CatalogType
    warehouse: str | None = None
    uri: str | None = None
    ref: str | None = Field(default=None, pattern=r"^[A-Za-z][A-Za-z0-9_/-]*$")
    region: str | None = None
    endpoint_url: str | None = Field(default=None, pattern=r"^https?://[^@\s]+$")
    databases: tuple[str, ...] = ()
    tables: tuple[DeclaredTable, ...] = ()

    @model_validator(mode="after")
    def _complete(self) -> Catalog:
        given = {name for name in type(self).model_fields if name != "type" and getattr(self, name)}
        needed, allowed = _KEYS[self.type]
        article = "an" if self.type.value.startswith("i") else "a"
        if needed - given:
            raise ValueError(f"{article} {self.type} catalog needs `{'`, `'.join(sorted(needed - given))}`")
        if given - allowed:
            raise ValueError(f"{article} {self.type} catalog has no `{'`, `'.join(sorted(given - allowed))}`")
        pattern = _URIS.get(self.type)
        if pattern and not re.fullmatch(pattern, self.uri or ""):
            raise ValueError(
                f"the `uri` of {article} {self.type} catalog is of another kind, or holds a user, a password or options"
            )
        return self
