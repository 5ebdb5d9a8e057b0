"""Java's classes of a Spark session, parsed once: `python -m tests.class_archive FILE`.

A session that starts with `-XX:SharedArchiveFile=FILE` takes them from there and starts in about half the time. Java
passes over an archive that is missing, or that another Java or other jars made.

`python -m tests.class_archive --ready FOLDER` makes FOLDER what `SPARK_HOME` of tests may name: its `bin/spark-submit` is
`tests/ready_submit.py`, `ready.json` has the jars of each coordinate that sessions of tests name, and `formats.jsa` is the
archive of sessions that start so.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from executors.catalogs.sql.spark_catalog import SQLITE_JDBC
from executors.engine.java_and_spark_paths import spark_jars
from executors.engine.spark_session import open_session
from executors.engine.version_profiles import installed_profile
from executors.formats.iceberg.catalog_settings import ICEBERG_AWS
from executors.stores.azure import spark_connector as azure
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from tests import ready_submit
from tests.sparksession import small_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write(file: Path) -> None:
    """The archive of what a session loads that writes, changes and reads a table of each format."""
    options = os.environ.get(ready_submit.OPTIONS, "")
    os.environ[ready_submit.OPTIONS] = f"{options} {ready_submit.MAKING}{file.resolve()}"
    file.unlink(missing_ok=True)
    in_session(_use_each_format)  # whose Java writes the archive when it ends
    os.environ[ready_submit.OPTIONS] = options


def in_session(use: Callable[[SparkSession, Path], None]) -> None:
    """Start a session in a folder of its own, and end it with its Java."""
    from pyspark import SparkContext

    with TemporaryDirectory() as folder:
        base = Path(folder)
        told = {"version": 1, "estate": "classes", "environment": "local", "roots": [], "lineage": {}}
        told["catalogs"] = {"lake": {"type": "iceberg-hadoop", "warehouse": "warehouse"}}
        told["subjects"] = [{"name": "customer", "source": "s.t", "key": "uid"}]
        spark = open_session(Estate.model_validate(told | {"spark": small_spark()}), base)
        use(spark, base)
        gateway: Any = SparkContext._gateway
        spark.stop()
        gateway.proc.stdin.close()  # what ends Java
        gateway.proc.wait()
        SparkContext._gateway = SparkContext._jvm = None  # else the next session looks for it


def _use_each_format(spark: SparkSession, base: Path) -> None:
    for kind, table in ((DELTA, "delta_table"), (ICEBERG, "lake.s.iceberg_table"), (HUDI, "hudi_table")):
        if not installed_profile().opens(kind):
            continue
        place = "" if kind == ICEBERG else f"LOCATION '{base}/{table}'"
        key = "TBLPROPERTIES (primaryKey = 'id')" if kind == HUDI else ""
        spark.sql(f"CREATE TABLE {table} (id INT, name STRING) USING {kind} {key} {place}")
        spark.sql(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')")
        spark.sql(f"DELETE FROM {table} WHERE id = 1")
        assert spark.read.table(table).count() == 1


def make_ready(folder: Path) -> None:
    """See above."""
    profile = installed_profile()
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "bin").mkdir(parents=True)
    submit = folder / "bin" / "spark-submit"
    code = Path(ready_submit.__file__).read_text(encoding="utf-8")
    submit.write_text(f"#!{sys.executable} -SE\n{code}", encoding="utf-8")
    submit.chmod(0o755)
    ready: dict[str, Any] = {"home": str(spark_jars().parent), "jars": {}, "archives": {}}
    in_session(lambda spark, _: ready["jars"].update(_resolved(spark)))

    def tell() -> None:
        (folder / "ready.json").write_text(json.dumps(ready, indent=1), encoding="utf-8")

    tell()
    os.environ["SPARK_HOME"] = str(folder)
    archive = folder / "formats.jsa"
    try:
        write(archive)
        ready["archives"] = {str(archive): profile.packages} if archive.exists() else {}
        tell()
    except BaseException:
        shutil.rmtree(folder)  # half of it serves nobody
        raise


def _resolved(spark: SparkSession) -> dict[str, list[str]]:
    """The jars of each coordinate, as Spark has Ivy resolve them. One that wants another version of a jar is left out."""
    profile, jvm = installed_profile(), spark.sparkContext._jvm
    resolve: Any = jvm.org.apache.spark.util.DependencyUtils.resolveMavenDependencies  # type: ignore[union-attr]
    default = jvm.scala.Option.empty()  # type: ignore[union-attr]
    found, versions = dict[str, list[str]](), dict[str, str]()
    for one in (*profile.packages, *profile.s3a, *azure.packages(profile), SQLITE_JDBC, ICEBERG_AWS):
        jars = resolve(True, "", one, "", "", default)
        files = [str(jars.apply(number)) for number in range(jars.length())]
        named = {re.split(r"-(?=\d)", Path(file).name, maxsplit=1)[0]: file for file in files}
        if all(versions.get(name, file) == file for name, file in named.items()):
            versions |= named
            found[one] = files
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--ready", action="store_true")
    parser.add_argument("place", type=Path)
    asked = parser.parse_args()
    (make_ready if asked.ready else write)(asked.place.resolve())
