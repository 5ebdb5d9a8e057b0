"""A key of several columns in tables of a Nessie catalog: her rows leave every reference, her namesake's stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pii_tracer.lake.rows.spark_frames import frame_of_rows
from tests.e2e import clubhouse
from tests.e2e.clubhouse import REFERENCES, table
from tests.e2e.stores.test_nessie import Club
from tests.leaks import Person, leaks
from tests.nessiesupport import serving

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow, pytest.mark.nightly]

PHONE = "9850012345"
ASHA = ("north", 7, PHONE)
OTHERS = [("south", 7, "9850012346"), ("north", 8, "9850012347"), ("north", 77, None), (None, 7, None)]
JOB = "CREATE TABLE IF NOT EXISTS nes.core.visits USING iceberg AS SELECT tenant, no, 'gate' AS door FROM nes.core.members"
SUBJECT = {
    "name": "member",
    "source": "nes.core.members",
    "key": ["tenant", "no"],
    "identifiers": [{"column": "phone", "category": "phone"}],
}


def made(base: Path, spark: Any, server: Any) -> Club:
    """Members, and their visits which have nothing of a person but the key, on two branches and under a tag."""
    clubhouse.write_estate(base, server)
    for name, changed in (("pii-tracer", {"subjects": [SUBJECT]}), ("request", {"subject": _asked()})):
        file = base / f"{name}.yaml"
        file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | changed))
    (base / "jobs.sql").write_text(JOB)
    clubhouse.connect(base, spark)
    spark.sql("CREATE NAMESPACE nes.core")
    frame = frame_of_rows(spark, [ASHA, *OTHERS], "tenant string, no bigint, phone string").coalesce(1)
    frame.writeTo("nes.core.members").using("iceberg").create()
    spark.sql(JOB)
    server.make("q1", "TAG")
    server.make("dev", "BRANCH")
    spark.sql("INSERT INTO nes.core.`visits@dev` VALUES ('north', 7, 'roof'), ('south', 7, 'roof')")
    return Club(base, spark, server)


def _asked() -> dict[str, Any]:
    return {"type": "member", "key": {"tenant": "north", "no": "7"}}


def rows(spark: Any) -> dict[str, list[tuple[Any, ...]]]:
    return {
        f"{name} on {ref}": sorted(
            (tuple(r) for r in spark.sql(f"SELECT * FROM {table(name, ref)}").collect()), key=repr
        )
        for name in ("members", "visits")
        for ref in REFERENCES
    }


def test_she_leaves_every_reference_and_her_namesake_stays(spark: Any, tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        club = made(tmp_path, spark, server)
        before = rows(spark)
        plan = club.plan()
        assert plan["gaps"] == []
        club.approve()
        result = club.apply()
        assert (result["state"], result["residue"], result["bystander_rows_lost"]) == ("complete", [], 0)
        assert club.cli("verify", str(club.file)) == 0
        after = rows(spark)
        assert [code for _, code in club.codes] == [0, 0, 0, 0]
    assert after == {name: [row for row in found if row[:2] != ("north", 7)] for name, found in before.items()}
    assert [len(found) - len(after[name]) for name, found in before.items()] == [1, 1, 1, 1, 2, 1]
    assert all(("south", 7) in [row[:2] for row in found] for found in after.values())
    assert leaks(Person((PHONE,)), [tmp_path / "state", *tmp_path.glob("club.*")]) == []
