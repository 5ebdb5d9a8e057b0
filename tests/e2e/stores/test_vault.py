"""A table and its archives in a Glacier vault, from the plan to the attestation; days pass on the service's clock."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pii_tracer.app.execution import plan_run
from pii_tracer.cli.main import run
from tests.e2e import shredded
from tests.e2e.shredded import OTHERS, PERSON, PHONE
from tests.glaciersupport import REGION, StrictGlacier, strict_glacier
from tests.leaks import Person, leaks

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow, pytest.mark.nightly]


@pytest.fixture
def glacier() -> Iterator[StrictGlacier]:
    with strict_glacier() as running:
        yield running


def users(*callers: str) -> bytes:
    sink = io.BytesIO()
    pq.write_table(
        pa.table({"caller": list(callers), "phone": [PHONE if c == PERSON else "+91" for c in callers]}), sink
    )
    return sink.getvalue()


def callers(body: bytes) -> list[str]:
    found: list[str] = pq.read_table(io.BytesIO(body)).column("caller").to_pylist()
    return found


def build(base: Path, glacier: StrictGlacier) -> None:
    shredded.build(base)
    for other in ("keys", "calls"):
        shutil.rmtree(base / "tables" / other)
    declared = [{"name": "tel.users", "format": "parquet", "location": "tables/users"}]
    vault = {"name": "old", "of": "tel.users", "vault": "cold", "region": REGION, "format": "parquet"}
    shredded.estate(
        base,
        keys=[],
        backups=[],
        catalogs={"spark_catalog": {"type": "declared", "tables": declared}},
        vaults=[{**vault, "endpoint_url": glacier.endpoint}],
    )
    glacier.now = datetime.now(timezone.utc).replace(microsecond=0) - timedelta(days=2)
    glacier.next_inventory = glacier.now


def test_the_person_leaves_the_table_and_its_vault(
    spark: Any, glacier: StrictGlacier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path, glacier)
    mixed, clean = glacier.put(users(PERSON, *OTHERS), "2019"), glacier.put(users(*OTHERS), "2020")
    glacier.advance(hours=1)
    glacier.ask()
    glacier.advance(hours=5)
    assert shredded.plan(tmp_path) == 0
    assert shredded.approve(tmp_path) == 0
    glacier.advance(hours=48)  # the inventory that was planned with can be fetched no more: that is no drift
    monkeypatch.setattr(plan_run, "now", lambda: glacier.now)
    result = tmp_path / "result.json"
    trusted = ["--trusted", str(tmp_path / "approvers.yaml"), "--result", str(result)]
    code = shredded.cli(tmp_path, "apply", str(tmp_path / "p.plan.json"), *trusted)
    for _ in range(30):
        if code != 8:
            break
        waiting = json.loads(result.read_text())
        assert (waiting["state"], waiting["attestation"]) == ("waiting", None)
        glacier.advance(hours=6)
        code = run(["resume", "--state", str(tmp_path / "state")])
    done = json.loads(result.read_text())
    assert code == 0, done
    assert (done["state"], done["residue"], done["bystander_rows_lost"]) == ("complete", [], 0)
    assert (done["copies_total"], done["copies_erased"]) == (2, 2)
    assert mixed not in glacier.archives
    assert [callers(body) for body in glacier.readable()].count(list(OTHERS)) == 2
    assert glacier.archives[clean].description == "2020"
    assert {a.description for a in glacier.archives.values()} == {"2019", "2020"}
    public = str(tmp_path / "state" / "keys" / "attest.pem.pub")
    assert run(["attest", "verify", done["attestation"], "--key", public]) == 0
    assert leaks(Person((PERSON, PHONE)), [tmp_path / "state", *tmp_path.glob("p.*"), result]) == []
