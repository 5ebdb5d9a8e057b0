"""Tables in S3 that a real Hive metastore names, and nothing else does: found, and planned."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from deltalake import write_deltalake
from pyarrow import orc

from pii_tracer.cli.main import run
from pii_tracer.model.errors import ExitCode
from tests.app.planning import test_remote
from tests.app.planning.test_remote import MAIL, PEOPLE, PERSON, Shop
from tests.cli.small import request
from tests.hdfs.shop import HELD
from tests.hivesupport import JSON_SERDE, ORC, TEXT, Hive, serving
from tests.hivetextsupport import LAZY, OPEN_CSV
from tests.storeservers import REGION, Store, signed
from tests.storeservers import strict_store as store

__all__ = ["signed", "store"]

COLUMNS = {"uid": "bigint", "mail": "string"}
_numbers = iter(range(100))


@pytest.fixture(scope="module")
def running(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hive]:
    with serving(tmp_path_factory.mktemp("hive"), store=store) as server:
        yield server


@pytest.fixture
def hive(running: Hive) -> Iterator[Hive]:
    with running.database("core"):
        yield running


@pytest.fixture
def shop(store: Store, hive: Hive, tmp_path: Path) -> Shop:
    shop = Shop(tmp_path, store, f"hive-lake-{next(_numbers)}")
    shop.catalogs = f"  hms: {{type: hive, uri: '{hive.uri}'}}\n"
    return shop


def parquet(rows: pa.Table = PEOPLE) -> bytes:
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    return sink.getvalue()


def as_orc(rows: pa.Table = PEOPLE) -> bytes:
    sink = io.BytesIO()
    orc.write_table(rows, sink)
    return sink.getvalue()


def calls(shop: Shop, hive: Hive, elsewhere: Mapping[str, str], name: str = "calls") -> None:
    """A table with a partition in its folder, and others elsewhere."""
    place = f"s3a://{shop.bucket}/wh/core.db/{name}"
    shop.put(f"wh/core.db/{name}/day=0/0.parquet", parquet())
    partitions = {"0": f"{place}/day=0", **elsewhere}
    hive.table(f"core.{name}", place, kind="MANAGED_TABLE", columns=COLUMNS, partitions=partitions)
    shop.jobs += f"INSERT INTO core.{name} SELECT uid, mail, '0' AS day FROM shop.people;\n"


def fill(shop: Shop, hive: Hive) -> dict[str, str]:
    """A table of each kind, in the spellings that engines left over the years; places by name."""
    at, found = f"{shop.bucket}/ext", dict[str, str]()

    def add(name: str, location: str, *how: Any, **more: Any) -> None:
        found[f"core.{name}"] = f"s3://{at}/{name}"
        hive.table(f"core.{name}", location, *how, columns=COLUMNS, **more)
        shop.jobs += f"INSERT INTO core.{name} SELECT uid, mail FROM shop.people;\n"

    write_deltalake(f"s3://{at}/orders", PEOPLE, storage_options=shop.options)
    placeholder = f"s3a://{shop.bucket}/wh/core.db/orders-__PLACEHOLDER__"
    spark = {"spark.sql.sources.provider": "delta"}
    add("orders", placeholder, parameters=spark, options={"path": f"s3a://{at}/orders"})
    shop.put("ext/bills/000000_0", as_orc())
    add("bills", f"s3n://{at}/bills/", ORC)
    shop.put("ext/lines/0.json", json.dumps({"uid": PERSON, "mail": MAIL}).encode() + b"\n")
    add("lines", f"s3a://{at}/lines", TEXT, serde=JSON_SERDE)
    shop.put("ext/members/0", f"{PERSON}|{MAIL}\n1|a\n".encode())
    add("members", f"s3://{at}/members/", TEXT, serde=LAZY, options={"field.delim": "|"})
    shop.put("ext/letters/0.csv", f'"{PERSON}","{MAIL}"\n"1","a"\n'.encode())
    add("letters", f"s3a://{at}/letters", TEXT, serde=OPEN_CSV, options={"separatorChar": ","})
    catalog = shop.iceberg()
    shop.catalogs = f"  hms: {{type: hive, uri: '{hive.uri}'}}\n"
    ice = catalog.create_table("prod.ice", PEOPLE.schema, location=f"s3a://{at}/ice")
    ice.append(PEOPLE)
    add("ice", f"s3a://{at}/ice", parameters={"table_type": "ICEBERG", "metadata_location": ice.metadata_location})
    shop.jobs = shop.jobs.replace("INTO core.ice", "INTO hms.core.ice")
    found["hms.core.ice"] = found.pop("core.ice")
    return found


def test_tables_of_each_kind_and_spelling_are_copies_with_steps(shop: Shop, hive: Hive) -> None:
    places = fill(shop, hive)
    plan = shop.plan()
    copies = {copy["table"]: copy for copy in plan["copies"]}
    assert {name: copies[name]["location"].rstrip("/") for name in places} == places
    assert {copies[name]["id"] for name in places} <= {step["copy"] for step in plan["steps"]}
    assert {copies[name]["found"]["rows"] for name in places} == {1}
    assert {gap["kind"] for gap in plan["gaps"]} == {"unguarded_commits"}


def test_partitions_elsewhere_are_erased_as_their_table_is(shop: Shop, hive: Hive) -> None:
    """In another folder, and in another bucket, which nothing else names. They were a gap, and not searched."""
    other = f"{shop.bucket}-old"
    client = shop.store.client()
    client.create_bucket(Bucket=other)
    shop.put("old/1/0.parquet", parquet())
    client.put_object(Bucket=other, Key="day=2/0.parquet", Body=parquet())
    calls(shop, hive, {"1": f"s3n://{shop.bucket}/old/1/", "2": f"s3a://{other}/day=2"})
    shop.roots.append(f"s3://{shop.bucket}")
    plan = shop.plan()
    assert plan["gaps"] == []
    steps = {step["copy"] for step in plan["steps"] if step["action"] == "s3_rewrite_archive"}
    found = {copy["location"].rstrip("/"): copy["reason"] for copy in plan["copies"] if copy["id"] in steps}
    beyond = {f"s3://{shop.bucket}/old/1", f"s3://{other}/day=2"}
    assert found.keys() == {f"s3://{shop.bucket}/wh/core.db/calls", *beyond}
    assert all("partitions of wh/core.db/calls" in found[place] for place in beyond)


def external(plan: dict[str, Any]) -> list[str]:
    return [gap["reason"] for gap in plan["gaps"] if gap["kind"] == "external_files"]


def test_partitions_in_folders_of_others_stay_a_gap_and_no_step_splits_them_off(shop: Shop, hive: Hive) -> None:
    """In a table that the catalog names, and in one that nobody names: its log names the files."""
    shop.put("ext/big/y=1/0.parquet", parquet())
    hive.table("core.big", f"s3a://{shop.bucket}/ext/big", columns=COLUMNS)
    write_deltalake(f"s3://{shop.bucket}/lost", PEOPLE, storage_options=shop.options)
    shop.put("lost/day=2/0.parquet", parquet())
    calls(shop, hive, {"1": f"s3a://{shop.bucket}/ext/big/y=1", "2": f"s3a://{shop.bucket}/lost/day=2"})
    plan = shop.plan()
    (reason,) = external(plan)
    assert "1 of 3 partitions" in reason
    (around,) = [gap["reason"] for gap in plan["gaps"] if gap["evidence"] == f"s3://{shop.bucket}/lost/day=2"]
    assert "contains `_delta_log`" in around
    steps = {step["copy"] for step in plan["steps"]}
    written = {copy["location"].rstrip("/") for copy in plan["copies"] if copy["id"] in steps}
    assert not {place for place in written if "/y=1" in place or "/lost" in place}


@pytest.mark.parametrize(
    ("name", "table"), [("readme.txt", False), ("v3.metadata.json", True), ("version-hint.text", True)]
)
def test_a_folder_called_metadata_is_an_iceberg_tables_by_its_files(
    shop: Shop, hive: Hive, name: str, table: bool
) -> None:
    """One with other files kept every partition in the bucket from being erased."""
    shop.put("old/day=1/0.parquet", parquet())
    shop.put(f"metadata/{name}", b"hello")
    calls(shop, hive, {"1": f"s3a://{shop.bucket}/old/day=1"})
    reasons = [gap["reason"] for gap in shop.plan()["gaps"]]
    assert ["contains `metadata`" in reason for reason in reasons] == [True] * table


def test_a_hold_on_either_table_keeps_what_has_the_partition(shop: Shop, hive: Hive) -> None:
    shop.put("old/0.parquet", parquet())
    calls(shop, hive, {"1": f"s3a://{shop.bucket}/old"})
    held = f"s3://{shop.bucket}/bare/around"
    shop.bare("core.around", "parquet")
    shop.put("bare/around/day=1/0.parquet", parquet())
    shop.jobs += "INSERT INTO core.around SELECT uid, mail, '1' AS day FROM shop.people;\n"
    calls(shop, hive, {"1": f"{held}/day=1"}, "more")
    for name, kept in (("core.calls", f"s3://{shop.bucket}/old"), ("core.more", held)):
        shop.more = yaml.safe_dump({"holds": [{**HELD, "datasets": [name]}]})
        strategies = {copy["location"].rstrip("/"): copy["strategy"] for copy in shop.plan()["copies"]}
        assert {place for place, strategy in strategies.items() if strategy == "exempt"} == {
            *(kept, f"s3://{shop.bucket}/wh/core.db/{name.partition('.')[2]}"),
        }


@pytest.mark.parametrize("folder", ["odd/place1", f"odd/day={PERSON}", f"odd/{MAIL}"])
def test_a_key_that_the_catalog_alone_has_is_a_gap_and_is_told_to_nobody(shop: Shop, hive: Hive, folder: str) -> None:
    """The files have neither key nor address: they passed for clean. `Shop.plan` looks for both in the plan."""
    shop.put(f"{folder}/0.parquet", parquet(pa.table({"note": ["called at noon"]})))
    home = f"s3a://{shop.bucket}/wh/core.db/notes"
    shop.put("wh/core.db/notes/day=7/0.parquet", parquet(pa.table({"note": ["x"]})))
    places = {"7": f"{home}/day=7", str(PERSON): f"s3a://{shop.bucket}/{folder}"}
    hive.table("core.notes", home, columns={"note": "string"}, partitions=places)
    shop.jobs += "INSERT INTO core.notes SELECT 'x' AS note, uid AS day FROM shop.people;\n"
    plan = shop.plan()
    kinds = {gap["kind"] for gap in plan["gaps"]}
    if folder == "odd/place1":
        (gap,) = [gap for gap in plan["gaps"] if gap["id"].endswith("-partitions")]
        assert "day of core.notes" in gap["reason"]
    else:
        assert external(plan) != []
    assert kinds >= {"table_text"}
    steps = {step["copy"] for step in plan["steps"]}
    assert not [copy for copy in plan["copies"] if copy["id"] in steps and "/odd" in copy["location"]]


@pytest.mark.parametrize("kind", [parquet, as_orc], ids=["parquet", "orc"])
@pytest.mark.parametrize("key", [20190301, 2010123123], ids=["day", "hour"])
def test_a_key_that_looks_like_a_day_in_a_partitions_name_is_told_to_nobody(
    store: Store,
    hive: Hive,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    kind: Callable[[pa.Table], bytes],
    key: int,
) -> None:
    """The plan showed it, or was refused. `Shop.plan` looks for it in the plan; it is neither in what people see."""
    rows = pa.table({"uid": pa.array([key, 4417700103], pa.int64()), "mail": [MAIL, "b@x.example"]})
    monkeypatch.setattr(test_remote, "PERSON", key)
    monkeypatch.setattr(test_remote, "PEOPLE", rows)
    shop = Shop(tmp_path, store, f"hive-lake-{next(_numbers)}")
    shop.catalogs = f"  hms: {{type: hive, uri: '{hive.uri}'}}\n"
    shop.put(f"old/day={key}/0", kind(rows))
    calls(shop, hive, {str(key): f"s3a://{shop.bucket}/old/day={key}"})
    shop.roots.append(f"s3://{shop.bucket}")
    plan = shop.plan()
    (gap,) = [gap for gap in plan["gaps"] if gap["kind"] == "external_files"]
    assert gap["evidence"] == f"s3://{shop.bucket}/old/day=[user.uid]"
    assert not [copy for copy in plan["copies"] if "/old" in copy["location"]]
    told = capfd.readouterr()
    assert str(key) not in told.out + told.err


def test_partitions_in_another_format_stay_a_gap(shop: Shop, hive: Hive) -> None:
    """As they are registered, and as their files are."""
    shop.put("old/0", as_orc())
    calls(shop, hive, {"1": f"s3a://{shop.bucket}/old"})
    gaps = {gap["kind"]: gap for gap in shop.plan()["gaps"]}
    assert "it contains objects of different formats (orc)" in gaps["remote_table"]["reason"]
    with hive.client() as client:
        (partition,) = client.get_partitions_by_names("core", "calls", ["day=1"])
        partition.sd.inputFormat = ORC
        client.alter_partition("core", "calls", partition)
    assert {gap["kind"] for gap in shop.plan()["gaps"]} == {"external_files", "mixed_formats"}


def test_a_table_whose_files_are_anothers_is_not_empty(shop: Shop, hive: Hive) -> None:
    """Its own folder has nothing but a mark: all its rows are in the folder of a second table inside."""
    columns = {"ext": "bigint", "mail": "string"}
    inside = f"s3a://{shop.bucket}/ext/big/y=1"
    hive.table("core.big", f"s3a://{shop.bucket}/ext/big", columns=columns, partitions={"1": inside})
    shop.put("ext/big/_SUCCESS", b"")
    shop.put("ext/big/y=1/0.parquet", parquet(PEOPLE.rename_columns(["ext", "mail"])))
    hive.table("core.second", inside, columns=columns)
    shop.jobs += "INSERT INTO core.big SELECT uid AS ext, mail, '1' AS y FROM shop.people;\n"
    gaps = [gap for gap in shop.plan()["gaps"] if gap["evidence"] == f"s3://{shop.bucket}/ext/big"]
    assert [gap["kind"] for gap in gaps] == ["remote_table"]


def test_marks_of_folders_are_no_gap_and_a_folder_that_is_gone_is_one(shop: Shop, hive: Hive) -> None:
    """A metastore makes an empty object for each folder. A table without rows was a gap, and so was each root."""
    for name in ("empty", "gone"):
        hive.table(f"core.{name}", f"s3a://{shop.bucket}/wh/core.db/{name}", columns=COLUMNS)
    calls(shop, hive, {})
    client = shop.store.client()
    for item in client.list_object_versions(Bucket=shop.bucket, Prefix="wh/core.db/gone")["Versions"]:
        client.delete_object(Bucket=shop.bucket, Key=item["Key"], VersionId=item["VersionId"])
    shop.put("wh/core.db/", b"")
    shop.roots.append(f"s3://{shop.bucket}")
    (gap,) = shop.plan()["gaps"]
    assert gap["evidence"] == f"s3://{shop.bucket}/wh/core.db/gone"
    shop.put(f"wh/{MAIL}/", b"")
    assert f"gap-remote_table-person-{shop.bucket}" in {gap["id"] for gap in shop.plan()["gaps"]}


def test_a_first_estate_file_from_the_metastore_alone(
    shop: Shop, hive: Hive, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It had no table: nothing said how S3 is reached. Its guess of a source was a table that cannot be one."""
    fill(shop, hive)
    shop.put("left/dropped/0.parquet", parquet())
    other = f"{shop.bucket}-old"  # a partition alone lies in it
    shop.store.client().create_bucket(Bucket=other)
    shop.store.client().put_object(Bucket=other, Key="day=1/0.parquet", Body=parquet())
    calls(shop, hive, {"1": f"s3a://{other}/day=1"})
    monkeypatch.setenv("AWS_ENDPOINT_URL", shop.store.endpoint_url)
    base = shop.base / "first"
    base.mkdir()
    assert run(["init", str(base), "--discover", hive.uri, "--region", REGION]) == ExitCode.DONE
    made = yaml.safe_load((base / "pii-tracer.yaml").read_text())
    assert made["roots"] == [f"s3://{shop.bucket}", f"s3://{other}"]
    assert f"are there: s3://{shop.bucket}, s3://{other}\n" in capsys.readouterr().out
    assert made["s3"] == {"region": REGION, "endpoint_url": shop.store.endpoint_url}
    declared = [table["location"] for table in made["catalogs"]["spark_catalog"]["tables"]]
    assert declared == [f"s3://{shop.bucket}/left/dropped"]
    assert made["subjects"][0]["source"] in ("core.orders", "hive.core.ice")
    (base / "request.yaml").write_text(request("person", str(PERSON)))
    words = ["plan", str(base / "request.yaml"), "--out", str(base / "p.plan.json"), "--estate"]
    run([*words, str(base / "pii-tracer.yaml"), "--state", str(base / "state")])
    plan = json.loads((base / "p.plan.json").read_text())
    assert {gap["kind"] for gap in plan["gaps"]} == {"unguarded_commits"}, plan["gaps"]
    assert len(plan["copies"]) == len({copy["id"] for copy in plan["copies"]}) >= 7
