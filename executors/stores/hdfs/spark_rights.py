"""Whether Spark finds and may write a table in HDFS: it comes there as a user of its own, not as the one of WebHDFS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.stores.hdfs.nameservices import unknown_to_engines
from pii_tracer.model.errors import Refused, RunError
from pii_tracer.model.locations import hdfs_location, is_hdfs
from pii_tracer.model.plan import Step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def refuse_unknown_nameservices(estate: Estate, steps: Sequence[Step]) -> None:
    """Asked before the run begins: an engine that does not find a NameNode would stop it in the middle.

    Raises:
        Refused: a step of an engine works on a place of a nameservice that engines do not know.
    """
    for step in steps:
        location = str(step.parameters.get("location", ""))
        if step.executor != "hdfs" and is_hdfs(location):
            why, _, todo = unknown_to_engines(estate, hdfs_location(location)).partition(": ")
            if why:
                raise Refused(why, where=f"{step.id} {location}", todo=f"{todo}, then run the command again")


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
