"""Iceberg tables in Cloud Storage that a REST catalog names: Iceberg's own server, and the whole path with Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from executors.engine.version_profiles import installed_profile
from pii_tracer.model.errors import ExitCode
from tests.gcs.estate import Estate
from tests.gcs.rest_catalog import WAREHOUSE, catalog_server, catalogs_of, client_of
from tests.gcs.tables import Lake, holding
from tests.gcssupport import Gcs
from tests.hdfs.shop import MAIL, OTHERS, PERSON, REFILLS, USER, parquet
from tests.icebergstores import iceberg
from tests.leaks import Person, leaks

pytestmark = pytest.mark.skipif(installed_profile().name != "3.5", reason="the connector was not tried with it")


def test_tables_that_the_server_names_are_planned_and_a_second_name_is_a_gap(gcs: Gcs, tmp_path: Path) -> None:
    """Its metadata files are the server's own, written through Google's connector."""
    shop = Lake.of(gcs, tmp_path)
    with catalog_server(shop) as server:
        catalog = client_of(shop, server)
        where = iceberg(catalog, "db.seen", [OTHERS[0], PERSON], OTHERS[1:])
        iceberg(catalog, "db.twice", [PERSON])
        catalog.register_table("db.second", catalog.load_table("db.twice").metadata_location)
        assert where == f"{WAREHOUSE}/db/seen"
        shop.exports = ["wh/db/seen", "wh/db/twice"]
        plan = shop.plan(catalogs=catalogs_of(server), object_stores=shop.stored("wh"))[1]
    copy = next(copy for copy in plan["copies"] if copy["location"] == where)
    assert (copy["table"], copy["strategy"], copy["found"]["rows"]) == ("ice.db.seen", "delete_by_key", 1)
    steps = [step["action"] for step in plan["steps"] if step["copy"] == copy["id"]]
    assert steps[-4:] == ["iceberg_expire_snapshots", "iceberg_remove_orphans", "object_clear_versions", "verify_copy"]
    gap = next(gap for gap in plan["gaps"] if gap["waiver"] is None)
    assert gap["dataset"]["name"] == "wh/db/twice"
    assert "it has more than one name (ice.db.second, ice.db.twice)" in gap["reason"]
    plan = shop.plan(catalogs=catalogs_of(server), object_stores=shop.stored("wh"))[1]
    found = {gap["kind"] for gap in plan["gaps"] if gap["waiver"] is None}
    assert found == {"catalog_unreadable", "object_place"}, (
        "the server is away: nothing is erased, and nothing is clean"
    )


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.nightly
def test_an_estate_of_nine_tables_is_erased_though_the_run_is_killed(gcs: Gcs, tmp_path: Path) -> None:
    shop = Lake.of(gcs, tmp_path)
    gcs.page = 500
    with catalog_server(shop) as server:
        estate = Estate(shop, server)
        estate.make()
        before = estate.staying()
        code, plan = estate.plan()
        assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
        assert shop.approve() == 0
        shop.until = lambda: verified(shop) >= 20
        assert shop.apply()[0] < 0
        shop.until = lambda: False
        assert 0 < verified(shop) < len(plan["steps"])
        assert holding(shop, USER, MAIL), "the person is there still"
        code, result = shop.apply()
        assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
        assert result["bystander_rows_lost"] == 0
        assert holding(shop, USER, MAIL) == []
        assert estate.staying() == before
        assert set(gcs.states("shop")) == {"live"}
        assert leaks(Person((MAIL, USER)), [shop.base / "state"]) == []
        shop.put("wh/db/seen/data/later.parquet", parquet(PERSON))
        assert shop.verify() == ExitCode.RESIDUE


def verified(shop: Lake) -> int:
    """How many steps the journal has as verified."""
    return sum(file.read_text().count('"step_verified"') for file in shop.base.glob("state/runs/*/journal.jsonl"))
