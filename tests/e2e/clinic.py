"""A second estate, unlike the sample: a clinic with a text key, an e-mail address, and lineage from SQL alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from pii_tracer.cli.main import run
from pii_tracer.lake.rows.spark_frames import frame_of_rows
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from tests.cli.small import RECEIVED
from tests.leaks import Person
from tests.sparksession import small_spark

PATIENT = "P-55102"
EMAIL = "Asha.Rao@clinic.example"
PERSON = Person((EMAIL,), (PATIENT,))
OTHERS = [
    ("P-55103", "ravi@clinic.example"),
    ("P-7", "mina@clinic.example"),
    ("P-66102", "zoe@clinic.example"),
    # the patient's number is the beginning of this one
    ("P-551020", "omar@clinic.example"),
]

JOBS = """
CREATE TABLE IF NOT EXISTS med.core.mailing USING iceberg AS
SELECT sha2(lower(email), 256) AS mail_hash, ward FROM med.core.visits;

CREATE TABLE IF NOT EXISTS care.charts USING delta LOCATION '{base}/tables/charts' AS
SELECT patient_no AS chart_no, upper(ward) AS ward, cost FROM med.core.visits;

INSERT OVERWRITE DIRECTORY '{base}/tables/extract' USING parquet
SELECT named_struct('no', patient_no, 'mail', email) AS patient, cost FROM med.core.visits;

INSERT OVERWRITE DIRECTORY '{base}/tables/monthly' USING orc
SELECT patient_no, ward, cost FROM med.core.visits;

INSERT OVERWRITE DIRECTORY '{base}/tables/feed' USING json OPTIONS (compression 'gzip')
SELECT named_struct('no', patient_no) AS patient, ward FROM med.core.visits;

CREATE TABLE IF NOT EXISTS med.core.ward_costs (ward string, total bigint) USING iceberg;

INSERT OVERWRITE med.core.ward_costs SELECT ward, sum(cost) AS total FROM med.core.visits GROUP BY ward
"""

ESTATE = {
    "version": 1,
    "estate": "clinic",
    "environment": "local",
    "spark": small_spark(),
    "catalogs": {
        "med": {"type": "iceberg-hadoop", "warehouse": "warehouse"},
        "spark_catalog": {
            "type": "declared",
            "tables": [{"name": "care.charts", "format": "delta", "location": "tables/charts"}],
        },
    },
    "roots": ["warehouse", "tables"],
    "lineage": {"sql": ["jobs.sql"]},
    "subjects": [
        {
            "name": "patient",
            "source": "med.core.visits",
            "key": "patient_no",
            "identifiers": [{"column": "email", "category": "email"}],
        }
    ],
}


def write_estate(base: Path) -> None:
    """Estate file, policy, request and the jobs' SQL."""
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(ESTATE))
    (base / "policy.yaml").write_text(yaml.safe_dump({"version": 1, "allow_immediate_retention": True}))
    request = {
        "id": "CLINIC-1",
        "law": "GDPR",
        "received": RECEIVED,
        "subject": {"type": "patient", "key": PATIENT},
    }
    (base / "request.yaml").write_text(yaml.safe_dump(request))
    (base / "jobs.sql").write_text(JOBS.format(base=base))


def use_catalog(base: Path, spark: Any) -> None:
    """Let `med` be the warehouse below this folder; a session would keep the one it has seen first."""
    spark.conf.set("spark.sql.catalog.med", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set("spark.sql.catalog.med.type", "hadoop")
    spark.conf.set("spark.sql.catalog.med.warehouse", str(base / "warehouse"))
    spark.conf.set("spark.sql.catalog.med.cache-enabled", "false")
    spark._jsparkSession.sessionState().catalogManager().reset()


def build(base: Path, spark: Any) -> None:
    """Create the tables by running the jobs that lineage is read from."""
    use_catalog(base, spark)
    write_estate(base)
    rows = [(PATIENT, EMAIL, "north", 10), (PATIENT, EMAIL, "south", 20)]
    rows += [(no, mail, ward, cost) for no, mail in OTHERS for ward, cost in (("north", 1), ("south", 2))]
    spark.sql("CREATE DATABASE IF NOT EXISTS med.core")
    spark.sql("CREATE DATABASE IF NOT EXISTS care")
    spark.sql("DROP TABLE IF EXISTS care.charts")
    frame = frame_of_rows(spark, rows, "patient_no string, email string, ward string, cost bigint")
    frame.coalesce(1).writeTo("med.core.visits").using("iceberg").create()
    for statement in JOBS.format(base=base).split(";"):
        spark.sql(statement)


def approve(base: Path) -> list[str]:
    """Plan the erasure at once, approve it, and give the words that apply it."""
    where = ["--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")]
    file, key, trusted = str(base / "clinic.plan.json"), base / "approver.pem", base / "approvers.yaml"
    words = ["--retention", "immediate", "--reason", "test: no writer, no reader", "--out", file]
    assert run(["plan", str(base / "request.yaml"), *words, *where]) == 0
    trusted.write_bytes(trusted_yaml([("Dr. Sen", "privacy officer", public_pem(generate(key)).decode())]))
    signed = ["--approver", "Dr. Sen", "--role", "privacy officer", "--reason", "right", "--key", str(key)]
    assert run(["approve", file, *signed, *where]) == 0
    return ["apply", file, *where, "--trusted", str(trusted)]


TABLES = {
    "visits": "SELECT * FROM med.core.visits WHERE patient_no <> 'P-55102'",
    "mailing": "SELECT * FROM med.core.mailing",
    "charts": "SELECT * FROM care.charts WHERE chart_no <> 'P-55102'",
    "monthly": "SELECT * FROM orc.`{base}/tables/monthly` WHERE patient_no <> 'P-55102'",
    "feed": "SELECT * FROM json.`{base}/tables/feed` WHERE patient.no <> 'P-55102'",
    "extract": "SELECT * FROM parquet.`{base}/tables/extract` WHERE patient.no <> 'P-55102'",
}


def others(base: Path, spark: Any) -> dict[str, list[str]]:
    """Everybody else's rows as text, sorted; the mailing list without the patient's hash."""
    import hashlib

    mine = hashlib.sha256(EMAIL.lower().encode()).hexdigest()
    return {
        name: sorted(str(row) for row in spark.sql(query.format(base=base)).collect() if mine not in str(row))
        for name, query in TABLES.items()
    }
