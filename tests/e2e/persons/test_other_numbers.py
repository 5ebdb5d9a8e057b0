"""A number that another system uses, too: with its owner's word the run ends clean, says whose word that is, and nobody
else's row is touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from executors.engine.version_profiles import installed_profile
from pii_tracer.cli.main import run
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from tests.app.planning.test_other_numbers import KEY, planned

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow, pytest.mark.nightly]


def _run(base: Path, *words: str) -> int:
    return run([*words, "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")])


def test_the_drivers_numbers_stay_and_the_certificate_says_whose_word_that_is(spark: Any, tmp_path: Path) -> None:
    base, file = tmp_path, tmp_path / "r.plan.json"
    planned(base, "s.trips.driver_id", "s.drivers.driver_id")
    with (base / "pii-tracer.yaml").open("a") as told:
        told.write(f"spark: {{profile: '{installed_profile().name}'}}\n")
    (base / "policy.yaml").write_text("version: 1\nallow_immediate_retention: true\n")
    for name in ("s.riders", "s.trips", "m.rides", "m.by_city"):
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {name[0]}")
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{base / 'lake' / name[2:]}'")
    options = ["--retention", "immediate", "--reason", "test: no writer", "--out", str(file)]
    assert _run(base, "plan", str(base / "request.yaml"), *options) == 0
    public = generate(base / "key.pem")
    (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "officer", public_pem(public).decode())]))
    signed = ["--approver", "Dr. Sen", "--role", "officer", "--reason", "right", "--key", str(base / "key.pem")]
    assert _run(base, "approve", str(file), *signed) == 0
    given = ["--trusted", str(base / "approvers.yaml"), "--result", str(base / "result.json")]
    assert _run(base, "apply", str(file), *given) == 0
    result = json.loads((base / "result.json").read_text())
    assert (result["state"], result["residue"], result["bystander_rows_lost"]) == ("complete", [], 0)
    assert {(n["column"], n["owner"]) for n in result["not_keys"]} >= {("s.trips.driver_id", "Ravi Nair")}
    assert _run(base, "verify", str(file)) == 0
    page = base / "certificate.html"
    assert run(["attest", "certificate", "--state", str(base / "state"), "--out", str(page)]) == 0
    assert "s.trips.driver_id" in page.read_text()
    assert "Ravi Nair" in page.read_text()
    trips = spark.sql(f"SELECT count(*), count_if(driver_id = {KEY}), count_if(rider_id = {KEY}) FROM s.trips")
    assert tuple(trips.collect()[0]) == (3, 2, 0)
    assert spark.sql("SELECT count(*), sum(trips) FROM m.by_city").collect()[0] == (3, 3)
