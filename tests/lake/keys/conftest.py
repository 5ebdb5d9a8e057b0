from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kmssupport import StrictKms, strict_kms
from tests.sparksession import spark, spark_estate

__all__ = ["spark", "spark_estate"]


@pytest.fixture
def kms() -> Iterator[StrictKms]:
    with strict_kms() as running:
        yield running
