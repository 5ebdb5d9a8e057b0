"""Files of a table in Azure Storage, as sweeps and the step that clears its past see them; and how Spark reaches it."""

from __future__ import annotations

from pathlib import Path

import pytest

from executors.engine.version_profiles import SPARK_3_5, SPARK_4_1
from executors.stores.azure import spark_connector
from executors.stores.object_places.swept_files import ObjectFiles
from executors.stores.spark_connectors import connectors, store_of
from executors.sweep.table_folders import empty_partitions, files_below
from pii_tracer.config.estate_file import Estate, load_estate
from pii_tracer.config.stores.object_stores import StoredFiles
from pii_tracer.lake.catalogs.base import FilePlace
from pii_tracer.lake.catalogs.named_places import beyond_places
from pii_tracer.lake.stores.azure.login import KEY as KEY_VARIABLE
from pii_tracer.lake.stores.azure.login import SIGNATURE
from pii_tracer.lake.stores.base import Absent
from pii_tracer.lake.stores.object_places.object_path import ObjectPath
from pii_tracer.lake.stores.object_places.version_types import VersionState
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import RunError
from pii_tracer.run.executor_protocol import PartlyDone, Progress
from tests.azure.blob_service import BlobService
from tests.azure.path_state import Paths
from tests.azure.shared_key import ACCOUNT, KEY
from tests.azure.shop import STORE, Shop
from tests.gcs.running import Run
from tests.hdfs.shop import MAIL

_SPARK = "spark.hadoop.fs.azure."


def folder_of(shop: Shop) -> ObjectPath:
    return ObjectPath(shop.store, STORE, "a")


def test_directories_are_listed_and_removed_only_when_they_are_empty(azure: BlobService, tmp_path: Path) -> None:
    shop = Shop.on(azure, tmp_path, hierarchical=True)
    shop.put("a/day=1/two.parquet", b"22")
    Paths(azure.account, shop.container).create(f"a/mail={MAIL}", folder=True)
    folder = folder_of(shop)
    assert [(file.parts, file.size) for file in files_below(folder)] == [(("day=1", "two.parquet"), 2)]
    assert empty_partitions(folder, frozenset()) == [f"{STORE}/a/mail={MAIL}/"]
    assert ((folder / "day=1").is_file(), (folder / "day=1").is_dir()) == (False, True)
    with pytest.raises(Absent):
        shop.store.live_version("a/day=1")
    with pytest.raises(RunError, match="1 of 2 objects could not be deleted: DirectoryIsNotEmpty"):
        ObjectFiles(folder).remove_folders([f"{STORE}/a/mail={MAIL}/", f"{STORE}/a/day=1/"])
    left = sorted(name for name, blob in shop.container.blobs.items() if blob.current)
    assert left == ["a", "a/day=1", "a/day=1/two.parquet"]


def test_a_deleted_directory_hides_what_lay_in_it_and_is_waited_for(azure: BlobService, tmp_path: Path) -> None:
    """No listing shows the files in it, and who restores it has them all back."""
    for deleted in ("top", "top/a", "top/a/day=1"):
        shop = Shop.on(azure, tmp_path, hierarchical=True, soft_delete_days=7)
        shop.put("top/a/day=1/x", MAIL.encode())
        shop.put("top/ab", b"1")
        Paths(azure.account, shop.container).delete(deleted, recursive=True)
        (found,) = shop.store.all_versions("top/a/")
        assert (found.state, found.key) == (VersionState.SOFT_DELETED, max(f"{deleted}/", "top/a/")), deleted
        assert found.gone_on is not None
        assert found.old_since is not None
        assert found.hides


def test_what_a_deleted_directory_around_a_place_hides_is_no_mark_of_a_folder(
    azure: BlobService, tmp_path: Path
) -> None:
    """An external location is looked into for what lies beside the places, and no listing shows that here."""
    shop = Shop.on(azure, tmp_path, hierarchical=True, soft_delete_days=7)
    estate = estate_of(shop)
    [entry] = estate.object_stores
    kept = entry.model_copy(update={"places": (StoredFiles(prefix="lake/exports/calls"),)})
    held = [place for place, _ in kept.located()]
    shop.put("lake/exports/calls/x", b"1")
    location = [FilePlace("the external location lake", f"{STORE}/lake", whole=False)]
    assert not list(beyond_places(estate, location, held))
    shop.put("lake/exports/letters/x", MAIL.encode())
    Paths(azure.account, shop.container).delete("lake/exports", recursive=True)
    shop.put("lake/exports/calls/x", b"1")
    [gap] = beyond_places(estate, location, held)
    assert gap.reason.startswith("1 object of the external location lake is in no place")


def estate_of(shop: Shop, **spark: str) -> Estate:
    shop.export("a", "one.parquet", b"1")
    shop.write()
    estate = load_estate(shop.base / "pii-tracer.yaml")
    return estate.model_copy(update={"spark": estate.spark.model_copy(update={"conf": spark})})


