"""The whole path on an Iceberg table whose history stays: planned, signed, run, verified, and read on by Spark."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from executors.formats.iceberg.catalog_settings import catalog_conf
from pii_tracer.cli.main import run
from pii_tracer.config.estate_file import load_estate
from pii_tracer.lake.rows.spark_frames import frame_of_rows
from pii_tracer.model.datasets import KeySet
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from pii_tracer.scan.folder_scan import scan_tree
from pii_tracer.scan.value_forms import build_patterns
from tests.cli.small import RECEIVED
from tests.leaks import Person, leaks
from tests.sparksession import small_spark

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow]

MEMBER, PHONE = "M-7720913", "9811200345"
PERSON = build_patterns(
    [
        KeySet(name="no", origin="members.member_no", weak=False, values=(("subj_1", MEMBER),)),
        KeySet(name="phone", origin="members.phone", weak=False, values=(("subj_1", PHONE),)),
    ]
)
TABLE = "desk.core.members"
ESTATE = {
    "version": 1,
    "estate": "desk",
    "environment": "local",
    "spark": small_spark(),
    "catalogs": {
        "desk": {
            "type": "iceberg-sql",
            "uri": "sqlite:///desk.db",
            "warehouse": "desk",
            "keep_history": [TABLE],
        }
    },
    "roots": ["desk"],
    "lineage": {"sql": ["jobs.sql"]},
    "subjects": [
        {
            "name": "member",
            "source": TABLE,
            "key": "member_no",
            "identifiers": [{"column": "phone", "category": "phone"}],
        }
    ],
}
JOBS = "CREATE TABLE IF NOT EXISTS desk.core.calls USING iceberg AS SELECT member_no, phone FROM desk.core.members"


def build(base: Path, spark: Any) -> None:
    """Written by Spark: partitioned by a transform, a column renamed and one added, a tag, a branch, deletes."""
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(ESTATE))
    (base / "policy.yaml").write_text(yaml.safe_dump({"version": 1, "allow_immediate_retention": True}))
    request = {"id": "DESK-1", "law": "GDPR", "received": RECEIVED, "subject": {"type": "member", "key": MEMBER}}
    (base / "request.yaml").write_text(yaml.safe_dump(request))
    (base / "jobs.sql").write_text(JOBS)
    for key, value in catalog_conf(load_estate(base / "pii-tracer.yaml"), base).items():
        if not key.startswith("spark.redaction"):
            spark.conf.set(key, value)
    spark._jsparkSession.sessionState().catalogManager().reset()
    spark.sql("CREATE NAMESPACE IF NOT EXISTS desk.core")
    spark.sql(
        f"CREATE TABLE {TABLE} (no STRING, phone STRING, score DOUBLE) USING iceberg"
        " PARTITIONED BY (truncate(4, no)) TBLPROPERTIES ('format-version' = '2')"
    )

    def write(*rows: tuple[Any, ...], columns: str = "no string, phone string, score double") -> None:
        frame_of_rows(spark, list(rows), columns).coalesce(1).writeTo(TABLE).append()

    write((MEMBER, PHONE, 1.5), ("M-7720914", "9811200346", 2.5), ("M-1", "9811200347", float("nan")))
    spark.sql(f"ALTER TABLE {TABLE} CREATE TAG first")
    spark.sql(f"DELETE FROM {TABLE} WHERE no = 'M-7720914'")
    spark.sql(f"ALTER TABLE {TABLE} RENAME COLUMN no TO member_no")
    spark.sql(f"ALTER TABLE {TABLE} ADD COLUMN city STRING")
    spark.sql(f"ALTER TABLE {TABLE} CREATE BRANCH audit")
    now = "member_no string, phone string, score double, city string"
    write((MEMBER, PHONE, 3.5, "Pune"), ("M-2", "9811200348", 4.5, "Pune"), columns=now)
    spark.sql(f"INSERT OVERWRITE {TABLE} SELECT * FROM {TABLE} WHERE member_no <> 'M-1'")
    spark.sql(JOBS)


def told(spark: Any) -> dict[str, list[str]]:
    """The rows of every snapshot and tag, read by Spark."""
    spark.catalog.refreshTable(TABLE)
    found = {}
    for row in spark.sql(f"SELECT snapshot_id FROM {TABLE}.snapshots").collect():
        frame = spark.read.option("snapshot-id", row[0]).table(TABLE)
        found[f"snapshot {row[0]}"] = sorted(map(str, frame.collect()))
    found["tag first"] = sorted(map(str, spark.read.option("tag", "first").table(TABLE).collect()))
    found["branch audit"] = sorted(map(str, spark.read.option("branch", "audit").table(TABLE).collect()))
    return found


def without(rows: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: [row for row in found if MEMBER not in row] for name, found in rows.items()}


def residue(base: Path) -> set[str]:
    return {file.path for file in scan_tree(base / "desk", PERSON).files if file.hits or file.unread}


@dataclass(frozen=True)
class Done:
    base: Path
    codes: dict[str, int]
    plan: dict[str, Any]
    result: dict[str, Any]
    before: dict[str, list[str]]


@pytest.fixture(scope="module")
def done(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Done:
    base = tmp_path_factory.mktemp("desk")
    build(base, spark)
    before, file, codes = told(spark), base / "desk.plan.json", {}
    assert residue(base)

    def cli(*words: str) -> None:
        codes[words[0]] = run([*words, "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")])

    reason = ["--retention", "immediate", "--reason", "test: no writer, no reader"]
    cli("plan", str(base / "request.yaml"), *reason, "--out", str(file))
    public = generate(base / "approver.pem")
    (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "officer", public_pem(public).decode())]))
    signed = ["--approver", "Dr. Sen", "--role", "officer", "--reason", "right", "--key", str(base / "approver.pem")]
    cli("approve", str(file), *signed)
    cli("apply", str(file), "--trusted", str(base / "approvers.yaml"), "--result", str(base / "result.json"))
    cli("verify", str(file))
    plan, result = json.loads(file.read_text()), json.loads((base / "result.json").read_text())
    return Done(base, codes, plan, result, before)


def test_the_plan_keeps_the_history_and_expires_nothing_of_it(done: Done) -> None:
    assert done.plan["gaps"] == []
    (members,) = (c for c in done.plan["copies"] if c["table"] == TABLE)
    assert members["facts"] == {"keeps_history": True}
    steps = [s["action"] for s in done.plan["steps"] if s["copy"] == members["id"]]
    assert steps == ["iceberg_rewrite_history", "iceberg_remove_orphans", "verify_copy"]
    assert "iceberg_expire_snapshots" in {s["action"] for s in done.plan["steps"]}, "of the table that says nothing"


def test_every_command_ends_as_it_should(done: Done) -> None:
    assert done.codes == {"plan": 0, "approve": 0, "apply": 0, "verify": 0}
    assert done.result["state"] == "complete"
    assert (done.result["residue"], done.result["bystander_rows_lost"]) == ([], 0)


def test_spark_reads_every_snapshot_without_the_person(done: Done, spark: Any) -> None:
    assert told(spark) == without(done.before) != done.before
    assert residue(done.base) == set()


def test_spark_reads_the_metadata_tables(done: Done, spark: Any) -> None:
    files = {row[0] for row in spark.sql(f"SELECT file_path FROM {TABLE}.all_data_files").collect()}
    assert {Path(path.removeprefix("file:")).exists() for path in files} == {True}
    rows = spark.sql(f"SELECT summary['total-records'], snapshot_id FROM {TABLE}.snapshots").collect()
    after = told(spark)
    assert {row[1]: int(row[0]) for row in rows} == {row[1]: len(after[f"snapshot {row[1]}"]) for row in rows}
    assert spark.sql(f"SELECT sum(record_count) FROM {TABLE}.files").first()[0] == spark.table(TABLE).count()
    assert spark.sql(f"SELECT count(*) FROM {TABLE}.all_entries").first()[0] > 0
    assert spark.sql(f"SELECT count(*) FROM {TABLE}.history").first()[0] == len(rows) - 0


def test_spark_goes_on_with_the_table(done: Done, spark: Any) -> None:
    before = told(spark)
    spark.sql(f"INSERT INTO {TABLE} VALUES ('M-9', '9811200349', 9.5, 'Goa')")
    spark.sql(f"DELETE FROM {TABLE} WHERE member_no = 'M-2'")
    after = told(spark)
    assert {name: rows for name, rows in after.items() if name in before} == before
    assert [row.member_no for row in spark.table(TABLE).where("city = 'Goa'").collect()] == ["M-9"]


def test_no_value_of_the_member_is_in_what_the_run_leaves(done: Done) -> None:
    left = [done.base / "state", done.base / "desk.plan.json", done.base / "result.json"]
    assert leaks(Person((MEMBER, PHONE)), left) == []
