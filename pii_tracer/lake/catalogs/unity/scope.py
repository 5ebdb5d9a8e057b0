"""The catalogs and schemas of a metastore that an estate asks for, and what stands against reading some of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.unity.answers import CatalogInfo, SchemaInfo
from pii_tracer.lake.catalogs.unity.client import UnityClient, UnityRefusal
from pii_tracer.model.gap_kinds import GapKind

Report = Callable[..., None]
"""Takes a reason, the names of a catalog and schema, and `kind`, which is `CATALOG_UNREADABLE` where not given."""

_OWN = (None, "MANAGED_CATALOG")
"""Types of catalogs whose tables are the metastore's own. The open-source server does not tell any."""


class Scope:
    """What `databases` of the estate file names: catalogs (`main`) and schemas (`main.sales`); all where empty."""

    def __init__(self, catalog: Catalog) -> None:
        self._wanted: dict[str, set[str]] = {}
        self._whole: set[str] = set()
        for text in catalog.databases:
            name, _, schema = text.casefold().partition(".")
            self._wanted.setdefault(name, set())
            if schema:
                self._wanted[name].add(schema)
            else:
                self._whole.add(name)

    @property
    def all(self) -> bool:
        """Whether the estate asks for the whole metastore."""
        return not self._wanted

    def catalogs(self, client: UnityClient, report: Report) -> Iterator[CatalogInfo]:
        """The wanted catalogs whose tables can be read. Others are reported, and so are those that are not listed."""
        try:
            listed = client.catalogs()
        except UnityRefusal as error:
            report(f"{error.reason}. So the tables of the metastore are unknown")
            return
        for name in sorted(self._wanted.keys() - {made.name.casefold() for made in listed}):
            report(
                "the metastore does not list this catalog: correct the name, or grant the account USE CATALOG on the "
                "catalog",
                name,
            )
        if not listed and self.all:
            report("the metastore lists no catalog: grant the account USE CATALOG on each, or BROWSE")
        for made in listed:
            if not self.all and made.name.casefold() not in self._wanted:
                continue
            if made.catalog_type in _OWN:
                yield made
                continue
            report(
                f"a catalog of the type {_word(made.catalog_type)}: its tables belong to a different system, a share "
                "or the provider, and the tool does not read them. Erase the person there, then waive this gap. Or "
                "list the catalogs to read in `databases`",
                made.name,
                kind=GapKind.UNKNOWN_CATALOG,
            )

    def schemas(self, client: UnityClient, catalog: str, report: Report) -> Iterator[SchemaInfo]:
        """The wanted schemas of a catalog. What is refused, or not listed, is reported."""
        try:
            listed = client.schemas(catalog)
        except UnityRefusal as error:
            report(f"{error.reason}. The tables of the catalog are unknown", catalog)
            return
        key = catalog.casefold()
        wanted = None if self.all or key in self._whole else self._wanted[key]
        for name in sorted((wanted or set()) - {made.name.casefold() for made in listed}):
            report(
                "the catalog does not list this schema: correct the name, or grant the account USE SCHEMA on the "
                "schema",
                catalog,
                name,
            )
        if not listed and not wanted:
            report(
                "the catalog lists no schema: it has none, or the account cannot see them. Grant the account USE "
                "SCHEMA or BROWSE, or leave the catalog out of `databases`",
                catalog,
            )
        yield from (made for made in listed if wanted is None or made.name.casefold() in wanted)


def _word(text: str | None) -> str:
    """A word of the server's vocabulary, where it looks like one."""
    return text if text and re.fullmatch(r"[A-Z][A-Z_]{0,59}", text) else "that is not known"
