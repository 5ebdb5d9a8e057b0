"""The types of catalogs that are installed, by name, and what all catalogs of an estate list."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import cast

from pii_tracer.common import plugins
from pii_tracer.config.catalogs import GROUP, Catalog, CatalogType
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.catalogs.base import Capability, Listing, TableCatalog
from pii_tracer.model.errors import EstateError


@cache
def catalog_of(kind: CatalogType) -> TableCatalog:
    """The adapter of a type of catalogs.

    Raises:
        EstateError: no installed package knows the type.
    """
    made = plugins.required(GROUP, kind.value, f"knows catalogs of the type `{kind}`", EstateError)
    return cast(TableCatalog, made())


def catalogs_that(estate: Estate, capability: Capability) -> dict[str, Catalog]:
    """The estate's catalogs that have something, in the order of their names."""
    return {name: made for name, made in sorted(estate.catalogs.items()) if catalog_of(made.type).can(capability)}


def list_catalogs(estate: Estate, base: Path) -> Iterator[Listing]:
    """Ask every catalog that lists its own tables, in the order of their names. base: folder of the estate file.

    Raises:
        EstateError: a catalog's client library is not installed.
    """
    for name, catalog in catalogs_that(estate, Capability.TABLES).items():
        yield catalog_of(catalog.type).tables(name, catalog, base)
