"""An estate whose tables are named by an Iceberg SQL catalog and an Iceberg REST catalog, written by jobs of Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from executors.formats.iceberg.catalog_settings import catalog_conf
from pii_tracer.config.estate_file import load_estate
from pii_tracer.lake.rows.spark_frames import frame_of_rows
from tests.cli.small import RECEIVED
from tests.sparksession import small_spark

MEMBER = "M-4410027"
PHONE = "9870012345"
OTHERS = [("M-4410028", "9870012346"), ("M-44100270", "9870012347"), ("M-1", "9870012348")]

JOBS = """
CREATE TABLE IF NOT EXISTS club.eu.visits USING iceberg TBLPROPERTIES ('format-version'='2',
  'write.delete.mode'='merge-on-read') AS SELECT member_no, phone, 'gate' AS door FROM desk.core.members;

CREATE TABLE IF NOT EXISTS desk.core.calls USING iceberg AS
SELECT phone AS dialled, 3 AS minutes FROM desk.core.members
"""


def write_estate(base: Path, rest: str) -> None:
    """Estate file, policy, request and the jobs' SQL. rest: URI of a REST catalog whose warehouse is `base/warehouse`."""
    estate = {
        "version": 1,
        "estate": "ledger",
        "environment": "local",
        "spark": small_spark(),
        "catalogs": {
            "desk": {"type": "iceberg-sql", "uri": "sqlite:///desk.db", "warehouse": "desk"},
            "club": {"type": "iceberg-rest", "uri": rest},
        },
        "roots": ["desk", "warehouse"],
        "lineage": {"sql": ["jobs.sql"]},
        "subjects": [
            {
                "name": "member",
                "source": "desk.core.members",
                "key": "member_no",
                "identifiers": [{"column": "phone", "category": "phone"}],
            }
        ],
    }
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(estate))
    (base / "policy.yaml").write_text(yaml.safe_dump({"version": 1, "allow_immediate_retention": True}))
    request = {"id": "CLUB-1", "law": "GDPR", "received": RECEIVED}
    request |= {"subject": {"type": "member", "key": MEMBER}}  # type: ignore[dict-item]
    (base / "request.yaml").write_text(yaml.safe_dump(request))
    (base / "jobs.sql").write_text(JOBS)


def build(base: Path, spark: Any, rest: str) -> None:
    """Make the tables by running the jobs that lineage is read from."""
    write_estate(base, rest)
    for key, value in catalog_conf(load_estate(base / "pii-tracer.yaml"), base).items():
        if not key.startswith("spark.redaction"):
            spark.conf.set(key, value)
    spark._jsparkSession.sessionState().catalogManager().reset()
    for name in ("desk.core", "club.eu"):
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {name}")
    rows = [(MEMBER, PHONE), *OTHERS]
    frame = frame_of_rows(spark, rows, "member_no string, phone string").coalesce(1)
    frame.writeTo("desk.core.members").using("iceberg").create()
    for statement in JOBS.split(";"):
        spark.sql(statement)
    # history: a second snapshot, a branch and delete files in each catalog
    spark.sql("INSERT INTO desk.core.members VALUES ('M-9', '9870012349')")
    spark.sql("ALTER TABLE desk.core.members CREATE TAG quarter")
    spark.sql("DELETE FROM club.eu.visits WHERE member_no = 'M-1'")
    spark.sql("ALTER TABLE club.eu.visits CREATE BRANCH audit")


def others(spark: Any) -> dict[str, list[str]]:
    """Everybody else's rows as text, sorted."""
    queries = {
        "members": f"SELECT * FROM desk.core.members WHERE member_no <> '{MEMBER}'",
        "calls": f"SELECT * FROM desk.core.calls WHERE dialled <> '{PHONE}'",
        "visits": f"SELECT * FROM club.eu.visits WHERE member_no <> '{MEMBER}'",
    }
    return {name: sorted(str(row) for row in spark.sql(query).collect()) for name, query in queries.items()}