def test_everything_old_below_a_table_goes_and_nothing_beside_it(azure: BlobService, tmp_path: Path) -> None:
    shop = Shop.on(azure, tmp_path, versioning=True)
    estate_of(shop)
    for key in ("a/one.parquet", "a/two.parquet", "ab/three.parquet"):
        shop.put(key, b"old")
        shop.put(key, b"new")
    shop.snapshot("a/two.parquet")
    shop.drop("a/one.parquet")
    run = Run(shop, Action.OBJECT_CLEAR_VERSIONS, {"location": f"{STORE}/a", "plan_id": "plan-1"})  # type: ignore[arg-type]
    assert (run.seen().ok, run.probe()) == (False, Progress.PARTIAL)
    held = shop.blob("a/two.parquet").past[0]
    held.legal_hold = True
    with pytest.raises(PartlyDone, match=r"1 old version was not deleted: BlobImmutableDueToLegalHold"):
        run.outcome()
    held.legal_hold = False
    run.run()
    assert (run.seen().ok, run.probe()) == (True, Progress.DONE)
    assert {name: len(blob.past) for name, blob in shop.container.blobs.items() if blob.past} == {"ab/three.parquet": 1}


def test_spark_learns_where_the_key_is_and_not_the_key(
    azure: BlobService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop.on(azure, tmp_path)
    address = {f"{_SPARK}abfs.endpoint": "127.0.0.1:1"}
    estate = estate_of(shop, **address)
    (connector,) = connectors({"abfss", "hdfs"})
    name = f"{_SPARK}account.key.{ACCOUNT}.dfs.core.windows.net"
    told = connector.conf(estate)
    assert told[name] == f"${{env.{KEY_VARIABLE}}}"
    assert KEY not in str(told)
    monkeypatch.setenv(f"{KEY_VARIABLE}_{ACCOUNT.upper()}", KEY)
    assert connector.conf(estate)[name] == f"${{env.{KEY_VARIABLE}_{ACCOUNT.upper()}}}"
    monkeypatch.delenv(f"{KEY_VARIABLE}_{ACCOUNT.upper()}")
    (one,) = estate.object_stores
    real = estate_of(shop).model_copy(update={"object_stores": (one.model_copy(update={"endpoint": None}),)})
    assert connector.conf(real) == told
    with pytest.raises(RunError, match="the address of their DFS service"):
        connector.conf(estate_of(shop))
    elsewhere = one.model_copy(update={"store": STORE.replace("shop@", "other@"), "endpoint": None})
    with pytest.raises(RunError, match="the address of their DFS service"):
        connector.conf(estate.model_copy(update={"object_stores": (one, elsewhere)}))


def test_what_the_driver_cannot_take_is_refused_and_says_what_to_do(
    azure: BlobService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop.on(azure, tmp_path)
    address = {f"{_SPARK}abfs.endpoint": "127.0.0.1:1"}
    estate = estate_of(shop, **address)
    monkeypatch.setenv(f"{SIGNATURE}_{ACCOUNT.upper()}", "sig=x")
    with pytest.raises(RunError, match="a signature") as told:
        spark_connector.conf(estate)
    assert f"{KEY_VARIABLE}_{ACCOUNT.upper()}" in str(told.value.todo)
    own = estate_of(shop, **address, **{f"{_SPARK}account.auth.type": "OAuth"})
    assert not [name for name in spark_connector.conf(own) if "key" in name], "another way, which the estate file names"
    (one,) = estate.object_stores
    nobody = estate.model_copy(update={"object_stores": (one.model_copy(update={"anonymous": True}),)})
    with pytest.raises(RunError, match="no credentials"):
        spark_connector.conf(nobody)
    assert spark_connector.packages(SPARK_3_5) == ("org.apache.hadoop:hadoop-azure:3.3.4",)
    with pytest.raises(RunError, match=r"not supported with Spark 4\.1"):
        spark_connector.packages(SPARK_4_1)


def test_every_spelling_of_a_container_is_one_store_of_sparks() -> None:
    host = f"{ACCOUNT}.dfs.core.windows.net"
    spellings = (f"abfss://c@{host}/t", f"abfs://c@{host}/t", f"wasbs://c@{ACCOUNT}.blob.core.windows.net/t")
    assert [store_of(place) for place in (*spellings, "gs://b/t")] == ["abfss"] * 3 + ["gs"]


def test_readers_in_rust_get_the_credential_of_the_environment(
    azure: BlobService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Shop.on(azure, tmp_path).store
    told = store.reader_options()
    assert told == {
        "azure_storage_account_name": ACCOUNT,
        "azure_endpoint": azure.uri,
        "azure_allow_http": "true",
        "azure_storage_account_key": KEY,
    }
    monkeypatch.delenv(KEY_VARIABLE)
    monkeypatch.setenv(SIGNATURE, "?sv=1&sig=x")
    signed = Shop.on(azure, tmp_path).store.reader_options()
    assert signed["azure_storage_sas_key"] == "sv=1&sig=x"
    assert "azure_storage_account_key" not in signed
