"""An estate whose tables a Nessie catalog keeps, on two branches and under a tag, written by jobs of Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from executors.formats.iceberg.catalog_settings import catalog_conf
from pii_tracer.config.estate_file import load_estate
from pii_tracer.lake.rows.spark_frames import frame_of_rows
from tests.cli.small import RECEIVED
from tests.nessiesupport import Nessie
from tests.sparksession import small_spark

MEMBER = "M-5510027"
PHONE = "9850012345"
OTHERS = [("M-5510028", "9850012346"), ("M-55100270", "9850012347"), ("M-2", "9850012348")]
REFERENCES = ("main", "dev", "q1")

JOBS = """
CREATE TABLE IF NOT EXISTS nes.core.visits USING iceberg TBLPROPERTIES ('write.delete.mode'='merge-on-read') AS
SELECT member_no, phone, 'gate' AS door FROM nes.core.members
"""


def write_estate(base: Path, server: Nessie) -> None:
    """Estate file, policy, request and the jobs' SQL."""
    estate = {
        "version": 1,
        "estate": "clubhouse",
        "environment": "local",
        "spark": small_spark(),
        "catalogs": {"nes": {"type": "nessie", "uri": server.uri, "warehouse": "warehouse"}},
        "roots": ["warehouse"],
        "lineage": {"sql": ["jobs.sql"]},
        "subjects": [
            {
                "name": "member",
                "source": "nes.core.members",
                "key": "member_no",
                "identifiers": [{"column": "phone", "category": "phone"}],
            }
        ],
    }
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(estate))
    (base / "policy.yaml").write_text(yaml.safe_dump({"version": 1, "allow_immediate_retention": True}))
    request: dict[str, Any] = {"id": "CLUB-2", "law": "GDPR", "received": RECEIVED}
    request["subject"] = {"type": "member", "key": MEMBER}
    (base / "request.yaml").write_text(yaml.safe_dump(request))
    (base / "jobs.sql").write_text(JOBS)
    (base / "warehouse").mkdir(exist_ok=True)


def connect(base: Path, spark: Any) -> None:
    """Let the shared session know the estate's catalog."""
    for key, value in catalog_conf(load_estate(base / "pii-tracer.yaml"), base).items():
        if not key.startswith("spark.redaction"):
            spark.conf.set(key, value)
    spark._jsparkSession.sessionState().catalogManager().reset()


def build(base: Path, spark: Any, server: Nessie) -> None:
    """Tables on main, then the tag and the branch, and commits on both sides after that."""
    write_estate(base, server)
    connect(base, spark)
    spark.sql("CREATE NAMESPACE nes.core")
    frame = frame_of_rows(spark, [(MEMBER, PHONE), *OTHERS], "member_no string, phone string").coalesce(1)
    frame.writeTo("nes.core.members").using("iceberg").create()
    for statement in JOBS.split(";"):
        spark.sql(statement)
    server.make("q1", "TAG")
    server.make("dev", "BRANCH")
    spark.sql("INSERT INTO nes.core.members VALUES ('M-9', '9850012349')")
    spark.sql("INSERT INTO nes.core.`members@dev` VALUES ('M-8', '9850012350')")


def table(name: str, ref: str) -> str:
    """A table of a reference as SQL writes it."""
    return f"nes.core.{name}" if ref == "main" else f"nes.core.`{name}@{ref}`"


def rows(spark: Any, where: str) -> dict[str, list[str]]:
    """Rows of both tables on every reference, as text and sorted."""
    return {
        f"{name} on {ref}": sorted(
            str(row) for row in spark.sql(f"SELECT * FROM {table(name, ref)} WHERE {where}").collect()
        )
        for name in ("members", "visits")
        for ref in REFERENCES
    }
