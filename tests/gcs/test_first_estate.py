"""`init --discover` of Cloud Storage: places that somebody names, and those that a catalog leads to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.app.estate_draft.given_places import Places
from pii_tracer.app.estate_draft.places_in_stores import with_object_stores
from pii_tracer.app.estate_draft.store_sections import Reach
from pii_tracer.cli.main import run
from pii_tracer.config.estate_file import load_estate
from pii_tracer.model.errors import ExitCode
from pii_tracer.model.locations import ObjectLocation
from tests.app.estate_draft.corrections import corrected
from tests.app.planning.test_glue_text import described
from tests.gcs.shop import BUCKET, Shop
from tests.gcs.tables import Lake, delta
from tests.gcssupport import Gcs
from tests.gluesupport import glue_at, glue_door
from tests.hdfs.drafted import draft_of, planned, unlike
from tests.hdfs.shop import HELD, MAIL, OTHERS, PERSON, REFILLS, USER, csv, parquet
from tests.hivetextsupport import LAZY
from tests.hudistores import made_by_hand
from tests.storeservers import REGION, Store, signed
from tests.storeservers import strict_store as store

__all__ = ["signed", "store"]

HERE = {
    "tables.users": "shop.users",
    "# archives, backups": f"holds: {json.dumps([HELD])}\n# archives, backups",
}
"""What the owner of the table on this machine corrects."""


def test_each_folder_of_a_named_place_is_a_dataset(
    gcs: Gcs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = Lake.of(gcs, tmp_path)
    delta(shop, "lake/found", [OTHERS[0], PERSON], OTHERS[1:])
    for path, data in made_by_hand(PERSON, OTHERS[0]).items():
        shop.export("lake/trips", path, data)
    shop.export("lake/exports/calls", "day=1/a.csv", csv(PERSON, OTHERS[0]))
    shop.export("lake/exports/bills", "b.parquet", parquet(PERSON, OTHERS[1]))
    shop.put("lake/old/gone.csv", csv(OTHERS[0]))
    gcs.delete(BUCKET, "lake/old/gone.csv")
    shop.put("lake/README", b"read me")
    users = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
    tables = [
        {"name": name, "format": kind, "location": f"gs://{BUCKET}/lake/{folder}"}
        for name, kind, folder in (
            ("lake.found", "delta", "found"),
            ("lake.trips", "hudi", "trips"),
            ("exports.bills", "parquet", "exports/bills"),
            ("exports.calls", "csv", "exports/calls"),
        )
    ]
    catalogs = {"spark_catalog": {"type": "declared", "tables": [users, *tables]}}
    code, by_hand = shop.plan(catalogs=catalogs, object_stores=shop.stored(*(f"lake/{one}" for one in PLACES)))
    assert (code, [gap["id"] for gap in by_hand["gaps"]]) == (0, [REFILLS])
    words = ["--discover", str(shop.base / "tables"), "--discover", f"gs://{BUCKET}/lake/"]
    text = draft_of(shop, *words, "--endpoint", gcs.endpoint)
    [entry] = load_estate(shop.base / "drafted" / "pii-tracer.yaml").object_stores
    assert [place.prefix for place in entry.places] == [f"lake/{one}" for one in PLACES]
    said = capsys.readouterr()
    note = f"gs://{BUCKET}/lake has 1 object beside its folders, which no place contains"
    assert note in said.out
    assert f"# look at this: {note}" in text
    text, lines = corrected(text, HERE)
    assert lines <= 10
    code, plan = planned(shop, text)
    assert (code, unlike(plan, by_hand)) == (0, [])
    assert not [value for value in (USER, MAIL) if value in text + said.out + said.err]


PLACES = ("exports/bills", "exports/calls", "found", "old", "trips")


def test_a_bucket_that_a_catalog_leads_to_is_declared(
    gcs: Gcs, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop.of(gcs, tmp_path)
    shop.export("crm/members", "000000_0", f"{PERSON[0]}|{PERSON[1]}\n{OTHERS[0][0]}|{OTHERS[0][1]}\n".encode())
    shop.export("dropped", "a.csv", csv(OTHERS[0]))
    client = glue_at(store.endpoint_url)
    for database in client.get_databases()["DatabaseList"]:
        client.delete_database(Name=database["Name"])
    client.create_database(DatabaseInput={"Name": "prod"})
    columns = {"uid": "string", "mail": "string"}
    described(client, "members", f"gs://{BUCKET}/crm/members", LAZY, {"field.delim": "|"}, columns=columns)
    with glue_door(store.endpoint_url) as uri:
        monkeypatch.setenv("AWS_ENDPOINT_URL_GLUE", uri)
        users = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
        dropped = {"name": "shop.dropped", "format": "csv", "location": f"gs://{BUCKET}/dropped"}
        catalogs: dict[str, Any] = {"spark_catalog": {"type": "declared", "tables": [users, dropped]}}
        catalogs["glue"] = {"type": "glue", "region": REGION}
        code, by_hand = shop.plan(catalogs=catalogs)
        assert (code, [gap["id"] for gap in by_hand["gaps"]]) == (0, [REFILLS])
        words = ["--discover", str(shop.base / "tables"), "--discover", f"glue:{REGION}", "--endpoint", gcs.endpoint]
        text, lines = corrected(draft_of(shop, *words), HERE)
        assert lines <= 10
        code, plan = planned(shop, text)
    assert (code, unlike(plan, by_hand)) == (0, [])


def test_an_empty_bucket_that_a_catalog_leads_to_stops_nothing(gcs: Gcs) -> None:
    gcs.bucket(BUCKET)
    place = ObjectLocation(store=f"gs://{BUCKET}", key="crm/users")
    given = Places(reach=Reach(endpoint=gcs.endpoint))
    places, [note] = with_object_stores("shop", given, [place], [], lambda _: None)
    assert places.object_stores[place.store]["places"] == [{"prefix": "crm/users"}]
    assert "there is no object under this folder" in note


def test_a_folder_of_a_person_names_no_place(gcs: Gcs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shop = Lake.of(gcs, tmp_path)
    shop.export(f"lake/users/{MAIL}", "a.csv", csv(PERSON))
    shop.export(f"lake/users/{USER}/docs", "a.csv", csv(PERSON))
    shop.export("lake/calls", "a.csv", csv(PERSON, OTHERS[0]))
    shop.write()
    named = ["--discover", str(shop.base / "tables"), "--discover", f"gs://{BUCKET}/lake/"]
    text = draft_of(shop, *named, "--endpoint", gcs.endpoint)
    [entry] = load_estate(shop.base / "drafted" / "pii-tracer.yaml").object_stores
    assert [place.prefix for place in entry.places] == ["lake/calls", "lake/users"]
    assert f"# look at this: names of folders in gs://{BUCKET}/lake/users look like" in text
    said = capsys.readouterr()
    assert not [value for value in (USER, MAIL) if value in text + said.out + said.err]


def test_a_place_without_objects_is_refused(gcs: Gcs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gcs.bucket(BUCKET)
    words = ["init", str(tmp_path / "d"), "--state", str(tmp_path / "d" / "state"), "--endpoint", gcs.endpoint]
    assert run([*words, "--discover", f"gs://{BUCKET}/nowhere"]) == ExitCode.USAGE
    assert "there is no object under this folder" in capsys.readouterr().err
    assert run([*words, "--discover", "gs://no-such-bucket/lake"]) != ExitCode.DONE
    assert "no-such-bucket" in capsys.readouterr().err
    assert not (tmp_path / "d").exists()
