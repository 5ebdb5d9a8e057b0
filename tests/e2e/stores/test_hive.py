"""The whole path on tables that a real Hive metastore names: Iceberg's by its catalog on Spark, plain files by path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from executors.formats.iceberg.catalog_settings import catalog_conf
from pii_tracer.cli.main import run
from pii_tracer.config.estate_file import load_estate
from pii_tracer.lake.rows.spark_frames import frame_of_rows
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from pii_tracer.scan.folder_scan import scan_tree
from tests.cli.small import RECEIVED
from tests.e2e.ledger import MEMBER, OTHERS, PHONE
from tests.e2e.stores.test_catalogs import PERSON
from tests.hivesupport import Hive, serving
from tests.sparksession import small_spark

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow]

LOCKS = "iceberg.engine.hive.lock-enabled"

JOBS = """
CREATE TABLE hms.core.calls USING iceberg AS
SELECT member_no, phone AS dialled, 3 AS minutes FROM hms.core.members;

CREATE TABLE core.visits USING parquet LOCATION '{base}/core.db/visits' AS
SELECT member_no, 'gate' AS door FROM hms.core.members
"""
QUERIES = {
    "members": f"SELECT * FROM hms.core.members WHERE member_no <> '{MEMBER}'",
    "calls": f"SELECT * FROM hms.core.calls WHERE member_no <> '{MEMBER}'",
    "visits": f"SELECT * FROM parquet.`{{base}}/core.db/visits` WHERE member_no <> '{MEMBER}'",
}


def write_estate(base: Path, hive: Hive) -> None:
    """Estate file, policy, request and the jobs' SQL."""
    member = {"name": "member", "source": "hms.core.members", "key": "member_no"}
    estate = {
        "version": 1,
        "estate": "ledger",
        "environment": "local",
        "spark": small_spark(),
        "catalogs": {"hms": {"type": "hive", "uri": hive.uri}},
        "roots": ["core.db"],
        "lineage": {"sql": ["jobs.sql"]},
        "subjects": [member | {"identifiers": [{"column": "phone", "category": "phone"}]}],
    }
    request = {"id": "R-1", "law": "GDPR", "received": RECEIVED, "subject": {"type": "member", "key": MEMBER}}
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(estate))
    (base / "policy.yaml").write_text(yaml.safe_dump({"version": 1, "allow_immediate_retention": True}))
    (base / "request.yaml").write_text(yaml.safe_dump(request))
    (base / "jobs.sql").write_text(JOBS.format(base=base))


def build(base: Path, spark: Any, hive: Hive) -> None:
    """Make the tables by the jobs that lineage is read from."""
    write_estate(base, hive)
    for key, value in catalog_conf(load_estate(base / "pii-tracer.yaml"), base).items():
        spark.conf.set(key, value)
    # the tables of its locks are made by Hive's schema tool, which Spark does not bring
    spark._jsc.hadoopConfiguration().set(LOCKS, "false")
    spark._jsparkSession.sessionState().catalogManager().reset()
    spark.sql("CREATE DATABASE IF NOT EXISTS spark_catalog.core")
    frame = frame_of_rows(spark, [(MEMBER, PHONE), *OTHERS], "member_no string, phone string").coalesce(1)
    frame.writeTo("hms.core.members").using("iceberg").create()
    for statement in JOBS.format(base=base).split(";"):
        spark.sql(statement)
    spark.sql("INSERT INTO hms.core.members VALUES ('M-9', '9870012349')")
    columns = {"member_no": "string", "door": "string"}
    hive.table("core.visits", base / "core.db" / "visits", columns=columns)


def others(spark: Any, base: Path) -> dict[str, list[str]]:
    """Everybody else's rows as text, sorted."""
    spark.catalog.clearCache()
    return {n: sorted(map(str, spark.sql(q.format(base=base)).collect())) for n, q in QUERIES.items()}


def residue(base: Path) -> set[str]:
    return {file.path for file in scan_tree(base / "core.db", PERSON).files if file.hits or file.unread}


def test_the_person_is_erased_and_nobody_else(spark: Any, tmp_path: Path) -> None:
    base, codes = tmp_path, {}
    with serving(base) as hive, hive.database("core"):
        build(base, spark, hive)
        before, there, file = others(spark, base), residue(base), base / "hive.plan.json"

        def cli(*words: str) -> None:
            codes[words[0]] = run([*words, "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")])

        reason = ["--retention", "immediate", "--reason", "test: no writer, no reader"]
        cli("plan", str(base / "request.yaml"), *reason, "--out", str(file))
        plan = json.loads(file.read_text())
        assert plan["gaps"] == []
        assert {c["table"] for c in plan["copies"]} == {"hms.core.members", "hms.core.calls", "core.visits"}
        public = generate(base / "approver.pem")
        (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "officer", public_pem(public).decode())]))
        who = ["--approver", "Dr. Sen", "--role", "officer", "--reason", "right", "--key", str(base / "approver.pem")]
        cli("approve", str(file), *who)
        cli("apply", str(file), "--trusted", str(base / "approvers.yaml"), "--result", str(base / "result.json"))
        cli("verify", str(file))
        after = others(spark, base)
    spark._jsc.hadoopConfiguration().unset(LOCKS)
    assert codes == {"plan": 0, "approve": 0, "apply": 0, "verify": 0}
    assert {name.split("/")[0] for name in there} == {"members", "calls", "visits"}
    assert residue(base) == set()
    assert after == before
    result = json.loads((base / "result.json").read_text())
    assert (result["state"], result["residue"], result["bystander_rows_lost"]) == ("complete", [], 0)
