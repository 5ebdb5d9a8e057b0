"""What the installed types of catalogs need of Spark."""

from __future__ import annotations

from functools import cache
from typing import cast

from executors.catalogs.base import CatalogOnSpark
from pii_tracer.common import plugins
from pii_tracer.config.catalogs import CatalogType
from pii_tracer.config.estate_file import Estate
from pii_tracer.model.errors import EstateError

GROUP = "pii_tracer.catalog_executors"


@cache
def spark_catalog_of(kind: CatalogType) -> CatalogOnSpark:
    """What a type of catalogs needs of Spark.

    Raises:
        EstateError: no installed package says it; tables of such a catalog could not be written.
    """
    made = plugins.required(GROUP, kind.value, f"sets Spark up for catalogs of the type `{kind}`", EstateError)
    return cast(CatalogOnSpark, made())


def spark_catalogs(estate: Estate) -> tuple[CatalogOnSpark, ...]:
    """Of each type of catalogs in the estate, once."""
    return tuple(spark_catalog_of(kind) for kind in sorted({catalog.type for catalog in estate.catalogs.values()}))
