"""`init --discover` of Azure Storage: a container in either spelling, and one that Unity Catalog leads to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pii_tracer.app.settings import Settings
from pii_tracer.app.unplanned_places import unseen
from pii_tracer.config.estate_file import Estate, load_estate
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.scan.value_forms import build_patterns
from tests.app.estate_draft.corrections import corrected
from tests.azure.blob_service import BlobService
from tests.azure.shared_key import ACCOUNT, KEY
from tests.azure.shop import CONTAINER, STORE, Shop
from tests.gcs.test_first_estate import HERE
from tests.hdfs.drafted import draft_of, planned, unlike
from tests.hdfs.shop import MAIL, OTHERS, PERSON, REFILLS, csv, parquet
from tests.unitysupport import TOKEN, serving


@pytest.fixture
def shop(azure: BlobService, tmp_path: Path) -> Shop:
    shop = Shop.on(azure, tmp_path)
    shop.export("exports/calls", "a.csv", csv(PERSON, OTHERS[0]))
    shop.export("exports/bills", "b.parquet", parquet(PERSON, OTHERS[1]))
    return shop


@pytest.mark.parametrize("place", [STORE, f"https://{ACCOUNT}.blob.core.windows.net/{CONTAINER}"])
def test_a_named_container(shop: Shop, azure: BlobService, place: str) -> None:
    tables = [
        {"name": "shop.users", "format": "parquet", "location": "tables/users"},
        {"name": "exports.calls", "format": "csv", "location": f"{STORE}/exports/calls"},
        {"name": "exports.bills", "format": "parquet", "location": f"{STORE}/exports/bills"},
    ]
    code, by_hand = shop.plan(catalogs={"spark_catalog": {"type": "declared", "tables": tables}})
    assert (code, [gap["id"] for gap in by_hand["gaps"]]) == (0, [REFILLS])
    words = ["--discover", str(shop.base / "tables"), "--discover", f"{place}/exports", "--endpoint", azure.uri]
    text, lines = corrected(draft_of(shop, *words), HERE)
    assert lines <= 10
    assert KEY not in text
    code, plan = planned(shop, text)
    assert (code, unlike(plan, by_hand)) == (0, [])


def test_volumes_and_external_locations_are_cut_into_their_folders(
    shop: Shop, azure: BlobService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A location is the whole container, as usual. What comes to lie beside the places is told."""
    monkeypatch.setenv("PII_TRACER_CATALOG_UNITY_TOKEN", TOKEN)
    shop.put("old/bills/2019.csv", csv(PERSON))
    shop.put("old/calls/2019.csv", csv(PERSON))
    shop.write()
    with serving() as server:
        server.location("lake", STORE)
        server.volume("main.shop.old", f"{STORE}/old")
        server.volume("main.shop.empty", f"{STORE}/empty")
        draft_of(shop, "--discover", server.uri, "--endpoint", azure.uri)
        drafted = load_estate(shop.base / "drafted" / "pii-tracer.yaml")
        [entry] = drafted.object_stores
        places = ["exports/bills", "exports/calls", "old/bills", "old/calls", "empty"]
        assert [place.prefix for place in entry.places] == places
        assert outside(drafted, shop.base) == []
        shop.put("old/letters/2019.csv", csv(PERSON))
        told = outside(drafted, shop.base)
        shop.put("old/letters/2020.csv", csv(PERSON))
        more = outside(drafted, shop.base)
    assert [gap.evidence for gap in told] == [STORE, f"{STORE}/old"]
    assert "1 object of the volume main.shop.old is in no place of `object_stores`" in told[1].reason
    assert [one.listed for one in told] != [one.listed for one in more], "a waiver is of what was there"


def test_objects_that_come_into_no_place_after_planning_are_told(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waived the gap did not know them."""
    monkeypatch.setenv("PII_TRACER_CATALOG_UNITY_TOKEN", TOKEN)
    settings = Settings(shop.base / "pii-tracer.yaml", shop.base / "state")
    shop.put("letters/2019.csv", csv(OTHERS[0]))
    key = KeySet(name="mail", origin="mail", weak=False, values=(("s", MAIL),))

    def since(plan: ErasurePlan) -> list[str]:
        found = unseen(plan, discover(settings.estate(), shop.base), build_patterns((key,)), settings.key().marks)
        return [reason for verdict in found for reason in verdict.unverified]

    with serving() as server:
        server.location("lake", STORE)
        server.schema("main.shop")
        table = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
        declared = {"type": "declared", "tables": [table]}
        _, made = shop.plan(catalogs={"spark_catalog": declared, "unity": {"type": "unity", "uri": server.uri}})
        plan = ErasurePlan.model_validate(made)
        assert "2019.csv" not in json.dumps(made)
        assert since(plan) == []
        shop.drop("letters/2019.csv")
        shop.put("letters/2020.csv", csv(PERSON))
        [told] = since(plan)
    assert told.startswith("outside_roots: 1 object of the external location lake is in no place")


def outside(estate: Estate, base: Path) -> list[InventoryGap]:
    return [gap for gap in discover(estate, base).gaps if gap.kind is GapKind.OUTSIDE_ROOTS]


def test_a_container_that_unity_catalog_leads_to(
    shop: Shop, azure: BlobService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PII_TRACER_CATALOG_UNITY_TOKEN", TOKEN)
    shop.write()
    with serving() as server:
        server.schema("main.shop")
        server.table("main.shop.bills", f"{STORE}/exports/bills", "PARQUET")
        words = ["--discover", server.uri, "--endpoint", azure.uri]
        draft_of(shop, *words)
    assert TOKEN not in (shop.base / "drafted" / "pii-tracer.yaml").read_text()
    [entry] = load_estate(shop.base / "drafted" / "pii-tracer.yaml").object_stores
    assert (entry.store, [place.prefix for place in entry.places]) == (STORE, ["exports/bills", "exports/calls"])
