from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer

from pii_tracer.config.lineage import GlueDatabase, LineageSources
from pii_tracer.lineage.harvest import Given, harvest_all
from pii_tracer.lineage.sources.declared_schemas import glue_tables, schema_files
from pii_tracer.model.datasets import Column, DatasetId
from pii_tracer.model.errors import LineageError

SQL = "INSERT INTO shop.copy SELECT * FROM shop.orders"


def harvested(base: Path, **given: object) -> set[tuple[str, str]]:
    (base / "a.sql").write_text(SQL)
    graph = harvest_all(LineageSources(sql=("a.sql",)), Given(base, **given)).graph  # type: ignore[arg-type]
    return {(e.source.column, e.target.column) for d in graph.datasets() for e in graph.edges_into(d)}


def test_a_schema_file_tells_what_a_star_stands_for(tmp_path: Path):
    assert harvested(tmp_path) == set()
    told = {"shop.orders": ["id", {"name": "mail", "type": "string"}], "shop.copy": ["order_id", "contact"]}
    (tmp_path / "s.json").write_text(json.dumps(told))
    declared = schema_files(["s.json"], tmp_path)
    assert declared["shop.orders"] == (Column(name="id", type=""), Column(name="mail", type="string"))
    assert harvested(tmp_path, declared=declared) == {("id", "order_id"), ("mail", "contact")}


def test_a_catalog_goes_before_a_schema_file(tmp_path: Path):
    lake = {"shop.orders": DatasetId(namespace="file", name="/o"), "shop.copy": DatasetId(namespace="file", name="/c")}
    now = {"shop.orders": [Column(name="id", type="")], "shop.copy": [Column(name="key", type="")]}
    old = {"shop.orders": [Column(name="older", type="")], "shop.copy": [Column(name="stale", type="")]}
    assert harvested(tmp_path, aliases=lake, schemas=now, declared=old) == {("id", "key")}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"t": []}', '{"t": "id"}', '{"t": [""]}', "[" * 100_000])
def test_a_file_of_another_form_is_an_error(tmp_path: Path, text: str):
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(LineageError) as caught:
        schema_files(["s.json"], tmp_path)
    assert "s.json" in str(caught.value.where)


def test_two_files_about_one_table_are_an_error(tmp_path: Path):
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text('{"t": ["id"]}')
    with pytest.raises(LineageError, match="two schema files"):
        schema_files(["a.json", "b.json"], tmp_path)


@pytest.fixture(scope="module")
def glue() -> Iterator[str]:
    server = ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def database(glue: str, monkeypatch: pytest.MonkeyPatch) -> GlueDatabase:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    return GlueDatabase(database="shop", region="ap-south-1", endpoint_url=glue, catalog="lake")


def test_glue_tells_columns_and_places_of_more_tables_than_a_page_holds(database: GlueDatabase):
    client = boto3.client("glue", region_name="ap-south-1", endpoint_url=database.endpoint_url)
    client.create_database(DatabaseInput={"Name": "shop"})
    for number in range(120):
        storage = {"Columns": [{"Name": "id", "Type": "bigint"}], "Location": f"s3://b/shop/t{number}/"}
        made = {"Name": f"t{number}", "StorageDescriptor": storage, "PartitionKeys": [{"Name": "ds", "Type": "date"}]}
        client.create_table(DatabaseName="shop", TableInput=made)
    client.create_table(DatabaseName="shop", TableInput={"Name": "v", "TableType": "VIRTUAL_VIEW"})
    found = glue_tables([database])
    assert len(found.schemas) == 121
    assert found.schemas["lake.shop.t7"] == (Column(name="id", type="bigint"), Column(name="ds", type="date"))
    assert found.aliases["lake.shop.t7"] == DatasetId(namespace="s3://b", name="shop/t7")
    assert "lake.shop.v" not in found.aliases


def test_a_glue_database_that_is_not_there_is_an_error(database: GlueDatabase):
    with pytest.raises(LineageError, match="EntityNotFoundException"):
        glue_tables([database.model_copy(update={"database": "nowhere"})])


def test_glue_out_of_reach_is_an_error(database: GlueDatabase):
    with pytest.raises(LineageError, match="EndpointConnectionError"):
        glue_tables([database.model_copy(update={"endpoint_url": "http://127.0.0.1:9"})])
