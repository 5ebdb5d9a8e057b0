"""`init --discover` of catalogs: their tables have names, and what the names lead to is looked into."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from pii_tracer.cli.main import run as cli
from pii_tracer.config.catalogs import CatalogType
from pii_tracer.config.estate_file import load_estate
from pii_tracer.model.errors import ExitCode
from tests.app.planning.test_glue import lake, orders, store, visits
from tests.app.planning.test_remote import MAIL, PERSON
from tests.storeservers import REGION, Store, signed

__all__ = ["signed", "store"]


def test_glue(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with lake(store, tmp_path / "shop") as (shop, client):
        orders(shop, client)
        visits(shop, client)
        # as users of another Glue than AWS' name it
        door = shop.catalogs.split("'")[1]
        monkeypatch.setenv("AWS_ENDPOINT_URL_GLUE", door)
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", store.endpoint_url)
        base = tmp_path / "mine"
        assert cli(["init", str(base), "--state", str(base / "state"), "--discover", f"glue:{REGION}"]) == ExitCode.DONE
    estate = load_estate(base / "pii-tracer.yaml")
    assert (estate.catalogs["glue"].type, estate.catalogs["glue"].region) == (CatalogType.GLUE, REGION)
    assert estate.catalogs["glue"].endpoint_url == door, "a shell without the variable would ask AWS"
    assert estate.s3
    assert estate.s3.region == REGION
    assert estate.catalogs["spark_catalog"].tables == (), "Glue names them"
    [subject] = estate.subjects
    assert {subject.source, *(table.table for table in subject.tables)} == {"prod.orders", "prod.visits"}
    assert (subject.key, [i.category for i in subject.identifiers]) == ("uid", ["email"])
    text = (base / "pii-tracer.yaml").read_text()
    assert str(PERSON) not in text
    assert MAIL not in text


def test_a_catalog_in_a_database(tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    catalog = SqlCatalog("core", uri=f"sqlite:///{tmp_path / 'core.db'}", warehouse=f"file://{warehouse}")
    catalog.create_namespace("crm")
    rows = pa.table({"member_id": [1, 2], "email": ["a@x.example", "b@x.example"]})
    catalog.create_table("crm.members", rows.schema).append(rows)
    words = ["--discover", f"sqlite:///{tmp_path / 'core.db'}", "--warehouse", str(warehouse)]
    assert cli(["init", str(tmp_path), "--state", str(tmp_path / "state"), *words]) == ExitCode.DONE
    estate = load_estate(tmp_path / "pii-tracer.yaml")
    assert estate.roots == ("warehouse",)
    [subject] = estate.subjects
    assert (subject.name, subject.source, subject.key) == ("member", "core.crm.members", "member_id")


def test_where_a_catalogs_tables_lie_becomes_the_roots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody named a folder: the catalog does. The folder around several databases is the root, none above it."""
    catalog = SqlCatalog("core", uri=f"sqlite:///{tmp_path / 'core.db'}", warehouse=f"file://{tmp_path / 'lake/house'}")
    for name in ("crm", "ops"):
        rows = pa.table({"member_id": [1, 2], "email": ["a@x.example", "b@x.example"]})
        catalog.create_namespace(name)
        catalog.create_table(f"{name}.members", rows.schema).append(rows)
    base = tmp_path / "mine"
    words = ["--discover", f"sqlite:///{tmp_path / 'core.db'}", "--warehouse", f"file://{tmp_path / 'lake/house'}"]
    assert cli(["init", str(base), "--state", str(base / "state"), *words]) == ExitCode.DONE
    said = capsys.readouterr().out
    assert "found 2 tables" in said
    assert "outside_roots" not in said
    assert load_estate(base / "pii-tracer.yaml").roots == (str(tmp_path / "lake/house"),)
    told = f"# guess: where the catalogs' tables lie ({tmp_path / 'lake/house'})"
    assert told in (base / "pii-tracer.yaml").read_text()
    assert f"are there: {tmp_path / 'lake/house'}\n" in said
