"""The whole path where each tenant counts its users from 1: the asked are gone, and nobody of another tenant is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.cli.main import run
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from tests.e2e import tenants
from tests.leaks import leaks

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow]

GONE = {(tenant, user) for tenant, user, _ in tenants.ASKED}


@dataclass(frozen=True)
class Done:
    base: Path
    plan: dict[str, Any]
    result: dict[str, Any]
    codes: tuple[int, ...]
    before: dict[str, list[tuple[Any, ...]]]
    after: dict[str, list[tuple[Any, ...]]]
    naive: list[tuple[Any, ...]]


def cli(base: Path, *words: str) -> int:
    return run([*words, "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")])


def naive(base: Path, spark: Any) -> list[tuple[Any, ...]]:
    """Whom a copy of the orders names after a DELETE by a list of tenants and a list of users."""
    place = f"delta.`{base}/naive`"
    spark.table("many.orders").write.format("delta").save(str(base / "naive"))
    spark.sql(f"DELETE FROM {place} WHERE tenant_id IN ('4', '5') AND user_id IN (17, 18)")
    return sorted({tuple(row) for row in spark.sql(f"SELECT tenant_id, user_id FROM {place}").collect()}, key=repr)


@pytest.fixture(scope="module")
def done(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Done:
    base = tmp_path_factory.mktemp("many")
    requests = tenants.write_estate(base)
    tenants.build(base, spark)
    before, left = tenants.rows(base, spark), naive(base, spark)
    file = base / "p.plan.json"
    words = ["--retention", "immediate", "--reason", "test: no writer, no reader", "--out", str(file)]
    public = public_pem(generate(base / "approver.pem")).decode()
    (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "privacy officer", public)]))
    signed = ["--role", "privacy officer", "--reason", "right", "--key", str(base / "approver.pem")]
    trusted = ["--trusted", str(base / "approvers.yaml"), "--result", str(base / "result.json")]
    codes = (
        cli(base, "plan", *requests, *words),
        cli(base, "approve", str(file), "--approver", "Dr. Sen", *signed),
        cli(base, "apply", str(file), *trusted),
        cli(base, "verify", str(file)),
    )
    plan, result = (json.loads((base / name).read_text()) for name in ("p.plan.json", "result.json"))
    return Done(base, plan, result, codes, before, tenants.rows(base, spark), left)


def test_every_command_ends_well(done: Done) -> None:
    assert (done.plan["gaps"], done.codes) == ([], (0, 0, 0, 0))


def test_lists_of_tenants_and_users_would_delete_others(done: Done) -> None:
    assert {(tenant, user) for tenant, user, _ in tenants.OTHERS} - set(done.naive) == {("4", 18), ("5", 17)}


def test_rows_of_the_asked_are_gone_and_all_others_are_there(done: Done) -> None:
    for table, rows in done.before.items():
        assert done.after[table] == [row for row in rows if row not in GONE], table
        assert {("4", 18), ("5", 17), ("44", 7)} <= set(done.after[table]), table


def test_the_verifier_counted_everybody_else(done: Done) -> None:
    assert (done.result["state"], done.result["residue"]) == ("complete", [])
    assert [c["table"] for c in done.plan["copies"] if c["origin"] is None and c["match"] is None] == []


def test_no_value_is_in_what_was_written(done: Done) -> None:
    assert [leak for person in tenants.PERSONS for leak in leaks(person, [done.base / "state"])] == []
