"""A Spark Connect server as a process of its own: `python -m tests.connect.server FOLDER` writes its port into FOLDER/port.

`SparkConnectServer` of Spark 3.5 listens on every address of the machine and cannot be told otherwise. So its service,
the same classes, is started here on loopback alone and on a free port. It ends when its standard input does.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from executors.engine.java_and_spark_paths import java_home
from executors.engine.version_profiles import SPARK_3_5, installed_profile
from pii_tracer.common.atomic_files import write_atomic

CONNECT = "org.apache.spark:spark-connect_2.12:3.5.7"
"""The newest of Spark 3.5 that is published."""


def settings(folder: Path) -> dict[str, str]:
    """What whoever runs the server sets, as docs/estate-file.md asks for."""
    return {
        "spark.jars.packages": ",".join((*SPARK_3_5.packages, CONNECT)),
        "spark.sql.extensions": ",".join(SPARK_3_5.extensions),
        **dict(SPARK_3_5.conf),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.session.timeZone": "Asia/Kolkata",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
    }


def serve(folder: Path) -> None:
    """Start the service, tell the port, and wait until nobody holds our standard input any more."""
    installed_profile()
    home = java_home()
    if home:
        os.environ["JAVA_HOME"] = home
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("connect server of the tests")
    for name, value in settings(folder).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    java: Any = session.sparkContext._jvm
    connect = java.org.apache.spark.sql.connect.service
    loopback = java.java.net.InetSocketAddress("127.0.0.1", 0)
    server = java.org.sparkproject.connect.grpc.netty.NettyServerBuilder.forAddress(loopback)
    server.maxInboundMessageSize(128 * 1024 * 1024).addService(connect.SparkConnectService(False))
    connect.SparkConnectInterceptorRegistry.chainInterceptors(server)
    running = server.build().start()
    write_atomic(folder / "port", str(running.getPort()).encode())
    sys.stdin.read()
    running.shutdownNow()
    session.stop()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
