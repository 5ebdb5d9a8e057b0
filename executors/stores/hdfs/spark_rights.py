"""Whether Spark finds and may write a table in HDFS: it comes there as a user of its own, not as the one of WebHDFS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from executors.context import ExecutionContext
from pii_tracer.config.estate_file import Estate
from pii_tracer.config.hdfs import as_declared
from pii_tracer.lake.stores.hdfs.nameservice_settings import unknown_to_engines
from pii_tracer.model.datasets import PLAIN
from pii_tracer.model.errors import Refused, RunError
from pii_tracer.model.locations import hdfs_location, is_hdfs
from pii_tracer.model.plan import ErasurePlan, Step

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


def refuse_unable_user(ctx: ExecutionContext, plan: ErasurePlan) -> None:
    """Asked of all steps before a run begins: in the middle, others would have done what cannot be undone.

    Raises:
        RunError: Spark does not get into HDFS, or may not write a table there.
    """
    _refuse_without_ticket(ctx, plan)
    from executors.formats.registry import executor_classes
    from executors.formats.table_executor import TableExecutor

    made = executor_classes().items()
    by_name = {name: kind for name, kind in made if isinstance(kind, type) and issubclass(kind, TableExecutor)}
    mine = ((step, by_name[step.executor]) for step in plan.steps if step.executor in by_name)
    acting = ((step, kind.log_folder) for step, kind in mine if step.action not in kind.without_spark)
    folders = dict.fromkeys(folder for step, log in acting for folder in written_folders(ctx.estate, step, log))
    if folders:
        refuse_without_rights(ctx.spark, *folders, again="the command again")


def written_folders(estate: Estate, step: Step, log_folder: str) -> tuple[str, ...]:
    """The folders in HDFS in which Spark writes for a step: the table's, and that of its log or metadata."""
    location = str(step.parameters.get("location", ""))
    if not is_hdfs(location):
        return ()
    table = str(as_declared(estate.hdfs, hdfs_location(location)))
    return table, f"{table.rstrip('/')}/{log_folder}"


def refuse_without_rights(spark: SparkSession, *folders: str, again: str = "`pii-tracer resume`") -> None:
    """Asks the NameNode as Spark would; a Connect server's user cannot be asked for. again: what to run then.

    Raises:
        RunError: Spark's user may not list a folder and write in it, or Spark does not reach the NameNode.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.sql import SparkSession as Classic

    if not isinstance(spark, Classic):
        return
    for folder in folders:
        try:
            files, path, hadoop = _opened(spark, folder)
            files.access(path, hadoop.permission.FsAction.ALL)
        except Py4JJavaError as error:
            raise RunError(
                f"Spark may not write the table: {error.java_exception.getClass().getSimpleName()}",
                where=folder,
                todo=f"run as a user who may write there (HADOOP_USER_NAME, or a ticket), then run {again}",
            ) from None


def _refuse_without_ticket(ctx: ExecutionContext, plan: ErasurePlan) -> None:
    """Before a run begins: Spark gets its ticket by itself, for NameNodes with Kerberos that have tables of the plan.

    Raises:
        RunError: Spark does not get into one.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.sql import SparkSession as Classic

    secured = [name_node.root for name_node in ctx.estate.hdfs if name_node.kerberos]
    erased = {step.copy_ for step in plan.steps}
    tables = [c.location for c in plan.copies if c.id in erased and c.format not in PLAIN and is_hdfs(c.location)]
    for root in secured:
        first = next((table for table in tables if root.holds(hdfs_location(table))), None)
        if first is None or not isinstance(ctx.spark, Classic):
            continue
        try:
            files, path, _ = _opened(ctx.spark, first)
            files.getFileStatus(path)
        except Py4JJavaError as error:
            raise RunError(
                f"Spark cannot access HDFS: {error.java_exception.getClass().getSimpleName()}",
                where=first,
                todo=(
                    "create a Kerberos ticket for Spark (`kinit`, or `spark.kerberos.keytab`), and set "
                    "HADOOP_CONF_DIR to the folder with the cluster's core-site.xml; then run the command again"
                ),
            ) from None


def _opened(spark: SparkSession, place: str) -> tuple[Any, Any, Any]:
    """The file system of a place as Spark's user sees it, the place, and Hadoop's package of both."""
    hadoop, conf = spark._jvm.org.apache.hadoop.fs, spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[union-attr]
    path = hadoop.Path(place)
    return path.getFileSystem(conf), path, hadoop
