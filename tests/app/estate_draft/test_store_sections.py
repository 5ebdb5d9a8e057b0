"""How a first estate file says that HDFS is reached, and what somebody is told where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from pii_tracer.app.estate_draft.given_places import Places, read_places, with_roots
from pii_tracer.app.estate_draft.places_in_stores import unseen, with_object_stores
from pii_tracer.app.estate_draft.places_of_catalogs import in_object_stores, roots_of_catalogs
from pii_tracer.app.estate_draft.store_sections import Reach, name_nodes_of, object_store, refuse_unknown
from pii_tracer.config.catalogs import CatalogType
from pii_tracer.lake.catalogs.registry import catalog_of
from pii_tracer.lake.inventory import Inventory
from pii_tracer.lake.read_result import gap
from pii_tracer.model.errors import UsageError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import ObjectLocation

HA = """<configuration>
<property><name>dfs.ha.namenodes.bank</name><value>nn1, nn2</value></property>
<property><name>dfs.namenode.http-address.bank.nn1</name><value>one.example:9870</value></property>
<property><name>dfs.namenode.http-address.bank.nn2</name><value>two.example:9870</value></property>
</configuration>"""


def test_the_usual_port_and_hadoops_user() -> None:
    made = name_nodes_of(["hdfs://nn:9000", "hdfs://other"], Reach(), {"HADOOP_USER_NAME": "etl"})
    assert [(one["webhdfs"], one["user"]) for one in made.values()] == [
        ("http://nn:9870", "etl"),
        ("http://other:9870", "etl"),
    ]


def test_all_name_nodes_of_a_nameservice_come_from_hadoops_file(tmp_path: Path) -> None:
    (tmp_path / "hdfs-site.xml").write_text(HA)
    environ = {"HADOOP_CONF_DIR": str(tmp_path), "HADOOP_USER_NAME": "etl"}
    both = ["http://one.example:9870", "http://two.example:9870"]
    assert name_nodes_of(["hdfs://bank"], Reach(), environ)["hdfs://bank"]["webhdfs"] == both
    (tmp_path / "hdfs-site.xml").write_text(HA.replace("http-address.bank.nn2", "x"))
    made = name_nodes_of(["hdfs://bank"], Reach(), environ)
    assert made["hdfs://bank"]["webhdfs"] == "http://bank:9870", "one of two is no nameservice"


def test_what_is_given_counts_and_a_principal_is_for_kerberos() -> None:
    reach = Reach(("hdfs://nn:8020=https://nn:9871", "hdfs://old=http://o:1"), "ann@EXAMPLE.COM", "/etc/ca.pem")
    made = name_nodes_of(["hdfs://nn", "hdfs://old"], reach, {})
    who = {"kerberos": "ann@EXAMPLE.COM", "ca": "/etc/ca.pem"}
    assert made["hdfs://nn"] == {"namenode": "hdfs://nn", "webhdfs": "https://nn:9871", **who}
    assert made["hdfs://old"]["webhdfs"] == "http://o:1"


def test_a_name_node_may_be_named_without_its_scheme() -> None:
    reach = Reach(("NN:8020=http://a:1", "old=http://o:1"), "lake")
    made = name_nodes_of(["hdfs://nn", "hdfs://old"], reach, {})
    assert [one["webhdfs"] for one in made.values()] == ["http://a:1", "http://o:1"]
    refuse_unknown(made, reach)


@pytest.mark.parametrize(
    ("name", "said"), [("new", "names hdfs://new.*known are hdfs://nn, hdfs://old"), ("u@x", "names no NameNode")]
)
def test_an_address_of_no_known_name_node_is_refused(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        refuse_unknown(["hdfs://old", "hdfs://nn"], Reach((f"{name}=http://a:1", "http://b:1")))


@pytest.mark.parametrize(
    "place",
    [
        ObjectLocation(store="gs://u:S3CRET@b", key="x"),
        ObjectLocation(store="gs://S3CRET@b", key="x"),
        ObjectLocation(store="gs://b", key="/S3CRET"),
    ],
)
def test_a_place_of_a_catalog_that_no_estate_file_can_have_stops_nothing(place: ObjectLocation) -> None:
    said = list[str]()
    places, [note] = with_object_stores("shop", Places(), [place, place], [], said.append)
    assert (places.object_stores, said) == ({}, [])
    assert note.startswith("2 places of the catalogs' tables cannot be declared")
    assert "S3CRET" not in note


def test_an_iceberg_rest_catalog_has_no_options_in_its_address() -> None:
    adapter = catalog_of(CatalogType.ICEBERG_REST)
    assert [adapter.drafted(f"https://x/c{end}") for end in ("?sig=S", "#S")] == [None, None]


def test_an_emulator_gets_no_credentials() -> None:
    assert object_store("gs://b", ["a"], Reach(endpoint="http://127.0.0.1:1"))["anonymous"] is True
    assert "anonymous" not in object_store("gs://b", ["a"], Reach(endpoint="https://gcs.example"))


@pytest.mark.parametrize(
    ("given", "root"),
    [("HDFS://NN.example:8020/lake//x/", "hdfs://nn.example/lake/x"), ("hdfs://bank", "hdfs://bank/")],
)
def test_places_in_hdfs_have_one_spelling(given: str, root: str, tmp_path: Path) -> None:
    assert read_places([given], tmp_path).roots == [root]


def test_places_in_azure_have_one_spelling(tmp_path: Path) -> None:
    found = read_places(["https://shop.blob.core.windows.net/exports/a%20b/", "gs://b/x/"], tmp_path)
    assert found.in_stores == ["abfss://exports@shop.dfs.core.windows.net/a b", "gs://b/x"]
    assert found.catalogs == {}


def test_a_catalog_leads_to_the_folders_around_its_tables(tmp_path: Path) -> None:
    evidence = [
        "hdfs://nn/wh/crm.db/users",
        "hdfs://nn/wh/ops.db/calls",
        "hdfs://old/t",
        "hdfs://nn/wh/ice.db/t/metadata/1.metadata.json",
        "gs://b/crm/users",
        "abfss://lake@shop.dfs.core.windows.net/ice/t/metadata/1.metadata.json",
        "a table without a place",
    ]
    gaps = tuple(gap(None, GapKind.REMOTE_TABLE, "not declared", one) for one in evidence)
    found = Inventory(tables=(), gaps=gaps)
    roots = roots_of_catalogs(found, Places(), tmp_path)
    assert roots == ["hdfs://nn/wh/crm.db", "hdfs://nn/wh/ice.db", "hdfs://nn/wh/ops.db", "hdfs://old/t"]
    stores = ["abfss://lake@shop.dfs.core.windows.net/ice/t", "gs://b/crm/users"]
    assert [str(place) for place in in_object_stores(found)] == stores


def test_a_name_node_that_a_catalog_names_and_nobody_reaches_stops_nothing() -> None:
    places = with_roots(Places(reach=Reach(("http://127.0.0.1:1",), "lake")), ["hdfs://gone/wh"])
    [note] = unseen("shop", places, ["hdfs://gone/wh"])
    assert note.startswith("hdfs://gone/wh cannot be looked into")
    assert "check `--webhdfs`" in note


@pytest.mark.parametrize("bucket", ["people--use1-az4--x-s3", "63a8e430-6e0b-46f5--table-s3"])
def test_buckets_of_other_kinds_are_drafted_without_being_asked(bucket: str) -> None:
    """The plan has a gap for each. No server answers at the endpoint."""
    root = f"s3://{bucket}/raw"
    places = Places(roots=[root], s3={"region": "us-east-1", "endpoint_url": "http://127.0.0.1:9"})
    assert unseen("x", places, [root]) == []
