"""Tables in S3, written by real writers: a logical delete leaves the person there, and the plan's gap tells where."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

from pii_tracer.model.errors import ExitCode
from tests import storeservers
from tests.app.planning.test_nested_subject import called
from tests.cli.small import request
from tests.storeservers import ACCESS, REGION, SECRET, Store, signed

__all__ = ["signed"]

PERSON, MAIL = 4417700102, "asha.rao@mail.example"
PEOPLE = pa.table(
    {"uid": pa.array([PERSON, 4417700103, 4417700104], pa.int64()), "mail": [MAIL, "b@x.example", "c@x.example"]}
)
OTHERS = PEOPLE.slice(1)


SERVERS = ["versitygw", storeservers.STANDIN] if storeservers.program("versitygw") else [storeservers.STANDIN]


@pytest.fixture(scope="module", params=SERVERS)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The stand-in, and versitygw where it has been built."""
    serve = storeservers.versioned if request.param == "versitygw" else storeservers.standin
    with serve(tmp_path_factory.mktemp("store")) as running:
        yield running


@dataclass
class Shop:
    """An estate with its persons in a local folder and tables in a bucket with versions."""

    base: Path
    store: Store
    bucket: str
    tables: dict[str, str] = field(default_factory=dict)
    formats: dict[str, str] = field(default_factory=dict)
    """Of tables that are not Delta's."""
    roots: list[str] = field(default_factory=lambda: ["w"])
    subject: str = "key: uid, identifiers: [{column: mail, category: email}]"
    catalogs: str = ""
    jobs: str = ""
    more: str = ""

    def __post_init__(self) -> None:
        client = self.store.client()
        client.create_bucket(Bucket=self.bucket)
        client.put_bucket_versioning(Bucket=self.bucket, VersioningConfiguration={"Status": "Enabled"})
        (self.base / "w" / "people").mkdir(parents=True)
        pq.write_table(PEOPLE, self.base / "w" / "people" / "1.parquet")

    @property
    def io(self) -> dict[str, str]:
        """How PyIceberg's file I/O reaches the store."""
        found = {"s3.endpoint": self.store.endpoint_url, "s3.region": REGION}
        return {**found, "s3.access-key-id": ACCESS, "s3.secret-access-key": SECRET}

    @property
    def options(self) -> dict[str, str]:
        """How Delta's writer reaches it."""
        found = {"AWS_ENDPOINT_URL": self.store.endpoint_url, "AWS_REGION": REGION, "AWS_ALLOW_HTTP": "true"}
        return {**found, "AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET, "aws_conditional_put": "etag"}

    def iceberg(self) -> SqlCatalog:
        """A SQL catalog beside the estate file, its warehouse in the bucket."""
        warehouse = f"s3://{self.bucket}/wh"
        self.catalogs = f"  core: {{type: iceberg-sql, uri: 'sqlite:///core.db', warehouse: '{warehouse}'}}\n"
        made = SqlCatalog("core", uri=f"sqlite:///{self.base / 'core.db'}", warehouse=warehouse, **self.io)
        made.create_namespace_if_not_exists("prod")
        return made

    def delta(self, name: str, rows: pa.Table, **more: Any) -> str:
        """A Delta table in the bucket, declared under its name."""
        place = f"s3://{self.bucket}/delta/{name.rpartition('.')[2]}"
        write_deltalake(place, rows, storage_options=self.options, **more)
        self.tables[name] = place
        return place

    def bare(self, name: str, kind: str) -> str:
        """A folder of data files in the bucket, declared under its name; nothing is in it yet."""
        folder = f"bare/{name.rpartition('.')[2]}"
        self.tables[name], self.formats[name] = f"s3://{self.bucket}/{folder}", kind
        return folder

    def put(self, key: str, data: bytes, **more: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.store.client().put_object(Bucket=self.bucket, Key=key, Body=data, **more)
        return answer

    def write(self) -> None:
        tables = {
            "shop.people": ("parquet", "w/people"),
            **{n: (self.formats.get(n, "delta"), p) for n, p in self.tables.items()},
        }
        declared = "".join(f"      - {{name: {n}, format: {f}, location: '{p}'}}\n" for n, (f, p) in tables.items())
        (self.base / "pii-tracer.yaml").write_text(
            "version: 1\nestate: shop\nenvironment: local\ncatalogs:\n"
            f"{self.catalogs}  spark_catalog:\n    type: declared\n    tables:\n{declared}"
            f"roots: {json.dumps(self.roots)}\nlineage: {{sql: [jobs.sql]}}\n"
            f"{self.more}"
            f"s3: {{region: {REGION}, endpoint_url: '{self.store.endpoint_url}'}}\n"
            f"subjects:\n  - {{name: user, source: shop.people, {self.subject}}}\n"
        )
        (self.base / "jobs.sql").write_text(self.jobs)
        (self.base / "request.yaml").write_text(request("user", str(PERSON)))
        (self.base / "policy.yaml").write_text("version: 1\n")

    def plan(self, name: str = "p") -> dict[str, Any]:
        """The plan, which holds no value of the person."""
        self.write()
        file = self.base / f"{name}.plan.json"
        code = called(self.base, "plan", str(self.base / "request.yaml"), "--out", str(file))
        assert code in (ExitCode.DONE, ExitCode.INCOMPLETE)
        text = file.read_text()
        assert str(PERSON) not in text
        assert MAIL not in text
        made: dict[str, Any] = json.loads(text)
        return made

    def gaps(self) -> dict[str, dict[str, Any]]:
        """The gaps about S3, by location."""
        made = [g for g in self.plan()["gaps"] if g["kind"] == "remote_table"]
        return {g["evidence"].partition(";")[0]: g for g in made}


_numbers = iter(range(1000))


@pytest.fixture
def shop(store: Store, tmp_path: Path) -> Shop:
    return Shop(tmp_path, store, f"lake-{next(_numbers)}")


def test_an_iceberg_table_in_which_the_person_was_deleted(shop: Shop) -> None:
    catalog = shop.iceberg()
    table = catalog.create_table("prod.orders", PEOPLE.schema)
    table.append(PEOPLE)
    table.delete(f"uid = {PERSON}")
    assert table.scan().to_arrow().num_rows == 2
    catalog.register_table("prod.sales", table.metadata_location)  # so that it is left alone
    shop.jobs = "INSERT INTO core.prod.orders SELECT uid, mail FROM shop.people;"
    [gap] = shop.gaps().values()
    place = f"s3://{shop.bucket}/wh/prod/orders"
    assert (gap["id"], gap["evidence"]) == (f"gap-remote_table-person-{shop.bucket}-wh-prod-orders", place)
    assert gap["dataset"] == {"namespace": f"s3://{shop.bucket}", "name": "wh/prod/orders"}
    assert (
        "the tables core.prod.orders, core.prod.sales lie in S3 and are not erased: it has more than" in gap["reason"]
    )
    assert "objects contain the person" in gap["reason"]
    assert "1 of data files" in gap["reason"]
    assert "noncurrent: in mail, raw bytes, uid;" in gap["reason"]
    # lineage leads there by the table's name: that is this gap, and not one more of a table that nobody found
    assert {g["kind"] for g in shop.plan()["gaps"]} == {"remote_table", "lineage"}  # its columns are not known


def test_the_same_bucket_gives_the_same_plan(shop: Shop) -> None:
    shop.delta("shop.tickets", PEOPLE)
    first, again = shop.plan("one"), shop.plan("two")
    assert first["inventory_digest"] == again["inventory_digest"]
    assert first["gaps"] == again["gaps"]
    shop.put("delta/tickets/new", b"x")
    assert shop.plan("three")["inventory_digest"] != first["inventory_digest"]


def test_a_root_in_s3_has_what_no_table_has(shop: Shop) -> None:
    shop.roots.append(f"s3a://{shop.bucket}/")
    shop.delta("shop.tickets", OTHERS)
    shop.put("loose/mails.txt", f"mail\n{MAIL}\n".encode())
    shop.put("loose/mails.txt", b"mail\n")
    found = shop.gaps()
    assert sorted(found) == [f"s3://{shop.bucket}/"]
    root = found[f"s3://{shop.bucket}/"]["reason"]
    assert "files below a root" in root
    assert "1 of 1 object contain the person, in 1 of 2 versions (1 of data files), 1 of them noncurrent" in root


def test_an_inventory_is_whole_where_every_object_of_a_root_is_a_tables(shop: Shop) -> None:
    shop.delta("shop.tickets", PEOPLE)
    shop.roots.append(f"s3://{shop.bucket}/")
    shop.write()
    assert called(shop.base, "inventory") == ExitCode.DONE
    shop.put("loose.txt", b"x")
    assert called(shop.base, "inventory") == ExitCode.INCOMPLETE
    shop.store.client().delete_object(Bucket=shop.bucket, Key="loose.txt")
    assert called(shop.base, "inventory") == ExitCode.INCOMPLETE, "the old version is still there"


def test_a_root_in_s3_of_which_every_object_is_a_tables_is_no_gap(shop: Shop) -> None:
    shop.delta("lake.users", PEOPLE)
    shop.jobs = "INSERT INTO lake.users SELECT uid, mail FROM shop.people;"
    shop.roots.append(f"s3://{shop.bucket}/")
    shop.put("delta/", b"")  # as Hadoop marks a folder
    assert shop.gaps() == {}
    assert shop.tables["lake.users"] in {copy["location"] for copy in shop.plan()["copies"]}
    shop.put("lone.txt", b"nothing")
    assert list(shop.gaps()) == [f"s3://{shop.bucket}/"]


def test_what_cannot_be_read_is_told_and_the_rest_goes_on(shop: Shop) -> None:
    shop.roots.append(f"s3://{shop.bucket}/loose")
    place = f"s3://{shop.bucket}/loose"
    shop.put("loose/mails.csv", f"mail\n{MAIL}\n".encode())
    shop.put("loose/odd.bin", b"II*\0" + bytes(range(256)))
    shop.store.client().create_multipart_upload(Bucket=shop.bucket, Key="loose/half")
    shop.tables["shop.gone"] = "s3://no-such-bucket-here/t"
    found = shop.gaps()
    told = found[place]
    assert "contain the person" in told["reason"]
    assert "1 version could not be read completely" in told["reason"]
    assert "1 unfinished upload with bytes that nobody can read" in told["reason"]
    assert "odd.bin?versionId=" in told["evidence"]
    gone = found["s3://no-such-bucket-here/t"]
    assert gone["id"].startswith("gap-remote_table-unseen-")
    assert "NoSuchBucket" in gone["reason"]


def test_lineage_to_a_place_that_nobody_named(shop: Shop) -> None:
    shop.jobs = f"INSERT INTO delta.`s3a://{shop.bucket}/copies/people` SELECT uid, mail FROM shop.people;"
    [lost] = [g for g in shop.plan()["gaps"] if g["kind"] == "not_found"]
    assert lost["dataset"] == {"namespace": f"s3://{shop.bucket}", "name": "copies/people"}
    assert "add it under `roots`" in lost["reason"]
    shop.roots.append(f"s3://{shop.bucket}/copies")
    write_deltalake(f"s3://{shop.bucket}/copies/people", PEOPLE, storage_options=shop.options)
    kinds = {g["kind"]: g["id"] for g in shop.plan()["gaps"]}
    assert "not_found" not in kinds
    assert kinds["remote_table"].startswith("gap-remote_table-person-")


def test_an_estate_that_is_refused_by_the_store(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    if shop.store.kind == storeservers.STANDIN:
        return  # it knows no accounts
    place = shop.delta("shop.tickets", PEOPLE)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    told = shop.gaps()[place]
    assert told["id"].startswith("gap-remote_table-unseen-")
    assert "it cannot be listed (SignatureDoesNotMatch): its credentials are not valid" in told["reason"]


def test_the_inventory_shows_what_lies_there(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    place = shop.delta("shop.tickets", OTHERS)
    shop.write()
    capsys.readouterr()
    assert called(shop.base, "inventory", "--format", "json") == ExitCode.DONE
    told = json.loads(capsys.readouterr().out)
    [seen] = told["remote"]
    assert (seen["tables"], len(seen["versions"])) == (["shop.tickets"], 2)
    assert place in {table["location"] for table in told["tables"]}
    assert called(shop.base, "inventory") == ExitCode.DONE
    [line] = [line for line in capsys.readouterr().out.splitlines() if "tickets" in line]
    assert line.split()[0] == "shop.tickets"
    assert f"in {place}" in line
    assert place.startswith("s3://")


def test_data_files_of_an_iceberg_table_that_lie_elsewhere(shop: Shop) -> None:
    """`write.data.path` leads to another folder, which is a place of its own; an added file is counted."""
    catalog = shop.iceberg()
    elsewhere = f"s3://{shop.bucket}/hot/orders"
    table = catalog.create_table("prod.orders", PEOPLE.schema, properties={"write.data.path": elsewhere})
    table.append(PEOPLE)
    added = f"s3://{shop.bucket}/landing/1.parquet"
    sink = pa.BufferOutputStream()
    pq.write_table(OTHERS, sink)
    shop.put("landing/1.parquet", sink.getvalue().to_pybytes())
    table.add_files([added])
    found = shop.gaps()
    assert sorted(found) == [elsewhere, f"s3://{shop.bucket}/wh/prod/orders"]
    assert "1 of 1 object contain the person, in 1 of 1 version (1 of data files)" in found[elsewhere]["reason"]
    home = found[f"s3://{shop.bucket}/wh/prod/orders"]["reason"]
    assert "of metadata" in home
    assert "data files" not in home
    assert "1 file referenced by metadata of this place" in home


def test_a_bound_that_iceberg_cut_is_not_the_person(shop: Shop) -> None:
    """Manifests keep 16 characters, which the other's address has in common with the person's."""
    table = shop.iceberg().create_table("prod.orders", PEOPLE.schema)
    table.append(pa.table({"uid": pa.array([4417700199], pa.int64()), "mail": [MAIL[:16] + "change.example"]}))
    plan = shop.plan()
    assert "core.prod.orders" in {item["table"] for item in plan["examined"]}
    assert "core.prod.orders" not in {copy["table"] for copy in plan["copies"]}


def test_a_bucket_without_versions(shop: Shop) -> None:
    client = shop.store.client()
    plain = f"plain-{shop.bucket}"
    client.create_bucket(Bucket=plain)
    client.put_object(Bucket=plain, Key="t/1.txt", Body=f"mail\n{MAIL}\n".encode())
    shop.roots.append(f"s3://{plain}/t")
    [gap] = shop.gaps().values()
    assert (
        "1 of 1 object contain the person, in 1 of 1 version (1 of data files), 0 of them noncurrent: in mail, text"
        in gap["reason"]
    )
