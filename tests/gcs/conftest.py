"""One stand-in for all tests of Cloud Storage."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gcs_for_hadoop import HadoopGcs
from tests.gcssupport import Gcs, Lies, strict_gcs
from tests.sparksession import spark, spark_estate

__all__ = ["gcs", "running", "spark", "spark_estate"]


@pytest.fixture(scope="session")
def running() -> Iterator[Gcs]:
    with strict_gcs(HadoopGcs) as gcs:
        yield gcs


@pytest.fixture
def gcs(running: Gcs) -> Gcs:
    running.lies = Lies()
    running.buckets.clear()
    running.page = 3
    return running
