"""An estate of many tenants that each count their users from 1: in Iceberg, Delta, Hudi, and a folder of Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from pii_tracer.lake.rows.spark_frames import frame_of_rows
from tests.cli.small import RECEIVED
from tests.e2e.clinic import use_catalog
from tests.leaks import Person
from tests.sparksession import HAS_HUDI, small_spark

ASKED = (("4", 17, "asha.rao@north.example"), ("5", 18, "ben.okoro@south.example"))
"""Two persons: with each other's columns they are (4, 18) and (5, 17), who are others."""
OTHERS = (("4", 18, "chen.wei@north.example"), ("5", 17, "dora.lind@south.example"), ("44", 7, "eve.ito@west.example"))
PERSONS = tuple(Person((mail,), ()) for _, _, mail in ASKED)

JOBS = """
CREATE TABLE IF NOT EXISTS many.orders USING delta LOCATION '{base}/tables/orders'
TBLPROPERTIES ('delta.enableDeletionVectors' = 'true') AS
SELECT u.tenant_id, u.user_id, d.n AS total FROM med.many.users u CROSS JOIN med.many.days d;

CREATE TABLE IF NOT EXISTS med.many.visits USING iceberg PARTITIONED BY (tenant_id) AS
SELECT u.tenant_id, CAST(u.user_id AS STRING) AS visitor, u.email, d.n AS day FROM med.many.users u
CROSS JOIN med.many.days d;

INSERT OVERWRITE DIRECTORY '{base}/tables/exports' USING parquet
SELECT named_struct('tenant', tenant_id, 'user', user_id) AS who, total FROM many.orders
"""
IN_HUDI = """;

CREATE TABLE many.stays USING hudi LOCATION '{base}/tables/stays'
TBLPROPERTIES (type = 'cow', primaryKey = 'tenant_id,user_id,night') AS
SELECT u.tenant_id, u.user_id, d.n AS night FROM med.many.users u CROSS JOIN med.many.days d
WHERE u.tenant_id IS NOT NULL AND u.user_id IS NOT NULL
"""
JOBS += IN_HUDI if HAS_HUDI else ""
DECLARED = {"orders": "delta"} | ({"stays": "hudi"} if HAS_HUDI else {})

ESTATE = {
    "version": 1,
    "estate": "many",
    "environment": "local",
    "spark": small_spark(),
    "catalogs": {
        "med": {"type": "iceberg-hadoop", "warehouse": "warehouse"},
        "spark_catalog": {
            "type": "declared",
            "tables": [{"name": f"many.{n}", "format": f, "location": f"tables/{n}"} for n, f in DECLARED.items()],
        },
    },
    "roots": ["warehouse", "tables"],
    "lineage": {"sql": ["jobs.sql"]},
    "subjects": [
        {
            "name": "user",
            "source": "med.many.users",
            "key": ["tenant_id", "user_id"],
            "identifiers": [{"column": "email", "category": "email"}],
        }
    ],
}


def write_estate(base: Path) -> list[str]:
    """Estate file, policy, the jobs' SQL; the requests' files."""
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(ESTATE))
    (base / "policy.yaml").write_text(yaml.safe_dump({"version": 1, "allow_immediate_retention": True}))
    (base / "jobs.sql").write_text(JOBS.format(base=base))
    files = []
    for number, (tenant, user, _) in enumerate(ASKED):
        subject = {"type": "user", "key": {"tenant_id": tenant, "user_id": str(user)}}
        told = {"id": f"R-{number}", "law": "GDPR", "received": RECEIVED, "subject": subject}
        files.append(str(base / f"r{number}.yaml"))
        Path(files[-1]).write_text(yaml.safe_dump(told))
    return files


def build(base: Path, spark: Any) -> None:
    """Create the tables by running the jobs that lineage is read from."""
    use_catalog(base, spark)
    spark.sql("CREATE DATABASE IF NOT EXISTS med.many")
    spark.sql("CREATE DATABASE IF NOT EXISTS many")
    for name in DECLARED:
        spark.sql(f"DROP TABLE IF EXISTS many.{name}")
    rows = [*ASKED, *OTHERS, (None, 17, "nobody@x.example"), ("4", None, "none@x.example")]
    frame = frame_of_rows(spark, rows, "tenant_id string, user_id bigint, email string")
    frame.coalesce(1).writeTo("med.many.users").using("iceberg").create()
    frame_of_rows(spark, [(1,), (2,)], "n int").writeTo("med.many.days").using("iceberg").create()
    for statement in JOBS.format(base=base).split(";"):
        spark.sql(statement)


TABLES = {
    "users": "SELECT tenant_id, user_id FROM med.many.users",
    "orders": "SELECT tenant_id, user_id FROM delta.`{base}/tables/orders`",
    "visits": "SELECT tenant_id, CAST(visitor AS BIGINT) FROM med.many.visits",
    "exports": "SELECT who.tenant, who.user FROM parquet.`{base}/tables/exports`",
} | ({"stays": "SELECT tenant_id, user_id FROM many.stays"} if HAS_HUDI else {})


def rows(base: Path, spark: Any) -> dict[str, list[tuple[Any, ...]]]:
    """Whom every table's rows name, sorted."""
    return {
        name: sorted((tuple(row) for row in spark.sql(query.format(base=base)).collect()), key=repr)
        for name, query in TABLES.items()
    }
