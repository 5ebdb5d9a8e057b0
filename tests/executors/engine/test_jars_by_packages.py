"""A session that gets its jars as users' sessions do, by Maven coordinates: most sessions of tests have them ready
(`tests/ready_submit.py`), where Java finds classes that it may not find in a user's session.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from executors.engine.spark_session import open_session
from executors.engine.version_profiles import installed_profile
from executors.stores.spark_connectors import AZURE, GCS, S3, connectors
from pii_tracer.config.estate_file import Estate
from tests.sparksession import small_spark

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(installed_profile().name != "3.5", reason="the drivers of two stores were not tried with it"),
]

STORES = (AZURE, GCS, S3)
BY_USERS_JARS = "org.apache.spark.util.MutableURLClassLoader"


def test_file_systems_extensions_and_a_driver_are_found_in_the_jars_that_packages_bring(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    command = [sys.executable, "-m", "tests.executors.engine.test_jars_by_packages", str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {BY_USERS_JARS}
    assert len(done.stdout.split()) == len((*STORES, *installed_profile().extensions, "SQLite"))


def loaders(base: Path) -> list[str]:
    """Open a session for all stores, make a table in a SQL catalog, and name what loaded the classes of file systems,
    extensions and the driver."""
    location = "abfss://lake@account.dfs.core.windows.net"
    told: dict[str, Any] = {"version": 1, "estate": "jars", "environment": "local", "roots": [], "lineage": {}}
    told["catalogs"] = {"ice": {"type": "iceberg-sql", "uri": "sqlite:///ice.db", "warehouse": "warehouse"}}
    told["subjects"] = [{"name": "customer", "source": "s.t", "key": "uid"}]
    told["object_stores"] = [{"store": location, "places": [{"prefix": "a"}]}]
    told |= {"s3": {"region": "ap-south-1"}, "spark": small_spark()}
    os.environ["AZURE_STORAGE_KEY"] = "a2V5"
    spark = open_session(Estate.model_validate(told), base, stores=STORES)
    jvm: Any = spark.sparkContext._jvm
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    system = jvm.org.apache.hadoop.fs.FileSystem
    found = [system.getFileSystemClass(scheme, hadoop) for scheme in ("abfss", "gs", "s3a")]
    assert [one.getName() for one in found] == [one.file_system for one in connectors(STORES)]
    spark.sql("CREATE TABLE ice.s.t (id INT) USING iceberg")  # which the driver of the catalog's database writes down
    named = [*installed_profile().extensions, "org.sqlite.JDBC"]
    found += [jvm.org.apache.spark.util.Utils.classForName(name, True, False) for name in named]
    spark.stop()
    return [one.getClassLoader().getClass().getName() for one in found]


if __name__ == "__main__":
    print(*loaders(Path(sys.argv[1])))
