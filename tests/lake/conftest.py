from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.inventory import Inventory
from tests.lake.s3_lakehouse import Lake, build
from tests.sparksession import spark, spark_estate  # noqa: F401

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:  # noqa: F811
    """Real tables of every format. Tests read it only."""
    return build(spark, tmp_path_factory.mktemp("discovery"))


@pytest.fixture(scope="session")
def inventory(lake: Lake) -> Inventory:
    return discover(lake.estate, lake.base)


@pytest.fixture(scope="session")
def paths(lake: Lake) -> EstatePaths:
    return EstatePaths(lake.estate, lake.base)
