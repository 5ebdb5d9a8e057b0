"""An estate in Azure Storage under a stand-in of Unity Catalog and Iceberg's own REST server: tables of each kind, clones, a
view, an archive, what the account keeps, people like the person. Its estate file is drafted; it is planned, erased,
killed, resumed and verified.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from executors.engine.version_profiles import installed_profile
from pii_tracer.model.errors import ExitCode
from tests.azure.blob_service import BlobService
from tests.azure.blob_state import Account
from tests.azure.dfs_service import DfsService
from tests.azure.lake import Lake
from tests.azure.rest_catalog import catalog_server, client_of
from tests.azure.shared_key import ACCOUNT, KEY
from tests.azure.shop import STORE
from tests.e2e.stores.clouds import ALL, BARE, HER, HERS, CloudEstate, without_her
from tests.e2e.stores.lakes import as_bytes
from tests.gcs.tables import delta
from tests.leaks import Person, leaks
from tests.unitysupport import TOKEN, Unity, serving

pytestmark = pytest.mark.skipif(installed_profile().name != "3.5", reason="the driver was not tried with it")

ACCOUNTS: dict[str, dict[str, Any]] = {
    "flat": {"versioning": True},
    "data lake": {"hierarchical": True, "soft_delete_days": 7},
}
SEEN = "gap-unknown_table-catalog-unity.main.lake.seen"
"""Unity Catalog's interface does not have the metadata file of its Iceberg table; the REST catalog names the same one."""


@dataclass
class Estate(CloudEstate):
    """Unity Catalog has the table of the persons, and a view. It names all tables but those of Iceberg and Hudi."""

    unity: Unity = field(default_factory=Unity)

    def discovered(self) -> list[str]:
        shop = self.azure
        assert shop.service is not None
        places = [word for place in (self.unity.uri, self.server.uri, self.uri) for word in ("--discover", place)]
        return [*places, "--endpoint", shop.service.uri]

    @property
    def azure(self) -> Lake:
        assert isinstance(self.shop, Lake)
        return self.shop

    @property
    def account(self) -> Account:
        assert self.azure.service is not None
        return self.azure.service.account

    @property
    def waits(self) -> bool:
        """Whether what is deleted stays for a time; only then does nothing else stay."""
        return self.account.hierarchical

    def reached(self, text: str) -> str:
        """Its other endpoint, which in Azure follows from the first."""
        assert self.azure.dfs is not None
        return text.replace("    places:", f"    dfs_endpoint: http://{self.azure.dfs.address}/{ACCOUNT}\n    places:")

    def spark(self) -> dict[str, Any]:
        return self.azure.spark()

    def spark_estate(self) -> None:
        rest = {"type": "iceberg-rest", "uri": self.server.uri}
        self.shop.write(catalogs={"ice": rest}, object_stores=self.shop.stored("wh", "lake"))

    def waivers(self) -> dict[str, Any]:
        return {SEEN: {"who": "Ann", "why": "the REST catalog has it", "until": "2099-01-01T00:00:00Z"}}

    def drop(self, path: str) -> None:
        self.azure.drop(path)

    def archived(self, path: str, data: bytes) -> None:
        self.shop.put(path, data, tier="Cold")

    def states(self) -> Iterator[tuple[str, str, bytes]]:
        blobs = self.azure.container.blobs
        for key, state in self.azure.states():
            there = key in blobs and blobs[key].current is state
            if not (there and state.folder):
                yield key, "live" if there else "past", state.data

    def of_strangers(self) -> list[tuple[str, str, bytes]]:
        """What the account keeps of the tables of people like the person. Where it keeps versions, a file that is
        created and filled afterwards has an empty one.
        """
        return [one for one in self.states() if "/strangers/" in one[0]]

    def make(self, *, by_spark: bool) -> None:
        """A file of a Delta table's log has a snapshot."""
        delta(self.shop, "lake/users", ALL)
        super().make(by_spark=by_spark)
        log = f"lake/orders/_delta_log/{0:020}.json"
        self.azure.snapshot(log)
        self.shop.put(log, self.shop.read(log))
        self.delta.append("users")
        named = [{"name": name, "type_text": "string"} for name in ("uid", "mail", "name")]
        day = {"name": "day", "type_text": "string", "partition_index": 0}
        for name in (*self.delta, *self.marked):
            kind = "MANAGED" if name == "users" else "EXTERNAL"
            columns = [*named, day] if name == "daily" else named[:2] if name == "marked" else named
            self.unity.table(f"main.lake.{name}", f"{STORE}/lake/{name}", table_type=kind, columns=columns)
        for name, kind in {**BARE, "strangers": "parquet"}.items():
            columns = [named[0], named[2], day] if name == "visits" else named
            options = {"option.header": "true"} if kind == "csv" else {}
            place = f"{STORE}/lake/{name}"
            self.unity.table(f"main.lake.{name}", place, kind.upper(), columns=columns, properties=options)
        self.unity.view("main.lake.named", "SELECT uid, mail, name FROM orders", columns=named)
        self.unity.table("main.lake.seen", f"{STORE}/wh/db/seen", "ICEBERG", columns=named)
        self.unity.volume("main.lake.old", f"{STORE}/archive")
        self.unity.location("all", STORE)


