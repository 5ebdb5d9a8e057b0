"""The estate file's part about catalogs: where tables get their names from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from pii_tracer.common import plugins
from pii_tracer.common.kerberos import PRINCIPAL
from pii_tracer.common.open_vocabulary import OpenVocabulary, word
from pii_tracer.common.str_enum import StrEnum
from pii_tracer.config.formats import InstalledFormat
from pii_tracer.model.datasets import Format, Frozen
from pii_tracer.model.hive_text.columns import UnreadText, columns_of
from pii_tracer.model.hive_text.layout import Serde, TextTable
from pii_tracer.model.hive_text.spark_options import spark_layout, unknown_options
from pii_tracer.model.locations import WEB_ADDRESS

GROUP = "pii_tracer.catalogs"
"""Where packages register their types of catalogs. Each says which keys the estate file gives of one."""


_OF_ALL = frozenset({"type", "keep_history"})
"""Keys that are no adapter's own."""


class CatalogType(OpenVocabulary):
    """Types of catalogs. These are the project's own; an installed adapter can bring others."""

    __slots__ = ()
    _pattern = r"^[a-z][a-z0-9_-]{0,63}$"
    _letters = "lower-case letters, digits, hyphens and underscores"
    ICEBERG_HADOOP: ClassVar[CatalogType] = word("iceberg-hadoop")
    ICEBERG_REST: ClassVar[CatalogType] = word("iceberg-rest")
    ICEBERG_SQL: ClassVar[CatalogType] = word("iceberg-sql")
    GLUE: ClassVar[CatalogType] = word("glue")
    HIVE: ClassVar[CatalogType] = word("hive")
    NESSIE: ClassVar[CatalogType] = word("nessie")
    UNITY: ClassVar[CatalogType] = word("unity")
    DECLARED: ClassVar[CatalogType] = word("declared")


def _installed(name: CatalogType) -> CatalogType:
    known = plugins.names(GROUP)
    if name.value not in known:
        raise ValueError(f"no installed adapter knows this type of catalogs; known are {', '.join(known)}")
    return name


InstalledCatalog = Annotated[CatalogType, AfterValidator(_installed)]
"""A type of catalogs of which an adapter is installed."""


class TextEncoding(StrEnum):
    """Encodings of CSV files other than UTF-8: one byte a character, ASCII as ASCII. Java knows them by these names.

    No more than these: the byte scan reads text that is no UTF-8 in Windows-1252, which but for control characters
    holds ISO 8859-1; values in other encodings it would not find.
    """

    WINDOWS_1252 = "windows-1252"
    ISO_8859_1 = "iso-8859-1"


class DeclaredColumn(Frozen):
    """A column of a CSV table, by its place. type: as Spark SQL writes it."""

    name: str = Field(min_length=1)
    type: str = "string"


def _as_written(value: Any) -> Any:
    """An option as Spark takes it: `true` of YAML is a text for it."""
    return str(value).lower() if isinstance(value, bool) else value


class DeclaredTable(Frozen):
    """A table that has a name in the session catalog and lives at a path. encoding: of CSV; UTF-8 where not given.

    options: of Spark's reader, by which CSV is read; columns: of such CSV, in their order; partitions: its partition
    columns, as folders (`day=1`) name them.
    """

    name: str
    format: InstalledFormat
    location: str
    encoding: TextEncoding | None = None
    options: Mapping[str, Annotated[str, BeforeValidator(_as_written)]] = Field(default_factory=dict)
    columns: tuple[DeclaredColumn, ...] = ()
    partitions: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _text(self) -> DeclaredTable:
        for key in ("encoding", "options", "columns", "partitions"):
            if getattr(self, key) and self.format is not Format.CSV:
                raise ValueError(f"`{key}` applies only to CSV tables; remove it")
        if not self.options:
            if self.columns or self.partitions:
                raise ValueError("`columns` and `partitions` apply only to CSV tables with `options`; remove them")
            return self
        if self.encoding is not None:
            raise ValueError("`encoding` must be under the `options` of the table; move it there")
        if unknown := unknown_options(self.options):
            raise ValueError(f"`options` of Spark's CSV reader that are not known here: {', '.join(unknown)}")
        try:
            _ = self.text
        except UnreadText as error:
            raise ValueError(f"`options` or `columns` of a table are not supported: {error}") from None
        return self

    @property
    def text(self) -> TextTable | None:
        """How a table with options is read.

        Raises:
            UnreadText: something is not understood exactly.
        """
        if not self.options:
            return None
        if not self.columns:
            raise UnreadText("a table with `options` also needs `columns`, in the order of the file")
        columns = columns_of(((column.name, column.type) for column in self.columns), Serde.SPARK)
        keys = tuple(name.lower() for name in self.partitions)
        if len({*keys, *(column.name.lower() for column in columns)}) < len(keys) + len(columns):
            raise UnreadText("two of its columns and partition columns have one name")
        return TextTable(columns=columns, layout=spark_layout(self.options), keys=keys)


