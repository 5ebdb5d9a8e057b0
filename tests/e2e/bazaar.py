"""An estate whose tables lie in a bucket that keeps versions: built by Spark through S3A, in a process of its own.

`python -m tests.e2e.bazaar FOLDER ENDPOINT BUCKET REGION`
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

from pii_tracer.lake.rows.spark_frames import frame_of_rows
from tests.cli.small import RECEIVED
from tests.leaks import Person
from tests.sparksession import HAS_HUDI, small_spark

BUYER = 4417700102
MAIL = "Asha.Rao@bazaar.example"
FORMER = "a.rao@old.example"
PERSON = Person((MAIL, FORMER, str(BUYER)))
OTHERS = [(4417700103, "ravi@bazaar.example"), (4417700104, "mina@bazaar.example"), (4417700105, "zoe@bazaar.example")]

JOBS = """
CREATE TABLE shop.orders USING delta LOCATION 's3a://{bucket}/lake/orders'
TBLPROPERTIES (delta.enableDeletionVectors = true, delta.enableChangeDataFeed = true) AS
SELECT uid AS buyer, mail, 10 AS amount FROM shop.buyers;

CREATE TABLE shop.letters USING delta LOCATION 's3a://{bucket}/lake/letters' PARTITIONED BY (mail) AS
SELECT mail, 'hello' AS text FROM shop.buyers;

CREATE TABLE shop.invoices USING delta LOCATION 's3a://{bucket}/lake/invoices' AS
SELECT uid AS buyer, mail, 5 AS amount FROM shop.buyers;

CREATE TABLE shop.totals USING delta LOCATION 's3a://{bucket}/lake/totals' AS
SELECT amount, count(*) AS orders, min(mail) AS first FROM shop.orders GROUP BY amount;

INSERT OVERWRITE DIRECTORY '{base}/here/export' USING parquet SELECT buyer, amount FROM shop.orders
"""
IN_HUDI = """;

CREATE TABLE shop.visits USING hudi LOCATION 's3a://{bucket}/lake/visits'
TBLPROPERTIES (type = 'mor', primaryKey = 'buyer') AS
SELECT uid AS buyer, mail, 1 AS times FROM shop.buyers;

CREATE TABLE shop.stays USING hudi LOCATION 's3a://{bucket}/lake/stays'
PARTITIONED BY (night) TBLPROPERTIES (type = 'cow', primaryKey = 'mail') AS
SELECT mail, 'sea' AS view, 2 AS night FROM shop.buyers
"""
JOBS += IN_HUDI if HAS_HUDI else ""
TABLES = ("buyers", "orders", "letters", "invoices", "totals")
HUDI = ("visits", "stays") if HAS_HUDI else ()


def write_estate(base: Path, endpoint: str, bucket: str, region: str) -> None:
    """Estate file, policy, request and the jobs' SQL."""
    formats = {**dict.fromkeys(TABLES, "delta"), **dict.fromkeys(HUDI, "hudi")}
    tables = [{"name": f"shop.{n}", "format": f, "location": f"s3://{bucket}/lake/{n}"} for n, f in formats.items()]
    estate = {
        "version": 1,
        "estate": "bazaar",
        "environment": "local",
        "spark": small_spark({"spark.hadoop.fs.s3a.change.detection.mode": "none"}),
        "catalogs": {"spark_catalog": {"type": "declared", "tables": tables}},
        "roots": ["here"],
        "lineage": {"sql": ["jobs.sql"]},
        "subjects": [
            {
                "name": "buyer",
                "source": "shop.buyers",
                "key": "uid",
                "identifiers": [{"column": "mail", "category": "email"}],
            }
        ],
        "writers": [{"job": "nightly", "stopped": True}],
        "s3": {"endpoint_url": endpoint, "region": region},
    }
    base.mkdir(parents=True, exist_ok=True)
    (base / "here").mkdir(exist_ok=True)
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(estate))
    (base / "policy.yaml").write_text(yaml.safe_dump({"version": 1, "allow_immediate_retention": True}))
    request = {
        "id": "BAZAAR-1",
        "law": "GDPR",
        "received": RECEIVED,
        "subject": {"type": "buyer", "key": str(BUYER)},
    }
    (base / "request.yaml").write_text(yaml.safe_dump(request))
    (base / "jobs.sql").write_text(JOBS.format(base=base, bucket=bucket))


def build(base: Path, bucket: str) -> None:
    """Run the jobs: the buyer's address changed before the letters were written again, and orders were deleted."""
    from executors.engine.spark_session import open_session
    from pii_tracer.config.estate_file import load_estate

    spark = open_session(load_estate(base / "pii-tracer.yaml"), base, stores={"s3"})
    spark.sql("CREATE DATABASE IF NOT EXISTS shop")
    people = [(BUYER, FORMER), *OTHERS, (4417700999, "gone@bazaar.example")]
    place = f"s3a://{bucket}/lake/buyers"
    frame_of_rows(spark, people, "uid bigint, mail string").coalesce(1).write.format("delta").save(place)
    spark.sql(f"CREATE TABLE shop.buyers USING delta LOCATION '{place}'")
    first, *rest = JOBS.format(base=base, bucket=bucket).split(";")
    spark.sql(first)
    spark.sql(rest[0])
    spark.sql(f"UPDATE shop.buyers SET mail = '{MAIL}' WHERE uid = {BUYER}")
    spark.sql("INSERT INTO shop.orders SELECT uid, mail, 20 FROM shop.buyers")
    spark.sql("DELETE FROM shop.orders WHERE buyer = 4417700999 AND amount = 20")
    for statement in rest[1:]:
        spark.sql(statement)
    if HUDI:
        spark.sql(f"UPDATE shop.visits SET times = 9 WHERE buyer IN ({BUYER}, {OTHERS[0][0]})")
        instant = spark.sql("CALL show_commits(table => 'shop.stays', limit => 1)").head()[0]
        spark.sql(f"CALL create_savepoint(table => 'shop.stays', commit_time => '{instant}')")


if __name__ == "__main__":
    folder, url, name, where = sys.argv[1:]
    write_estate(Path(folder), url, name, where)
    build(Path(folder), name)
