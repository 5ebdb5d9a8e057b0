from __future__ import annotations

from tests.sparksession import spark, spark_estate

__all__ = ["spark", "spark_estate"]