@pytest.fixture
def estate(
    request: pytest.FixtureRequest,
    azure: BlobService,
    dfs: DfsService,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Estate]:
    monkeypatch.setenv("PII_TRACER_CATALOG_UNITY_TOKEN", TOKEN)
    shop = Lake.of_account(azure, dfs, tmp_path, **ACCOUNTS[request.param], page=500)
    with catalog_server(shop) as server, serving() as unity:
        catalog = client_of(shop, server)
        yield Estate(shop, STORE, server, catalog, "main.lake", "main.lake.users", "main.lake.named", unity=unity)


@pytest.mark.parametrize("estate", ["flat"], indirect=True)
def test_what_the_drafted_file_lacks_is_told_and_what_it_says_then_is_enough(estate: Estate) -> None:
    """A folder that somebody copied by hand is found by what is in it."""
    estate.make(by_spark=False)
    text = estate.drafted()
    code, plan = estate.plan(text)
    told = {(gap["kind"], gap["evidence"].rpartition("/")[2]) for gap in plan["gaps"] if gap["waiver"] is None}
    assert code == ExitCode.INCOMPLETE
    assert told == {("object_place", "lines"), ("object_place", "visits"), ("unexpected_copy", "found: user.uid")}
    estate.declare_the_copy()
    code, plan = estate.plan(estate.agreed(text))
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (ExitCode.DONE, [SEEN])
    names = {line.split()[2] for line in estate.jobs.splitlines()}
    assert {copy["table"] for copy in plan["copies"]} == names | {estate.users}
    assert {"lake/strangers", "wh/db/strangers"} <= {item["dataset"]["name"] for item in plan["examined"]}


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("estate", list(ACCOUNTS), indirect=True)
def test_an_estate_of_twenty_one_tables_is_erased_though_the_run_is_killed(estate: Estate, tmp_path: Path) -> None:
    """In a data lake, what engines delete is soft-deleted, and waited for."""
    azure = estate.azure
    estate.make(by_spark=True)
    estate.declare_the_copy()
    code, plan = estate.plan(estate.agreed(estate.drafted()))
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (ExitCode.DONE, [SEEN])
    shop, before, strangers = estate.owner, estate.rows(), estate.of_strangers()
    assert estate.left(tmp_path / "before") != []
    code, result = estate.erased_though_killed()
    if estate.waits:
        assert (code, result["state"], result["residue"]) == (ExitCode.WAITING, "waiting", []), result
        assert estate.left(tmp_path / "waiting") != [], "anybody with the right undeletes it"
        estate.account.days = 8
    else:
        assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
    assert result["bystander_rows_lost"] == 0
    assert shop.verify() == ExitCode.DONE
    after = estate.rows()
    assert after == without_her(before)
    assert after != before
    assert estate.left(tmp_path / "after") == []
    assert estate.of_strangers() == strangers
    past = [one for one in strangers if one[1] == "past"]
    assert [one for one in estate.states() if one[1] == "past"] == past
    assert azure.kept() == [data for _, _, data in past], "no blocks that nobody committed"
    assert leaks(HER, [shop.base / "state", shop.base / "apart.log"]) == []
    assert leaks(Person((KEY, TOKEN)), [shop.base]) == []
    shop.put("lake/bills/later.orc", as_bytes("orc", HERS))
    assert shop.verify() == ExitCode.RESIDUE
