"""The sweep of Iceberg tables of which a catalog says what metadata file counts."""

from __future__ import annotations

import json
import os
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from executors.formats.iceberg.catalog_settings import catalog_conf
from pii_tracer.cli.main import run
from pii_tracer.config.estate_file import load_estate
from pii_tracer.lake.dataset_paths import EstatePaths
from tests.restsupport import serving
from tests.retention.hoard import DAYS_MS, age_files
from tests.sparksession import rows_at, small_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ORPHAN = f"00000-0-{uuid.uuid4()}.parquet"
TABLE = "desk.core.visits"


def estate(base: Path, spark: SparkSession, catalog: dict[str, Any], warehouse: str) -> None:
    """An estate file, and the running session with its catalog."""
    given = {
        "version": 1,
        "estate": "desk",
        "environment": "local",
        "spark": small_spark(),
        "catalogs": {"desk": catalog},
        "roots": [warehouse],
        "lineage": {"sql": []},
        "subjects": [{"name": "m", "source": TABLE, "key": "uid"}],
        "retention": {"tables": {TABLE: "pii"}},
    }
    (base / warehouse).mkdir(exist_ok=True)
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(given))
    for key, value in catalog_conf(load_estate(base / "pii-tracer.yaml"), base).items():
        if key.startswith("spark.sql.catalog."):
            spark.conf.set(key, value)
    session: Any = spark
    session._jsparkSession.sessionState().catalogManager().reset()


def pointed(base: Path) -> tuple[Path, Path]:
    """The table's folder and the metadata file that the catalog points at."""
    [table] = EstatePaths(load_estate(base / "pii-tracer.yaml"), base).registry.tables.values()
    assert table.metadata is not None
    return table.location, table.metadata


def aged(base: Path, snapshots: int) -> Path:
    """The oldest snapshots, and all files, look as if they had been made long ago."""
    folder, metadata = pointed(base)
    data = json.loads(metadata.read_text())
    old = {s["snapshot-id"] for s in sorted(data["snapshots"], key=lambda s: s["timestamp-ms"])[:snapshots]}
    for entry in (*data["snapshots"], *data["snapshot-log"]):
        entry["timestamp-ms"] -= int(30 * DAYS_MS) if entry["snapshot-id"] in old else 0
    metadata.write_text(json.dumps(data))
    metadata.with_name(f".{metadata.name}.crc").unlink(missing_ok=True)
    (folder / "data" / ORPHAN).write_bytes(b"left by a writer that died")
    age_files(folder, 40)
    return folder


def swept(base: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    place = ["--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state"), "--format", "json"]
    code = run(["retention", "sweep", *words, *place])
    told = json.loads(capsys.readouterr().out)
    assert (code, told["skipped"]) == (0, [])
    return dict(told["tables"][0])


def the_old_goes_and_the_rest_stays(base: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    spark.sql("CREATE NAMESPACE IF NOT EXISTS desk.core")
    spark.sql(f"CREATE TABLE {TABLE} (uid INT, v STRING) USING iceberg")
    for n in range(4):
        spark.sql(f"INSERT OVERWRITE {TABLE} SELECT {n}, 'v{n}'")
    first = spark.sql(f"SELECT snapshot_id FROM {TABLE}.snapshots ORDER BY committed_at").first()
    assert first is not None
    spark.sql(f"ALTER TABLE {TABLE} CREATE TAG q3 AS OF VERSION {first[0]}")
    folder = aged(base, 3)
    told = swept(base, capsys)
    assert (told["snapshots"], [h["ref"] for h in told["held"]]) == (2, ["q3"])
    before = set((folder / "data").rglob("*.parquet"))
    assert len(before) == 5
    done = swept(base, capsys, "--apply")
    assert (done["failed"], done["files"]) == (None, told["files"])
    left = set((folder / "data").rglob("*.parquet"))
    assert len(left) == 2, "the head's and the tag's"
    spark.sql(f"REFRESH TABLE {TABLE}")
    assert [tuple(r) for r in spark.sql(f"SELECT * FROM {TABLE}").collect()] == [(3, "v3")]
    assert [tuple(r) for r in rows_at(spark, TABLE, "tag", "q3").collect()] == [(0, "v0")]
    then = time.time() - 40 * 86_400
    os.utime(pointed(base)[1], (then, then))
    assert swept(base, capsys, "--apply")["files"] == 0


def test_a_table_of_a_sql_catalog(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    catalog = {"type": "iceberg-sql", "uri": "sqlite:///desk.db", "warehouse": "wh"}
    estate(tmp_path, spark, catalog, "wh")
    the_old_goes_and_the_rest_stays(tmp_path, spark, capsys)


@pytest.mark.slow
def test_a_table_of_a_rest_catalog(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(tmp_path) as server:
        estate(tmp_path, spark, {"type": "iceberg-rest", "uri": server.uri}, "warehouse")
        the_old_goes_and_the_rest_stays(tmp_path, spark, capsys)
