"""An aggregate that knows more than today's source does is never rebuilt; once it is what its job gives, it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from deltalake import DeltaTable, write_deltalake

from pii_tracer.cli.main import run
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from pii_tracer.run.journal import parse
from tests.cli.small import RECEIVED
from tests.sparksession import small_spark

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow, pytest.mark.nightly]

GUEST, EMAIL = "G-771204", "asha.rao@hotel.example"
NIGHTS = [(GUEST, EMAIL, "02-28"), ("G-2", "b2@hotel.example", "03-01"), ("G-3", "b3@hotel.example", "03-02")]
KNOWN = {"day": ["02-28", "03-01", "03-02"], "n": [1, 1, 1]}
LOST = {"day": ["01-01", "02-01", *KNOWN["day"]], "n": [7, 9, *KNOWN["n"]]}

ESTATE = {
    "version": 1,
    "estate": "hotel",
    "environment": "local",
    "spark": small_spark({"spark.sql.sources.partitionOverwriteMode": "dynamic"}),
    "catalogs": {
        "spark_catalog": {
            "type": "declared",
            "tables": [
                {"name": "hotel.nights", "format": "parquet", "location": "tables/nights"},
                {"name": "hotel.days", "format": "delta", "location": "tables/days"},
            ],
        }
    },
    "roots": ["tables"],
    "lineage": {"sql": ["jobs.sql"]},
    "subjects": [
        {
            "name": "guest",
            "source": "hotel.nights",
            "key": "guest",
            "identifiers": [{"column": "email", "category": "email"}],
        }
    ],
}
JOB = "CREATE OR REPLACE TABLE hotel.days USING delta PARTITIONED BY (day) AS SELECT day, count(*) AS n FROM hotel.nights GROUP BY day"


def build(base: Path) -> None:
    """A source without January and February, which a table still has; the guest was there on a day alone, and so in a partition alone."""
    (base / "tables" / "nights").mkdir(parents=True)
    rows = [dict(zip(("guest", "email", "day"), row, strict=True)) for row in NIGHTS]
    pq.write_table(pa.Table.from_pylist(rows), base / "tables" / "nights" / "part-0.parquet")
    write_deltalake(base / "tables" / "days", pa.table(LOST), partition_by=["day"])
    (base / "jobs.sql").write_text(JOB)
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(ESTATE))
    (base / "policy.yaml").write_text(yaml.safe_dump({"version": 1, "allow_immediate_retention": True}))
    request = {"id": "HOTEL-1", "law": "GDPR", "received": RECEIVED}
    (base / "request.yaml").write_text(yaml.safe_dump({**request, "subject": {"type": "guest", "key": GUEST}}))
    public = generate(base / "key.pem")
    (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "officer", public_pem(public).decode())]))


def cli(base: Path, *given: str) -> int:
    return run([*given, "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")])


def erase(base: Path, name: str) -> int:
    """Plan, approve, apply; the exit code of the last."""
    file = base / f"{name}.plan.json"
    options = ["--retention", "immediate", "--reason", "test", "--out", str(file)]
    assert cli(base, "plan", str(base / "request.yaml"), *options) == 0
    signed = ["--approver", "Dr. Sen", "--role", "officer", "--reason", "right", "--key", str(base / "key.pem")]
    assert cli(base, "approve", str(file), *signed) == 0
    result = str(base / f"{name}.json")
    return cli(base, "apply", str(file), "--trusted", str(base / "approvers.yaml"), "--result", result)


def held(base: Path) -> dict[str, Any]:
    table = DeltaTable(base / "tables" / "days").to_pyarrow_table()
    return dict(zip(table["day"].to_pylist(), table["n"].to_pylist(), strict=True))


def bytes_of(base: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in (base / "tables").rglob("*") if path.is_file()}


def test_months_that_the_source_lost_are_not_lost_by_a_rebuild(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build(tmp_path)
    before = bytes_of(tmp_path)
    assert erase(tmp_path, "refused") == 1
    told = " ".join(capsys.readouterr().err.split())
    assert "hotel.days contains 2 rows that its recorded statement does not return" in told
    assert EMAIL not in told
    assert bytes_of(tmp_path) == before
    for journal in (tmp_path / "state").rglob("journal.jsonl"):
        assert not [r for r in parse(journal.read_bytes())[0] if r.facts.get("step")]

    write_deltalake(tmp_path / "tables" / "days", pa.table(KNOWN), mode="overwrite", partition_by=["day"])
    assert erase(tmp_path, "good") == 0
    plan = ErasurePlan.model_validate_json((tmp_path / "good.plan.json").read_bytes())
    assert [c.strategy.value for c in plan.copies] == ["delete_by_key", "rebuild"]
    result = json.loads((tmp_path / "good.json").read_text())
    assert (result["state"], result["residue"], result["bystander_rows_lost"]) == ("complete", [], 0)
    assert held(tmp_path) == {"03-01": 1, "03-02": 1}
