"""`init --discover` of a lake as companies have them: keys in structs and lists, UUIDs, CSV of other kinds, clones of
developers, a catalog that jobs call by its own name. The plan of the draft with its comments taken in is complete.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

from pii_tracer.app import Settings, plan
from pii_tracer.cli.main import run as cli
from pii_tracer.config.catalogs import CatalogType
from pii_tracer.config.estate_file import Estate, load_estate
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.model.errors import ExitCode
from tests.cli.small import request

UUIDS = [f"0b8a1abc-1a69-46c7-8da4-f9fc3c6da5d{n}" for n in range(4)]
MAILS = [f"zq.asha{n}@north.example" for n in range(4)]
STRUCT = [{"email": mail, "phone": f"+49 30 555000{n}"} for n, mail in enumerate(MAILS)]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    lake = tmp_path / "lake"
    write_deltalake(lake / "crm/customers", pa.table({"customer_uuid": UUIDS, "contact": STRUCT}))
    write_deltalake(lake / "dev/customers", pa.table({"customer_uuid": UUIDS[:2], "email": MAILS[:2]}))
    buyers = [{"id": UUIDS[0], "segment": "a"}, {"id": UUIDS[3], "segment": "b"}]
    write_deltalake(lake / "shop/orders", pa.table({"order_no": ["B-1", "B-2"], "customer": buyers}))
    write_deltalake(lake / "shop/carts", pa.table({"cart": [1, 2], "shared_with": [UUIDS[:2], UUIDS[1:]]}))
    for folder in ("exports/letters", "exports/parcels", "exports/notes/year=2026", "events/clicks/day=2026-11-01"):
        (lake / folder).mkdir(parents=True)
    letters = "E-Mail;Straße;Umsatz\n" + "".join(f"{mail};Weg {n}, links;{n},50\n" for n, mail in enumerate(MAILS))
    (lake / "exports/letters/2026-11.csv").write_bytes(letters.encode("windows-1252"))
    notes = "mail,note\n" + "".join(f"{mail},Grüße {n}\n" for n, mail in enumerate(MAILS))
    (lake / "exports/notes/year=2026/a.csv").write_bytes(notes.encode("windows-1252"))
    (lake / "exports/parcels/part-0.csv").write_text(
        "".join(f"B-{n}|{mail}|Ulm, Ost\n" for n, mail in enumerate(MAILS))
    )
    clicks = ({"user": {"id": UUIDS[n], "email": MAILS[n]}, "page": "/x"} for n in range(4))
    (lake / "events/clicks/day=2026-11-01/e.json").write_text("".join(json.dumps(click) + "\n" for click in clicks))
    (tmp_path / "wh").mkdir()
    catalog = SqlCatalog("prod", uri=f"sqlite:///{tmp_path / 'core.db'}", warehouse=f"file://{tmp_path / 'wh'}")
    catalog.create_namespace("sales")
    rows = pa.table({"payment_id": [100, 101], "payer": [UUIDS[0], UUIDS[2]]})
    catalog.create_table("sales.payments", rows.schema).append(rows)
    return tmp_path


def made(base: Path, *words: str) -> Estate:
    assert cli(["init", str(base), "--state", str(base / "state"), *words]) == ExitCode.DONE
    return load_estate(base / "pii-tracer.yaml")


def test_a_shop_is_drafted_and_its_plan_is_complete(
    lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is named as files are in a shell: from the folder in which the command is typed."""
    monkeypatch.chdir(lake)
    (lake / "mine").mkdir()
    words = ["--discover", "lake", "--discover", "sqlite:///core.db", "--warehouse", "wh"]
    estate = made(Path("mine"), *words)
    assert estate.catalogs["prod"].type == CatalogType.ICEBERG_SQL, "as its database calls it"
    assert estate.dev_roots == (str(lake / "lake/dev"),)
    file = lake / "mine/pii-tracer.yaml"
    text = file.read_text()
    [subject] = estate.subjects
    assert (subject.source, subject.key) == ("crm.customers", "customer_uuid"), "a developer's copy knows nobody first"
    told = {identifier.column: identifier.category for identifier in subject.identifiers}
    assert told == {"contact.email": "email", "contact.phone": "phone"}
    assert text.count("# guess: options and columns, by the first lines of its files") == 2
    encodings = {t.name: t.encoding or t.options.get("encoding") for t in estate.catalogs["spark_catalog"].tables}
    assert (encodings["exports.letters"], encodings["exports.notes"]) == ("windows-1252", "windows-1252")
    said = capsys.readouterr()
    for value in (UUIDS[0], MAILS[0], "555000", "Weg"):
        assert value not in text + said.out + said.err
    file.write_text(text.replace("      # - {table", "      - {table"))
    further = {(table.table, table.key, table.of) for table in load_estate(file).subjects[0].tables}
    assert further == {
        ("dev.customers", "customer_uuid", None),
        ("events.clicks", "user.id", None),
        ("exports.letters", "E-Mail", "contact.email"),
        ("exports.notes", "mail", "contact.email"),
        ("exports.parcels", "_c1", "contact.email"),
        ("prod.sales.payments", "payer", None),
        ("shop.carts", "shared_with.element", None),
        ("shop.orders", "customer.id", None),
    }
    (lake / "request.yaml").write_text(request("customer", UUIDS[0]))
    found = plan(Settings(file, lake / "mine/state"), [lake / "request.yaml"]).plan
    assert found.complete, [gap.reason for gap in found.gaps]
    assert {copy.table for copy in found.copies} == {"crm.customers", *(table for table, *_ in further)}


