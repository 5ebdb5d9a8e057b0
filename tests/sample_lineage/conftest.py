"""The sample estate, built once in the shared Spark session, with the S3 stand-in beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config

from executors.engine.session_settings import session_conf
from sample_lineage.build import build, sample_estate
from sample_lineage.people import Population, populate
from sample_lineage.s3_standin import start, stop
from tests.sparksession import spark, spark_estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["spark", "spark_estate"]

AS_OF = datetime(2026, 11, 20, 6, 0, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Built:
    """The built estate: where it lies, a session on it, and a function that makes S3 clients by region."""

    base: Path
    spark: SparkSession
    people: Population
    endpoint: str
    progress: tuple[str, ...]

    def client(self, region: str) -> Any:
        return _client(self.endpoint, region)


def _client(endpoint: str, region: str) -> Any:
    return boto3.client(
        "s3",
        region_name=region,
        endpoint_url=endpoint,
        aws_access_key_id="standin",
        aws_secret_access_key="standin",
        config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 2}),
    )


@pytest.fixture(scope="session")
def built(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    base = tmp_path_factory.mktemp("sample") / "estate"
    standin = start(tmp_path_factory.mktemp("standin"), restore_seconds=0.0)
    # a session of its own has catalogs of its own: `lake` is this estate's, not the suite's
    session = spark.newSession()
    for key, value in session_conf(sample_estate(), base).items():
        if key.startswith("spark.sql.catalog.lake"):
            session.conf.set(key, value)
    lines: list[str] = []
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AWS_ACCESS_KEY_ID", "standin")
            patch.setenv("AWS_SECRET_ACCESS_KEY", "standin")
            build(base, session, _client(standin.endpoint_url, "ap-south-1"), AS_OF, lines.append)
        yield Built(base, session, populate(AS_OF), standin.endpoint_url, tuple(lines))
    finally:
        stop(standin)
