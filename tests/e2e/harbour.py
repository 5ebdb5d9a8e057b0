"""The bazaar's estate with Iceberg tables of a SQL catalog: built by Spark through S3A, in a process of its own.

`python -m tests.e2e.harbour FOLDER ENDPOINT BUCKET REGION`
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

from pii_tracer.lake.rows.spark_frames import frame_of_rows
from tests.e2e import bazaar
from tests.e2e.bazaar import BUYER, FORMER, MAIL, OTHERS

JOBS = """
CREATE TABLE lake.shop.orders USING iceberg TBLPROPERTIES ('write.delete.mode' = 'merge-on-read') AS
SELECT uid AS buyer, mail, 10 AS amount FROM lake.shop.buyers;

CREATE TABLE lake.shop.letters USING iceberg PARTITIONED BY (mail) AS
SELECT mail, 'hello' AS text FROM lake.shop.buyers;

CREATE TABLE lake.shop.invoices USING iceberg TBLPROPERTIES ('write.format.default' = 'orc') AS
SELECT uid AS buyer, mail, 5 AS amount FROM lake.shop.buyers;

CREATE TABLE lake.shop.totals USING iceberg AS
SELECT amount, count(*) AS orders, min(mail) AS first FROM lake.shop.orders GROUP BY amount;

INSERT OVERWRITE DIRECTORY '{base}/here/export' USING parquet SELECT buyer, amount FROM lake.shop.orders
"""
TABLES = bazaar.TABLES


def write_estate(base: Path, endpoint: str, bucket: str, region: str) -> None:
    """Estate file, policy, request and the jobs' SQL."""
    bazaar.write_estate(base, endpoint, bucket, region)
    file = base / "pii-tracer.yaml"
    estate = yaml.safe_load(file.read_text())
    lake = {"type": "iceberg-sql", "uri": "sqlite:///catalog.db", "warehouse": f"s3://{bucket}/lake"}
    [buyer] = estate["subjects"]
    changed = {"catalogs": {"lake": lake}, "subjects": [buyer | {"source": "lake.shop.buyers"}]}
    file.write_text(yaml.safe_dump(estate | changed))
    (base / "jobs.sql").write_text(JOBS.format(base=base))


def build(base: Path) -> None:
    """Run the jobs: the buyer's address changed before the letters were written again, orders were deleted, and an
    auditor keeps a branch and a tag of what was there before."""
    from executors.engine.spark_session import open_session
    from pii_tracer.config.estate_file import load_estate

    spark = open_session(load_estate(base / "pii-tracer.yaml"), base, stores={"s3"})
    spark.sql("CREATE DATABASE lake.shop")
    people = [(BUYER, FORMER), *OTHERS, (4417700999, "gone@bazaar.example")]
    frame_of_rows(spark, people, "uid bigint, mail string").coalesce(1).writeTo("lake.shop.buyers").create()
    orders, letters, *rest = JOBS.format(base=base).split(";")
    spark.sql(orders)
    spark.sql(letters)
    spark.sql("ALTER TABLE lake.shop.orders CREATE BRANCH audit")
    spark.sql("ALTER TABLE lake.shop.orders CREATE TAG quarter RETAIN 900 DAYS")
    spark.sql(f"UPDATE lake.shop.buyers SET mail = '{MAIL}' WHERE uid = {BUYER}")
    spark.sql("INSERT INTO lake.shop.orders SELECT uid, mail, 20 FROM lake.shop.buyers")
    spark.sql("DELETE FROM lake.shop.orders WHERE buyer = 4417700999 AND amount = 20")
    for statement in rest:
        spark.sql(statement)


if __name__ == "__main__":
    folder, url, name, where = sys.argv[1:]
    write_estate(Path(folder), url, name, where)
    build(Path(folder))
