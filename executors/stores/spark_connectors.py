"""What Spark needs to reach tables in stores, by the scheme of their locations: jars, file systems, settings.

HDFS is in Spark itself. Which stores a plan's tables lie in is told by the plan; a session for others has no such jars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from executors.engine import s3a_settings
from executors.engine.version_profiles import Profile
from executors.stores.azure import spark_connector as azure
from executors.stores.gcs import spark_connector as gcs
from pii_tracer.config.estate_file import Estate
from pii_tracer.model.azure_location import is_azure
from pii_tracer.model.datasets import PLAIN, Format
from pii_tracer.model.locations import is_object_place, is_s3
from pii_tracer.model.plan import Copy, ErasurePlan

S3, GCS, AZURE = "s3", "gs", "abfss"


@dataclass(frozen=True)
class Connector:
    """file_system: its class. conf: settings of a session, of the estate. packages: Maven coordinates; jars: what none
    of them names, fetched when it is asked for; places_of_jars: where these lie once they were fetched.
    """

    file_system: str
    conf: Callable[[Estate], Mapping[str, str]]
    packages: Callable[[Profile], tuple[str, ...]] = lambda profile: ()
    jars: Callable[[Estate, Profile], tuple[Path, ...]] = lambda estate, profile: ()
    places_of_jars: Callable[[Estate, Profile], tuple[Path, ...]] = lambda estate, profile: ()


_CONNECTORS = {
    S3: Connector(s3a_settings.FILE_SYSTEM, s3a_settings.s3a_conf, lambda profile: profile.s3a),
    GCS: Connector(gcs.FILE_SYSTEM, gcs.conf, jars=gcs.jars, places_of_jars=gcs.places_of_jars),
    AZURE: Connector(azure.FILE_SYSTEM, azure.conf, azure.packages),
}


def connectors(stores: Iterable[str]) -> Iterator[Connector]:
    """Those of some schemes; of other schemes Spark brings its own."""
    return (one for scheme, one in sorted(_CONNECTORS.items()) if scheme in stores)


def store_of(location: str) -> str | None:
    """The scheme of a table's location, where Spark needs a connector for it."""
    if is_s3(location):
        return S3
    if is_azure(location):  # in any of its spellings
        return AZURE
    scheme = location.partition("://")[0].lower() if is_object_place(location) else None
    return scheme if scheme in _CONNECTORS else None


def stores_of(plan: ErasurePlan) -> frozenset[str]:
    """The stores that Spark has to reach for a plan: tables of it lie there."""
    return frozenset(store for copy in plan.copies if (store := _reached(copy)))


def stores_of_estate(estate: Estate, named: Iterable[tuple[str, Format]]) -> frozenset[str]:
    """The stores in which an estate may have tables that Spark writes: it declares them there, or names a place for
    them. named: of tables that its catalogs name, place and format.
    """
    declared = ((table.location, table.format) for catalog in estate.catalogs.values() for table in catalog.tables)
    tables = [place for place, kind in (*declared, *named) if kind not in PLAIN]
    places = (*tables, *(one.store for one in estate.object_stores))
    return frozenset(store for place in places if (store := store_of(place)))


def _reached(copy: Copy) -> str | None:
    if is_s3(copy.location):
        return S3 if copy.s3_table else None
    return store_of(copy.location) if copy.format not in PLAIN else None