class HiveServer2(Frozen):
    """A HiveServer2, which deletes rows of transactional tables. user: whom it is asked as; a password, where it wants
    one, is the environment variable `PII_TRACER_CATALOG_<NAME>_HIVESERVER2_PASSWORD`.

    scratch: a folder in HDFS in which a run puts the persons' keys for Hive to read, and from which it removes them.
    """

    host: str = Field(pattern=r"^[A-Za-z0-9._:-]+$")
    port: int = Field(default=10000, ge=1, le=65535)
    user: str = Field(pattern=r"^[^\s:@]+$")
    scratch: str = Field(pattern=r"^hdfs://[^\s%?#'\\]+$")


class Catalog(Frozen):
    """A Spark catalog; its key in the estate file is the name that Spark SQL knows it by.

    iceberg-hadoop: `warehouse`. iceberg-rest: `uri`, `warehouse` as the server wants it. iceberg-sql: `uri`
    (`sqlite:///FILE`, relative to the estate file, or `postgresql://HOST/DATABASE`), `warehouse`. glue: `region`,
    `databases` (all where empty). nessie: `uri` of its API v2 (`http://HOST:19120/api/v2`), `warehouse`, `ref` (the
    branch that plain table names mean; the server's default branch where not given). hive: `uri` of the metastore
    (`thrift://HOST:9083`, several with commas between), `databases` (all where empty), `warehouse`; `kerberos`: the
    principal (`user@REALM`) whose ticket is shown, to the service `kerberos_service` (`hive` where not given); `tls`,
    and `ca`: the certificates (PEM) that count, the system's store where not given; `hiveserver2`: who deletes rows of
    transactional tables, which are gaps without it. unity: `uri`
    (`https://HOST/api/2.1/unity-catalog`), `databases`: catalogs (`main`) and schemas (`main.sales`), all where empty.
    declared: `tables`, names in spark_catalog. Credentials come from the environment.

    keep_history: Iceberg tables of it, as Spark SQL names them, whose every snapshot stays, without the persons.
    """

    type: InstalledCatalog
    warehouse: str | None = None
    uri: str | None = None
    ref: str | None = Field(default=None, pattern=r"^[A-Za-z][A-Za-z0-9_/-]*$")
    region: str | None = None
    endpoint_url: str | None = Field(default=None, pattern=WEB_ADDRESS)
    databases: tuple[str, ...] = ()
    kerberos: str | None = Field(default=None, pattern=PRINCIPAL)
    kerberos_service: str | None = Field(default=None, pattern=r"^[A-Za-z0-9._-]+$")
    tls: bool = False
    ca: str | None = Field(default=None, pattern=r"^/[^\x00]+$")
    hiveserver2: HiveServer2 | None = None
    tables: tuple[DeclaredTable, ...] = ()
    keep_history: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _complete(self) -> Catalog:
        given = {name for name in type(self).model_fields if name not in _OF_ALL and getattr(self, name)}
        adapter: Any = plugins.load(GROUP, self.type.value)
        article = "an" if self.type[0] in "aeiou" else "a"
        if missing := adapter.needed - given:
            raise ValueError(f"{article} {self.type} catalog needs `{'`, `'.join(sorted(missing))}`")
        if foreign := given - adapter.needed - adapter.optional:
            raise ValueError(f"{article} {self.type} catalog has no `{'`, `'.join(sorted(foreign))}`")
        if self.keep_history and adapter.no_swap is not None:
            raise ValueError(f"`keep_history` is not supported in {article} {self.type} catalog: {adapter.no_swap}")
        for key, other in (("ca", "tls"), ("kerberos_service", "kerberos")):
            if key in given and other not in given:
                raise ValueError(f"`{key}` applies only with `{other}`; add that, or remove `{key}`")
        if self.hiveserver2 and (self.kerberos or self.tls):
            raise ValueError("`hiveserver2` is not supported with `kerberos` or `tls`; remove `hiveserver2`")
        if adapter.uri and not re.fullmatch(adapter.uri, self.uri or ""):
            raise ValueError(
                f"the `uri` does not fit {article} {self.type} catalog, or contains a user, a password or options; "
                "correct the scheme and remove these parts"
            )
        return self


def wrong_histories(catalogs: Mapping[str, Catalog]) -> str | None:
    """A table under `keep_history` that by its name is another catalog's."""
    for key, catalog in catalogs.items():
        for table in catalog.keep_history:
            if not table.startswith(f"{key}."):
                return (
                    f"`keep_history` of the catalog {key} names {table}, which is not the name of one of its"
                    f" tables: {key}.…"
                )
    return None
