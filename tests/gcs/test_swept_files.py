"""Files of a table in Cloud Storage, as sweeps and the step that clears its past see them; and how Spark reaches it."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from executors.engine.version_profiles import SPARK_3_5, SPARK_4_1
from executors.stores import fetched_jar
from executors.stores.gcs import spark_connector
from executors.stores.object_places.swept_files import ObjectFiles
from executors.stores.spark_connectors import connectors, store_of
from executors.sweep.table_folders import Places, empty_partitions, files_below, missing, refusals
from pii_tracer.config.estate_file import load_estate
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.stores.object_places.object_path import ObjectPath
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import EstateError, RunError
from pii_tracer.model.locations import object_location
from pii_tracer.run.executor_protocol import PartlyDone, Progress
from tests.gcs.running import Run
from tests.gcs.shop import BUCKET, Shop
from tests.gcssupport import Gcs


def folder_of(shop: Shop, key: str = "a") -> ObjectPath:
    return ObjectPath(shop.gcs.store(BUCKET), f"gs://{BUCKET}", key)


@pytest.fixture
def shop(gcs: Gcs, tmp_path: Path) -> Shop:
    made = Shop.of(gcs, tmp_path)
    made.export("a", "one.parquet", b"1")
    made.put("a/day=1/two.parquet", b"22")
    made.put("a/day=2/", b"")
    made.put("ab/three.parquet", b"333")
    made.write()
    return made


def test_a_listing_has_files_and_what_stands_for_folders(shop: Shop) -> None:
    folder = folder_of(shop)
    assert [(file.path, file.parts, file.size) for file in files_below(folder)] == [
        (f"gs://{BUCKET}/a/day=1/two.parquet", ("day=1", "two.parquet"), 2),
        (f"gs://{BUCKET}/a/one.parquet", ("one.parquet",), 1),
    ]
    assert empty_partitions(folder, frozenset()) == [f"gs://{BUCKET}/a/day=2/"]
    there = f"gs://{BUCKET}/a/one.parquet"
    assert missing(folder, [there, f"gs://{BUCKET}/a/gone", "/here/x"]) == [f"gs://{BUCKET}/a/gone"]


def test_what_a_sweep_removes_leaves_no_old_version(shop: Shop, gcs: Gcs) -> None:
    ObjectFiles(folder_of(shop)).remove([f"gs://{BUCKET}/a/one.parquet", f"gs://{BUCKET}/a/gone"])
    assert [o["name"] for o in gcs.there(gcs.buckets[BUCKET])] == [
        "a/day=1/two.parquet",
        "a/day=2/",
        "ab/three.parquet",
    ]
    gcs.put(BUCKET, "a/held", b"1", temporaryHold=True)
    with pytest.raises(RunError, match="1 of 2 objects could not be deleted: objectUnderActiveHold"):
        ObjectFiles(folder_of(shop)).remove([f"gs://{BUCKET}/a/held", f"gs://{BUCKET}/a/day=1/two.parquet"])


def test_a_path_answers_as_one_of_this_machine_does(shop: Shop, gcs: Gcs) -> None:
    folder = folder_of(shop)
    assert [path.name for path in folder.iterdir()] == ["one.parquet"]
    assert (folder.is_dir(), folder.is_file(), (folder / "one.parquet").is_file()) == (True, False, True)
    assert not (folder / "gone").exists()
    with pytest.raises(FileNotFoundError):
        list((folder / "gone").iterdir())
    with pytest.raises(FileNotFoundError, match="notFound"):
        (folder / "gone").open("rb")
    with (folder / "day=1" / "two.parquet").seekable() as stream:
        assert stream.read() == b"22"
    assert folder.placed(f"gs://{BUCKET}/x/y") == folder_of(shop, "x/y")
    with pytest.raises(EstateError, match="references a file outside"):
        folder.placed("gs://other/x")
    gcs.lies.refused = True
    with pytest.raises(PermissionError, match="forbidden"):
        list(folder.walk())
    with pytest.raises(RunError, match="the object store refuses: forbidden"), refusals(folder):
        list(folder.walk())


def test_places_of_tables_are_told_by_their_scheme(shop: Shop) -> None:
    places = Places(load_estate(shop.base / "pii-tracer.yaml"))
    assert places.at(f"gs://{BUCKET}/a") == folder_of(shop)
    with pytest.raises(EstateError, match="does not declare this bucket"):
        places.at("gs://other/a")


def clearing(shop: Shop) -> Run:
    parameters = {"location": f"gs://{BUCKET}/a", "plan_id": "plan-1"}
    run = Run(shop, Action.OBJECT_CLEAR_VERSIONS, parameters)
    return replace(run, notes=[])


def test_everything_old_below_a_table_goes_and_nothing_beside_it(shop: Shop, gcs: Gcs) -> None:
    for key in ("a/one.parquet", "a/day=1/two.parquet", "ab/three.parquet"):
        gcs.put(BUCKET, key, b"new")
    gcs.delete(BUCKET, "a/day=1/two.parquet")
    run = clearing(shop)
    assert run.probe() is Progress.PARTIAL
    assert not run.seen().ok
    run.notes.append(facts := run.run())
    assert sorted(item["key"] for item in facts["deleted"]) == ["a/day=1/two.parquet"] * 2 + ["a/one.parquet"]
    assert (run.seen().ok, run.probe()) == (True, Progress.DONE)
    assert gcs.states(BUCKET) == ["live"] * 3 + ["noncurrent"], "that of the neighbour stays"
    gcs.put(BUCKET, "a/one.parquet", b"by a writer who is at work")
    assert run.seen().ok, "what became old since is another one's"


def test_a_version_that_the_store_keeps_ends_the_step_in_part(shop: Shop, gcs: Gcs) -> None:
    gcs.put(BUCKET, "a/b.parquet", b"1")
    gcs.put(BUCKET, "a/b.parquet", b"2")
    gcs.put(BUCKET, "a/one.parquet", b"2")
    next(o for o in gcs.buckets[BUCKET].objects if o["data"] == b"1" and "one" in o["name"])["temporaryHold"] = True
    run = clearing(shop)
    with pytest.raises(PartlyDone, match=r"1 old version was not deleted: objectUnderActiveHold") as told:
        run.outcome()
    assert [item["key"] for item in told.value.facts["deleted"]] == ["a/b.parquet"]
    assert gcs.states(BUCKET).count("noncurrent") == 1


def test_another_table_that_came_into_the_folder_keeps_its_past(shop: Shop) -> None:
    run = clearing(shop)
    run.check()
    shop.put("a/inner/_delta_log/00000000000000000000.json", b"{}")
    with pytest.raises(RunError, match="this folder contains a different table"):
        run.check()


def test_spark_reaches_buckets_in_the_one_way_that_the_estate_file_says(shop: Shop) -> None:
    estate = load_estate(shop.base / "pii-tracer.yaml")
    (connector,) = connectors({"gs", "hdfs"})
    conf = connector.conf(estate)
    assert conf["spark.hadoop.fs.gs.storage.root.url"] == shop.gcs.endpoint
    assert conf["spark.hadoop.fs.gs.auth.null.enable"] == "true"
    one = estate.object_stores[0]
    other = one.model_copy(update={"store": "gs://other", "anonymous": False, "endpoint": None})
    real = connector.conf(estate.model_copy(update={"object_stores": (other,)}))
    assert not [name for name in real if "auth" in name or "root.url" in name], "the machine's own account"
    with pytest.raises(RunError, match="Spark uses one for all"):
        connector.conf(estate.model_copy(update={"object_stores": (one, other)}))
    assert [store_of(place) for place in ("s3a://b/t", "gs://b/t", "hdfs://n/t", "/t")] == ["s3", "gs", None, None]


def test_the_connectors_jar_is_fetched_whole_or_not_at_all(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    estate, asked = load_estate(shop.base / "pii-tracer.yaml"), list[list[str]]()

    def ivy(words: list[str], **_: Any) -> None:
        asked.append(words)
        pattern = words[words.index("-retrieve") + 1]
        wanted = Path(words[words.index("-ivy") + 1]).read_text()
        assert 'm:classifier="shaded"' in wanted
        if len(asked) == 1:
            raise subprocess.CalledProcessError(1, "ivy")
        Path(pattern.rpartition("/")[0], "gcs-connector-hadoop3-2.2.26-shaded.jar").write_bytes(b"jar")

    monkeypatch.setattr(fetched_jar.subprocess, "run", ivy)
    with pytest.raises(RunError, match="cannot be fetched: CalledProcessError"):
        spark_connector.jars(estate, SPARK_3_5)
    (jar,) = spark_connector.jars(estate, SPARK_3_5)
    assert jar.read_bytes() == b"jar"
    assert spark_connector.jars(estate, SPARK_3_5) == (jar,)
    assert len(asked) == 2, "once it is there, nobody asks again"
    assert list(jar.parent.iterdir()) == [jar]
    with pytest.raises(RunError, match=r"not supported with Spark 4\.1"):
        spark_connector.jars(estate, SPARK_4_1)
    own = estate.model_copy(update={"spark": estate.spark.model_copy(update={"conf": {"spark.jars": "/mine.jar"}})})
    assert spark_connector.jars(own, SPARK_4_1) == ()


def test_delta_is_the_format_of_these_tables() -> None:
    from pii_tracer.lake.formats.registry import format_of

    assert "gs" in format_of(DELTA).erased_in
    assert object_location("gs://b/t/").key == "t"
