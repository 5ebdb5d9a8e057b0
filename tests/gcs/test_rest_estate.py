"""An estate in Cloud Storage under Iceberg's own REST server: tables of each kind, clones, a view, an archive, what the
bucket keeps, people like the person. Its estate file is drafted; it is planned, erased, killed, resumed and verified.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from executors.engine.version_profiles import installed_profile
from pii_tracer.model.errors import ExitCode
from tests.e2e.stores.clouds import ALL, HER, CloudEstate, without_her
from tests.gcs.rest_catalog import catalog_server, catalogs_of, client_of
from tests.gcs.shop import BUCKET
from tests.gcs.tables import Lake
from tests.gcssupport import Gcs, state_of
from tests.icebergstores import iceberg, view
from tests.leaks import leaks

pytestmark = pytest.mark.skipif(installed_profile().name != "3.5", reason="the connector was not tried with it")


class Estate(CloudEstate):
    """The REST catalog has the table of the persons, and a view."""

    def discovered(self) -> list[str]:
        return ["--discover", self.server.uri, "--discover", self.uri, "--endpoint", self.shop.gcs.endpoint]

    def spark_estate(self) -> None:
        self.shop.write(catalogs=catalogs_of(self.server), object_stores=self.shop.stored("wh", "lake"))

    def drop(self, path: str) -> None:
        self.shop.gcs.delete(BUCKET, path)

    def archived(self, path: str, data: bytes) -> None:
        self.shop.put(path, data, storageClass="ARCHIVE")

    def states(self) -> Iterator[tuple[str, str, bytes]]:
        for one in self.shop.gcs.there(self.shop.gcs.buckets[BUCKET]):
            yield one["name"], state_of(one), one["data"]


@pytest.fixture
def estate(gcs: Gcs, tmp_path: Path) -> Iterator[Estate]:
    shop = Lake.of(gcs, tmp_path)
    gcs.page = 500
    with catalog_server(shop) as server:
        catalog = client_of(shop, server)
        made = Estate(shop, f"gs://{BUCKET}", server, catalog, "lake", "rest.db.users", "rest.db.named")
        iceberg(catalog, "db.users", ALL)
        made.iceberg.append("users")
        view(catalog, "db.named", "SELECT uid, mail, name FROM seen", ALL.schema)
        yield made


def test_what_the_drafted_file_lacks_is_told_and_what_it_says_then_is_enough(estate: Estate) -> None:
    """A folder that somebody copied by hand is found by what is in it."""
    estate.make(by_spark=False)
    text = estate.drafted()
    code, plan = estate.plan(text)
    told = {(gap["kind"], gap["evidence"].rpartition("/")[2]) for gap in plan["gaps"]}
    assert code == ExitCode.INCOMPLETE
    assert told == {("object_place", "lines"), ("object_place", "visits"), ("unexpected_copy", "found: user.uid")}
    estate.declare_the_copy()
    code, plan = estate.plan(estate.agreed(text))
    assert (code, [gap["reason"] for gap in plan["gaps"]]) == (ExitCode.DONE, [])
    names = {line.split()[2] for line in estate.jobs.splitlines()}
    assert {copy["table"] for copy in plan["copies"]} == names | {estate.users}
    assert {"lake/strangers", "wh/db/strangers"} <= {item["dataset"]["name"] for item in plan["examined"]}


@pytest.mark.spark
@pytest.mark.slow
def test_an_estate_of_twenty_one_tables_is_erased_though_the_run_is_killed(estate: Estate, tmp_path: Path) -> None:
    """What was deleted can be restored for a time: the run waits."""
    gcs = estate.shop.gcs
    estate.make(by_spark=True)
    estate.declare_the_copy()
    gcs.buckets[BUCKET].soft_delete = 25
    code, plan = estate.plan(estate.agreed(estate.drafted()))
    assert (code, plan["gaps"]) == (ExitCode.DONE, [])
    shop, before = estate.owner, estate.rows()
    assert estate.left(tmp_path / "before") != []
    code, result = estate.erased_though_killed()
    if code == ExitCode.WAITING:  # else its time was over before the steps looked
        assert (result["state"], result["residue"]) == ("waiting", [])
        ends = time.monotonic() + 30
        while set(gcs.states(BUCKET)) != {"live"}:
            assert time.monotonic() < ends, "something is noncurrent"
            time.sleep(0.1)
        code, result = shop.apply()
    assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
    assert result["bystander_rows_lost"] == 0
    after = estate.rows()
    assert after == without_her(before)
    assert after != before
    assert estate.left(tmp_path / "after") == []
    assert {state for _, state, _ in estate.states()} == {"live"}
    assert shop.verify() == ExitCode.DONE
    assert leaks(HER, [shop.base / "state", shop.base / "apart.log"]) == []
