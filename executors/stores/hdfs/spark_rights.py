"""Whether Spark may write a table in HDFS: it comes there as a user of its own, which is not the one of WebHDFS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pii_tracer.model.errors import RunError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def refuse_without_rights(spark: SparkSession, *folders: str) -> None:
    """Asks the NameNode as Spark would; a Connect server's user cannot be asked for.

    Raises:
        RunError: Spark's user may not list a folder and write in it, or Spark does not reach the NameNode.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.sql import SparkSession as Classic

    if not isinstance(spark, Classic):
        return
    hadoop, conf = spark._jvm.org.apache.hadoop.fs, spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[union-attr]
    for folder in folders:
        path = hadoop.Path(folder)
        try:
            path.getFileSystem(conf).access(path, hadoop.permission.FsAction.ALL)
        except Py4JJavaError as error:
            raise RunError(
                f"Spark may not write the table: {error.java_exception.getClass().getSimpleName()}",
                where=folder,
                todo="run as a user who may write there (set HADOOP_USER_NAME), then `pii-tracer resume`",
            ) from None
