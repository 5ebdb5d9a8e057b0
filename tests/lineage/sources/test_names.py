from __future__ import annotations

from pathlib import Path

import pytest

from pii_tracer.lineage.dataset_names import Identities
from pii_tracer.model.datasets import DatasetId

TENANT = DatasetId(namespace="file", name="/lake/customers/tenant=a")


@pytest.mark.parametrize(
    ("namespace", "name", "expected"),
    [
        ("file", "/lake/t/day=2026-11-01", "file:/lake/t"),
        ("file", "/lake/t/day=1/hour=2/", "file:/lake/t"),
        ("file", "/lake/t/*", "file:/lake/t"),
        ("file", "/lake/t/part-*.json", "file:/lake/t"),
        ("file", "/lake/tenant=a/customers", "file:/lake/tenant=a/customers"),
        ("file", "/day=1", "file:/day=1"),
        ("file", "/lake/customers/tenant=a", "file:/lake/customers/tenant=a"),
        ("file", "/lake/customers/tenant=b", "file:/lake/customers"),
        ("s3a://lake", "/prod/t/day=1/", "s3://lake:prod/t"),
        ("gs://lake", "/prod/t/", "gs://lake:prod/t"),
        ("abfss://c@a.dfs.core.windows.net", "prod/t/y=1", "abfss://c@a.dfs.core.windows.net:prod/t"),
        ("hdfs://nn:8020", "/prod/t/", "hdfs://nn:8020:/prod/t"),
        ("postgres://db:5432", "app.public.a=b", "postgres://db:5432:app.public.a=b"),
        ("hive://m", "db/x=1", "hive://m:db/x=1"),
    ],
)
def test_partitions_and_patterns_are_their_table(namespace: str, name: str, expected: str):
    assert str(Identities({"lake.customers_a": TENANT}).normal(namespace, name)) == expected


@pytest.mark.parametrize(
    "path",
    ["s3://lake/prod/t", "s3a://lake/prod/t/", "s3n://lake/prod/t/day=1", "s3a://lake/prod/t/*"],
)
def test_a_path_in_sql_and_a_name_in_an_event_meet(path: str):
    names = Identities({})
    assert names.of_table(f"parquet.`{path}`") == names.normal("s3://lake", "prod/t")


@pytest.mark.parametrize("path", ["file:///a/b", "file:/a/b/", "/a//b", "/a/./b", "/a/b/p=1", "FILE:/a/b"])
def test_local_paths(path: str):
    assert Identities({}).of_path(path) == DatasetId(namespace="file", name="/a/b")


def test_a_relocated_partition(tmp_path: Path):
    from pii_tracer.config.estate_file import Relocation

    moved = [Relocation.model_validate({"from": "/lakehouse", "to": "."})]
    found = Identities({}, moved, tmp_path).normal("file", f"{tmp_path.resolve()}/t/day=1")
    assert found == DatasetId(namespace="file", name="/lakehouse/t")


def test_a_percent_sign_in_a_known_place_is_a_percent_sign():
    known = DatasetId(namespace="file", name="/lake/off %41")
    names = Identities({"shop.off": known})
    assert names.of_table("shop.off") == known
    assert names.normal("file", "/lake/off %41") == known
    assert names.of_path("file:///lake/off%20%2541") == known
    assert names.normal("file", "/lake/%41").name == "/lake/A"
