"""Builds the sample estate: a small payments lakehouse in which one customer asks for erasure.

`python -m sample_lineage.build DIR` builds it without S3. The jobs run twice over growing data, as jobs do, so that old
versions, log files and slices hold everybody as well.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import astuple
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from executors.engine.spark_session import open_session
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.rows.spark_frames import frame_of_rows
from sample_lineage.people import FORMER_CUSTOMER, Payment, Population, populate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
CONTENTS = "Iceberg, Delta, Hudi, Parquet, CSV, and a bucket with its replica"
ESTATE_FILE = "pii-tracer.yaml"
RECORDED_ROOT = "/lakehouse"
BRANCH, TAG = "audit_2026q3", "q3_close"

_PAYMENTS = "lake.prod.payments"
_PAYMENT_COLUMNS = (
    "payment_id string, user_id bigint, pan string, phone string, aadhaar_ref string, city string, "
    "merchant_id bigint, amount decimal(12,2), status string, paid_at timestamp"
)

Progress = Callable[[str], None]
RunJob = Callable[[Path], None]


def sample_estate(endpoint_url: str | None = None, with_s3: bool = False) -> Estate:
    """The sample's estate file as a model; without S3 its archives are left out."""
    return Estate.model_validate(_estate_data(endpoint_url, with_s3))


def job_files() -> list[Path]:
    """The jobs' SQL files in the order in which they run."""
    return sorted((HERE / "jobs").glob("*.sql"))


def statements(job: Path, base: Path) -> list[str]:
    """A job's statements, with the recorded root replaced by `base` (an absolute path without quotes)."""
    lines = [line for line in job.read_text(encoding="utf-8").splitlines() if not line.startswith("--")]
    parts = "\n".join(lines).replace(f"'{RECORDED_ROOT}/", f"'{base}/").split(";\n")
    return [part.strip().rstrip(";") for part in parts if part.strip()]


def build(base: Path, spark: SparkSession, s3: Any | None, as_of: datetime, progress: Progress) -> None:
    """Create the lakehouse, estate file, requests, policy and lineage under `base`.

    base: an empty or missing folder. spark: opened on `sample_estate()` with this `base`.
    s3: a client of ap-south-1, or None to leave the archives out. as_of: with a time zone; data ends there.

    Raises:
        FileExistsError: `base` is not empty.
    """
    base = base.resolve()
    if base.exists() and any(base.iterdir()):
        raise FileExistsError(f"{base} is not empty")
    write_files(base, s3, as_of)
    people = populate(as_of)
    build_tables(base, spark, people, progress, lambda job: run_job(spark, job, base))
    if s3 is not None:
        from sample_lineage.archives import archive

        archive(s3, people.payments, as_of, progress)


def write_files(base: Path, s3: Any | None, as_of: datetime) -> None:
    """Write everything of the estate that is not data."""
    base.mkdir(parents=True, exist_ok=True)
    endpoint = s3.meta.endpoint_url if s3 is not None else None
    _write_yaml(base / ESTATE_FILE, _estate_data(endpoint, s3 is not None))
    shutil.copyfile(HERE / "policy.yaml", base / "policy.yaml")
    (base / "requests").mkdir()
    for request in sorted((HERE / "requests").glob("*.yaml")):
        data = yaml.safe_load(request.read_text(encoding="utf-8"))
        _write_yaml(base / "requests" / request.name, data | {"received": as_of - timedelta(days=2)})
    for kind, pattern in (("events", "*.ndjson"), ("jobs", "*.sql")):
        folder = base / "lineage" / kind
        folder.mkdir(parents=True)
        for file in sorted((HERE / kind).glob(pattern)):
            shutil.copyfile(file, folder / file.name)


