"""Rows of a Delta table in S3, read by Spark through S3A: the current state, former versions, the change feed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import ScanError
from pii_tracer.model.locations import engine_path
from pii_tracer.verify.table_states import states
from tests.s3support import World, standin, world
from tests.verify.s3lake import MAIL, MATCH, OTHER, Lake, no_spark

__all__ = ["standin", "world"]


def test_folders_in_s3_are_not_read(world: World, tmp_path: Path) -> None:
    folder = Lake(world, tmp_path).copy(match=MATCH).model_copy(update={"format": Format.PARQUET})
    with pytest.raises(ScanError, match="tables in S3 are not read"):
        next(states(no_spark, folder))  # type: ignore[arg-type]


def test_locations_as_spark_reads_them() -> None:
    assert engine_path("s3://b/wh/a b%20c") == "s3a://b/wh/a b%20c"
    assert engine_path("s3a://b/t") == "s3a://b/t"
    assert engine_path("/lake/t") == "/lake/t"


def read(lake: Lake, key: str) -> dict[str, object]:
    """What a process with a session of its own says of the table before and after the person is deleted."""
    place = {"endpoint": lake.world.endpoint_url, "bucket": lake.bucket, "base": str(lake.base), "key": key}
    command = [sys.executable, "-m", "tests.verify.s3_reader", json.dumps(place)]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("key", [pytest.param("wh/feed", marks=pytest.mark.nightly), "wh/or ders-é"])
def test_rows_are_counted_and_compared_through_s3a(world: World, tmp_path: Path, key: str) -> None:
    lake = Lake(world, tmp_path)
    lake.key = key
    lake.write([MAIL, OTHER], configuration={"delta.enableChangeDataFeed": "true"})
    found = read(lake, key)
    assert found["baseline"] == [["current", 2, 1]]
    assert found["before"] == {"current": 1, "version 0": 1, "changes of version 0": 1}
    deleted = {"current": 0, "version 1": 0, "changes of version 1": 1}
    assert found["deleted"] == found["before"] | deleted
    assert found["bystanders"] == [0, True]
    assert found["red"] == sorted(f"rows: {state}" for state, rows in found["deleted"].items() if rows)  # type: ignore[attr-defined]
    assert found["erased"] is True
    assert found["lost"] == [1, False, False]
    assert found["gone"] == [True, "the current state of copy copy-delta cannot be read: AnalysisException"]
