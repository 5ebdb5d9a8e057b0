"""Spark with Hive's metastore and serializers, in a process of its own: the tests' session has neither.

`python -m tests.hivesql URI FOLDER` reads statements of SQL as a JSON list, and writes the rows of each as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.hivesupport import Hive


def hive_sql(hive: Hive, folder: Path, statements: Sequence[str]) -> list[list[Any]]:
    """The rows of each statement."""
    folder.mkdir(parents=True, exist_ok=True)
    ran = subprocess.run(
        [sys.executable, "-m", "tests.hivesql", hive.uri, str(folder)],
        input=json.dumps(list(statements)),
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[1],
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    found: list[list[Any]] = json.loads(ran.stdout.rpartition("\n====\n")[2])
    return found


def _main(uri: str, folder: str) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").appName("hive").enableHiveSupport()
    for key, value in {
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.hadoop.hive.metastore.uris": uri,
        "spark.sql.warehouse.dir": folder,
        "spark.hadoop.hive.exec.scratchdir": f"{folder}/scratch",
        "spark.sql.hive.convertMetastoreCtas": "false",
        "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    found = [[list(row) for row in spark.sql(statement).collect()] for statement in json.load(sys.stdin)]
    print("\n====\n" + json.dumps(found, default=str))
    spark.stop()


if __name__ == "__main__":
    _main(*sys.argv[1:])