def build_tables(base: Path, spark: SparkSession, people: Population, progress: Progress, run: RunJob) -> None:
    """Create the source, run every job twice (`run` runs one), and make the copies that no job knows of."""
    for schema in ("lake.prod", "lake.risk", "lake.analytics", "lake.dev", "prod", "dev"):
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {schema}")
    _reference_tables(base, spark, people)
    batches = people.batches()
    for batch in batches[:-1]:
        _append(spark, _PAYMENTS, batch)
    spark.sql(f"ALTER TABLE {_PAYMENTS} CREATE TAG {TAG}")
    progress(f"source: {len(batches) - 1} batches of payments, tag {TAG}")
    for job in job_files():
        run(job)
        progress(f"first run: {job.stem}")
    _forget_former_customer(spark)
    spark.sql(f"ALTER TABLE {_PAYMENTS} CREATE BRANCH {BRANCH}")
    _append(spark, f"{_PAYMENTS}.branch_{BRANCH}", people.audit)
    _append(spark, _PAYMENTS, batches[-1])
    progress(f"source: another customer erased, branch {BRANCH}, last batch")
    for job in job_files():
        run(job)
        progress(f"second run: {job.stem}")
    # somebody's copy by hand: no lineage knows it
    shutil.copytree(base / "warehouse/files/ml_features", base / "dev/ml_features_copy")
    progress("dev: features copied by hand")


def run_job(spark: SparkSession, job: Path, base: Path) -> None:
    """Run one job's statements."""
    for statement in statements(job, base):
        spark.sql(statement)


def _reference_tables(base: Path, spark: SparkSession, people: Population) -> None:
    modes = ", ".join(f"'write.{verb}.mode' = 'merge-on-read'" for verb in ("delete", "update", "merge"))
    spark.sql(
        f"CREATE TABLE {_PAYMENTS} ({_PAYMENT_COLUMNS}) USING iceberg TBLPROPERTIES ('format-version' = '2', {modes})"
    )
    spark.sql(
        "CREATE TABLE lake.prod.merchants (merchant_id bigint, name string, category string, city string)"
        " USING iceberg TBLPROPERTIES ('format-version' = '2')"
    )
    columns = "merchant_id bigint, name string, category string, city string"
    _frame(spark, people.merchants, columns).coalesce(1).writeTo("lake.prod.merchants").append()
    spark.sql(
        "CREATE TABLE prod.vendor_contacts (vendor string, pan string, phone string, email string)"
        f" USING delta LOCATION '{base}/warehouse/delta/vendor_contacts'"
    )
    vendors = _frame(spark, people.vendors, "vendor string, pan string, phone string, email string")
    vendors.coalesce(1).write.format("delta").mode("append").insertInto("prod.vendor_contacts")


def _forget_former_customer(spark: SparkSession) -> None:
    """Erase one customer the naive way: leaves delete files and deletion vectors, as estates have them."""
    frame_of_rows(spark, [(FORMER_CUSTOMER,)], "user_id bigint").createOrReplaceTempView("former_customers")
    spark.sql(f"DELETE FROM {_PAYMENTS} WHERE user_id IN (SELECT user_id FROM former_customers)")
    spark.sql(
        "MERGE INTO prod.customer_360 t USING former_customers f ON t.customer_id = f.user_id WHEN MATCHED THEN DELETE"
    )
    spark.catalog.dropTempView("former_customers")


def _append(spark: SparkSession, table: str, payments: Sequence[Payment]) -> None:
    _frame(spark, payments, _PAYMENT_COLUMNS).coalesce(1).writeTo(table).append()


def _frame(spark: SparkSession, rows: Sequence[Any], columns: str) -> Any:
    """Rows as a data frame: their values never stand in SQL text, nor in the tables' logs."""
    return frame_of_rows(spark, [astuple(row) for row in rows], columns)


def _estate_data(endpoint_url: str | None, with_s3: bool) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load((HERE / ESTATE_FILE).read_text(encoding="utf-8"))
    if not with_s3:
        del data["s3"], data["archives"]
    elif endpoint_url is not None:
        data["s3"]["endpoint_url"] = endpoint_url
    return data


def _write_yaml(path: Path, data: dict[str, Any]) -> None:
    path.write_text(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), encoding="utf-8")


def main(argv: list[str] | None = None) -> None:
    """Build the estate without S3 in a folder."""
    parser = argparse.ArgumentParser(prog="python -m sample_lineage.build", description="build the sample estate")
    parser.add_argument("folder", type=Path, help="an empty or missing folder")
    base = parser.parse_args(argv).folder.resolve()
    spark = open_session(sample_estate(), base)
    try:
        build(base, spark, None, datetime.now(timezone.utc), lambda line: print(line, file=sys.stderr, flush=True))
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
