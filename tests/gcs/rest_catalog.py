"""Iceberg's own REST server whose tables lie in the stand-in of Cloud Storage, through Google's connector."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyiceberg.catalog.rest import RestCatalog

from executors.engine.version_profiles import installed_profile
from executors.stores.gcs import spark_connector
from pii_tracer.config.estate_file import load_estate
from tests.gcs.shop import BUCKET
from tests.gcs.tables import Lake
from tests.icebergstores import Files, rest_in
from tests.restsupport import RestServer, serving

WAREHOUSE = f"gs://{BUCKET}/wh"
_HADOOP = "spark.hadoop."


@contextmanager
def catalog_server(shop: Lake) -> Iterator[RestServer]:
    """A server for the tables of a shop, until the block ends."""
    shop.write(object_stores=shop.stored("wh"))
    estate = load_estate(shop.base / "pii-tracer.yaml")
    hadoop = {name.removeprefix(_HADOOP): value for name, value in spark_connector.conf(estate).items()}
    with serving(shop.base, WAREHOUSE, hadoop, spark_connector.jars(estate, installed_profile())) as server:
        yield server


def client_of(shop: Lake, server: RestServer) -> RestCatalog:
    """PyIceberg's client: it writes data files and manifests by itself, and the server writes metadata files."""

    def key(uri: str) -> str:
        return uri.removeprefix(f"gs://{BUCKET}/")

    files = Files(lambda uri, data: shop.put(key(uri), data), lambda uri: shop.read(key(uri)))
    return rest_in(server.uri, WAREHOUSE, files)


def catalogs_of(server: RestServer) -> dict[str, dict[str, object]]:
    """`catalogs` of the estate file: the server's, and the table of users here."""
    users = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
    return {
        "spark_catalog": {"type": "declared", "tables": [users]},
        "ice": {"type": "iceberg-rest", "uri": server.uri},
    }
