"""Java's classes of a Spark session, parsed once: `python -m tests.class_archive FILE`.

A session that starts with `-XX:SharedArchiveFile=FILE` takes them from there and starts in about half the time. Java
passes over an archive that is missing, or that another Java or other jars made.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from executors.engine.spark_session import open_session
from executors.engine.version_profiles import installed_profile
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from tests.sparksession import small_spark


def main(file: Path) -> None:
    """Write the archive of what a session loads that writes, changes and reads a table of each format."""
    options = os.environ.get("SPARK_SUBMIT_OPTS", "")
    os.environ["SPARK_SUBMIT_OPTS"] = f"{options} -XX:ArchiveClassesAtExit={file.resolve()}"
    file.unlink(missing_ok=True)
    with TemporaryDirectory() as folder:
        base = Path(folder)
        told = {"version": 1, "estate": "classes", "environment": "local", "roots": [], "lineage": {}}
        told["catalogs"] = {"lake": {"type": "iceberg-hadoop", "warehouse": "warehouse"}}
        told["subjects"] = [{"name": "customer", "source": "s.t", "key": "uid"}]
        estate = Estate.model_validate(told | {"spark": small_spark()})
        spark = open_session(estate, base)
        for kind, table in ((DELTA, "delta_table"), (ICEBERG, "lake.s.iceberg_table"), (HUDI, "hudi_table")):
            if not installed_profile().opens(kind):
                continue
            place = "" if kind == ICEBERG else f"LOCATION '{base}/{table}'"
            key = "TBLPROPERTIES (primaryKey = 'id')" if kind == HUDI else ""
            spark.sql(f"CREATE TABLE {table} (id INT, name STRING) USING {kind} {key} {place}")
            spark.sql(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')")
            spark.sql(f"DELETE FROM {table} WHERE id = 1")
            assert spark.read.table(table).count() == 1
        engine = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
        spark.stop()
        engine.stdin.close()  # what ends Java, which then writes the archive
        engine.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
