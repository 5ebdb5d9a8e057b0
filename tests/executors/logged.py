"""Two Spark applications with an event log each, for a test that reads them: `python -m tests.executors.logged FOLDER`.

Both find the person's row of the Delta table in `FOLDER/t`: the first by a literal, the second by a step of a plan.
"""

from __future__ import annotations

import sys
from pathlib import Path

from executors.spark import open_session
from pii_tracer.config import Estate
from pii_tracer.model import Format
from tests.executors.test_delta import DELETE
from tests.executors.world import EMAIL, Steps, context
from tests.sparksession import SparkEstate, small_spark

FEW = {"spark.sql.shuffle.partitions": "1", "spark.databricks.delta.snapshotPartitions": "1"}


def main(base: Path) -> None:
    told = {"version": 1, "estate": "logged", "environment": "local", "catalogs": {}, "roots": [], "lineage": {}}
    subject = {"name": "customer", "source": "s.t", "key": "uid"}
    estate = Estate.model_validate(told | {"spark": small_spark(FEW), "subjects": [subject]})
    for name in ("literal", "step"):
        (base / name).mkdir()
        logged = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": (base / name).as_uri()}
        spark = open_session(estate, base, logged)
        if name == "literal":
            spark.sql(f"DELETE FROM delta.`{base}/t` WHERE email = '{EMAIL}' AND id < 4")
        else:
            Steps(context(SparkEstate(estate, base)), "delta", None, base / "t", Format.DELTA).once(*DELETE[:1])
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
