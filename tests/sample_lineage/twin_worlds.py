"""Two sample estates that differ in one person: run as a process of its own, because both use the same table names.

`python -m tests.sample_lineage.twin_worlds WITH WITHOUT` builds both folders.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from executors.engine.session_settings import session_conf
from executors.engine.spark_session import open_session
from sample_lineage.build import build_tables, run_job, sample_estate
from sample_lineage.people import FORMER_CUSTOMER, PERSON, SECOND_PERSON, Payment, Population, populate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AS_OF = datetime(2026, 11, 20, 6, 0, tzinfo=timezone.utc)
JOBS = Path(__file__).parent / "jobs_without_persons"
"""Jobs over merchants only: the person must not reach what they write."""
OTHERS = 40


@dataclass(frozen=True)
class OneBatch(Population):
    """Everybody's payments at once, so that leaving one person out moves nobody else's between two batches."""

    def batches(self) -> list[tuple[Payment, ...]]:
        return [self.payments, ()]


def world(without: int | None) -> Population:
    """A part of the sample's population, with or without one person."""
    people = populate(AS_OF)
    chosen = {PERSON, SECOND_PERSON, FORMER_CUSTOMER, *(u.user_id for u in people.users[3 : 3 + OTHERS])} - {without}
    return OneBatch(
        users=tuple(u for u in people.users if u.user_id in chosen),
        merchants=people.merchants,
        payments=tuple(p for p in people.payments if p.user_id in chosen),
        vendors=people.vendors,
        audit=tuple(p for p in people.audit if p.user_id in chosen),
    )


def main(folders: list[str]) -> None:
    """Build the world with the person in the first folder, and without in the second."""
    bases = [Path(folder).resolve() for folder in folders]
    for base in bases:
        base.mkdir(parents=True, exist_ok=True)
    spark = open_session(sample_estate(), bases[0])
    build_world(spark, bases[0], None)
    for schema in ("prod", "dev"):
        spark.sql(f"DROP DATABASE {schema} CASCADE")  # the names only: all its tables lie at paths of their own
    second = spark.newSession()
    for key, value in session_conf(sample_estate(), bases[1]).items():
        if key.startswith("spark.sql.catalog.lake"):
            second.conf.set(key, value)
    build_world(second, bases[1], PERSON)
    spark.stop()


def build_world(spark: SparkSession, base: Path, without: int | None) -> None:
    """One world; every job runs once."""
    ran: set[str] = set()

    def once(job: Path) -> None:
        if job.stem not in ran:
            run_job(spark, job, base)
            ran.add(job.stem)

    build_tables(base, spark, world(without), lambda line: print(line, file=sys.stderr, flush=True), once)
    for job in sorted(JOBS.glob("*.sql")):
        run_job(spark, job, base)


if __name__ == "__main__":
    main(sys.argv[1:])
