"""Iceberg's own REST server whose tables lie in the stand-in of Azure Storage, through Hadoop's ABFS driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyiceberg.catalog.rest import RestCatalog

from executors.stores.azure import spark_connector
from pii_tracer.config.estate_file import load_estate
from tests.azure.lake import Lake
from tests.azure.shop import STORE
from tests.icebergstores import Files, rest_in
from tests.restsupport import RestServer, serving
from tests.servers import retrieved

WAREHOUSE = f"{STORE}/wh"
_HADOOP = "spark.hadoop."
_JARS = ("hadoop-azure", "wildfly-openssl", "httpclient", "httpcore", "jackson-core-asl", "jackson-mapper-asl")
"""What the driver needs; the server has newer ones of the others."""


@contextmanager
def catalog_server(shop: Lake) -> Iterator[RestServer]:
    """A server for the tables of a shop, until the block ends. It takes the account's key from its environment."""
    shop.write(object_stores=shop.stored("wh"))
    estate = load_estate(shop.base / "pii-tracer.yaml")
    conf = {**estate.spark.conf, **spark_connector.conf(estate)}
    hadoop = {name.removeprefix(_HADOOP): value for name, value in conf.items() if name.startswith(_HADOOP)}
    jars = retrieved("hadoop-azure", "3.3.4", dependency=("org.apache.hadoop", "hadoop-azure", "3.3.4"))
    own = [jar for name in _JARS for jar in jars.glob(f"{name}-*.jar")]
    with serving(shop.base, WAREHOUSE, hadoop, own) as server:
        yield server


def client_of(shop: Lake, server: RestServer) -> RestCatalog:
    """PyIceberg's client: it writes data files and manifests by itself, and the server writes metadata files."""

    def key(uri: str) -> str:
        return uri.removeprefix(f"{STORE}/")

    files = Files(lambda uri, data: shop.put(key(uri), data), lambda uri: shop.read(key(uri)))
    return rest_in(server.uri, WAREHOUSE, files)