def test_a_catalog_has_the_name_that_jobs_have_for_it(
    lake: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nothing else names it: here, folders that look like a warehouse. Not if its credentials would be lost."""
    house = lake / "house"
    house.mkdir()
    catalog = SqlCatalog("x", uri="sqlite:///:memory:", warehouse=f"file://{house}")
    catalog.create_namespace("crm")
    rows = pa.table({"member_id": [710001, 710002], "email": MAILS[:2]})
    location = f"file://{house}/crm/members"
    table = catalog.create_table("crm.members", rows.schema, location=location)
    table.append(rows)
    newest = max((house / "crm/members/metadata").glob("*.metadata.json"))
    newest.rename(newest.with_name("v1.metadata.json"))
    (newest.parent / "version-hint.text").write_text("1")
    (lake / "jobs.sql").write_text("INSERT INTO shop.mail SELECT email FROM big_lake.crm.members;\n")
    words = ["--discover", str(house), "--lineage", str(lake / "jobs.sql")]
    estate = made(lake / "one", *words)
    assert estate.catalogs["big_lake"].type == CatalogType.ICEBERG_HADOOP
    assert "the catalog house is big_lake here" in capsys.readouterr().out
    assert estate.subjects[0].source == "big_lake.crm.members"
    monkeypatch.setitem(os.environ, "PII_TRACER_CATALOG_HOUSE_TOKEN", "t0ken")
    capsys.readouterr()
    assert made(lake / "two", *words).subjects[0].source == "house.crm.members"
    said = capsys.readouterr().out
    assert "set the variables PII_TRACER_CATALOG_BIG_LAKE_… as you set PII_TRACER_CATALOG_HOUSE_…" in said


def test_a_catalog_that_does_not_answer_is_refused(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--discover", f"sqlite:///{lake / 'gone.db'}", "--warehouse", str(lake / "wh")]
    assert cli(["init", str(lake / "one"), "--state", str(lake / "one/state"), *words]) == ExitCode.USAGE
    assert "the catalog's database cannot be read" in capsys.readouterr().err
    assert not (lake / "one").exists()


def test_tables_in_stores_can_be_those_of_development(lake: Path) -> None:
    estate = made(lake / "one", "--discover", str(lake / "lake"))
    roots = ("s3a://b/dev", "hdfs://nn:8020/x/dev/", "https://shop.blob.core.windows.net/lake/dev", "gs://b/dev")
    paths = EstatePaths(estate.model_copy(update={"dev_roots": roots}), lake / "one")
    inside = ("s3://b/dev/t", "hdfs://nn:8020/x/dev", "abfss://lake@shop.dfs.core.windows.net/dev/t", "gs://b/dev/a/t")
    assert [paths.is_dev(place) for place in inside] == [True] * 4
    assert [paths.is_dev(f"{place}2") for place in ("s3://b/dev", "hdfs://nn:8020/x/dev", "gs://b/dev")] == [False] * 3


@pytest.mark.parametrize(
    "files",
    [
        {
            "a.csv": "mail,note\na@x.example,Grüße\n".encode("windows-1252"),
            "b.csv": "mail,note\na@x.example,Grüße\n".encode(),
        },
        {"a.csv": b"mail,note\na@x.example,Gr\x81\n"},
        {"a.csv": "mail,note\na@x.example,Анна\n".encode("windows-1251")},
        {"a.csv": b"mail,note\na@x.example,\xfc\x01\n"},
        {"a.csv": "mail,note\na@x.example,Grüße\n".encode("windows-1252"), "b.json": b"{}\n"},
    ],
)
def test_no_encoding_is_guessed_that_not_every_file_can_have(tmp_path: Path, files: dict[str, bytes]) -> None:
    (tmp_path / "lake/notes").mkdir(parents=True)
    for name, data in files.items():
        (tmp_path / "lake/notes" / name).write_bytes(data)
    estate = made(tmp_path / "one", "--discover", str(tmp_path / "lake"))
    assert [table.encoding for table in estate.catalogs["spark_catalog"].tables if table.encoding] == []
    told = "1 folder of CSV that is not UTF-8" in (tmp_path / "one/pii-tracer.yaml").read_text()
    assert told is any("Анна".encode("windows-1251") in data for data in files.values())


def test_no_name_of_a_field_that_may_be_somebodys_value_is_drafted(tmp_path: Path) -> None:
    """JSON whose objects are called by persons: their mails and names stand where names of columns do."""
    lake = tmp_path / "lake"
    people = {"customer_uuid": UUIDS, "phone": [row["phone"] for row in STRUCT], "user_id": ["zqasha", "b", "c", "d"]}
    write_deltalake(lake / "crm/customers", pa.table(people | {"email": MAILS}))
    objects = {"prefs": {MAILS[0]: {"uuid": UUIDS[0]}}, "lists": [{MAILS[1]: UUIDS[1]}], "nicks": {"Zqasha": UUIDS[2]}}
    for folder, there in objects.items():
        (lake / "events" / folder).mkdir(parents=True)
        (lake / "events" / folder / "e.json").write_text(json.dumps({"n": 1, "by": there}) + "\n")
    made(tmp_path, "--discover", str(lake))
    text = (tmp_path / "pii-tracer.yaml").read_text(encoding="utf-8")
    assert not [value for value in (*MAILS, *UUIDS, "zqasha") if value in text.casefold()]
    assert "3 columns or fields of files whose names look like values of persons" in " ".join(text.split())
