"""Iceberg tables in Cloud Storage that a REST catalog names: Iceberg's own server."""

from __future__ import annotations

from pathlib import Path

import pytest

from executors.engine.version_profiles import installed_profile
from tests.gcs.rest_catalog import WAREHOUSE, catalog_server, catalogs_of, client_of
from tests.gcs.tables import Lake
from tests.gcssupport import Gcs
from tests.hdfs.shop import OTHERS, PERSON
from tests.icebergstores import iceberg

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
