"""A Delta table's folder in S3 is read, swept and emptied as one of this machine is. Without Spark."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from executors.engine.session_settings import session_conf
from executors.formats.delta import sweep_rules
from executors.stores.spark_connectors import stores_of
from executors.sweep import table_folders
from executors.sweep.table_folders import Places
from pii_tracer.lake.formats.delta.log_files import (
    complete_checkpoint,
    files_below_checkpoint,
    mentioned,
    tombstones_with,
)
from pii_tracer.lake.formats.delta.transaction_log import read_log
from pii_tracer.lake.stores.s3.archive_versions import s3_clients
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import RunError
from pii_tracer.model.locations import S3Location
from sample_lineage import s3_standin
from tests.executors.stores.s3.test_s3_clear import copy
from tests.review.plans import plan
from tests.s3support import MATCH, World, estate, standin, world
from tests.sparksession import small_spark

__all__ = ["standin", "world"]

PART = f"part-00000-{uuid.UUID(int=7)}-c000.snappy.parquet"
DAY = 86_400


@dataclass(frozen=True)
class Twins:
    """A table on this machine, and the same files in S3."""

    world: World
    here: Path
    there: S3Path

    def put(self, name: str, body: bytes = b"x") -> str:
        location = self.there.location
        self.world.put(location.bucket, location.prefix + name, body)
        return f"{self.there}/{name}"

    def names(self) -> set[str]:
        return {path.removeprefix(f"{self.there}/") for path, _, _ in self.there.walk()}

    def alike(self, path: Any) -> str:
        return str(path).replace(str(self.there), str(self.here))


def table_at(folder: Path) -> None:
    """Two commits, a checkpoint, an overwrite that removes files, and another commit; days that need escapes."""
    days = ["a b%c", "2026-11-01"]
    for n, mode in enumerate(("append", "append", "overwrite", "append")):
        rows = pa.table({"id": [2 * n, 2 * n + 1], "day": days})
        write_deltalake(folder, rows, mode=mode, partition_by=["day"])
        if n in (1, 2):
            DeltaTable(folder).create_checkpoint()


@pytest.fixture
def twins(world: World, tmp_path: Path) -> Twins:
    bucket, folder = world.new("twins"), tmp_path / "t"
    table_at(folder)
    client = world.client()
    for path in folder.rglob("*"):
        if path.is_file():
            client.put_object(Bucket=bucket, Key=f"wh/t/{path.relative_to(folder)}", Body=path.read_bytes())
    return Twins(world, folder, S3Path(S3Location(bucket=bucket, key="wh/t"), client))


def test_a_log_is_read_alike_here_and_in_s3(twins: Twins) -> None:
    here, there = twins.here, twins.there
    assert complete_checkpoint(there) == complete_checkpoint(here) == 2
    assert {twins.alike(p) for p in read_log(there).needed} == read_log(here).needed
    assert len(read_log(here).needed) == 4
    assert {twins.alike(p): at for p, at in mentioned(there).items()} == mentioned(here)
    below = [twins.alike(p) for p in files_below_checkpoint(there, 2)]
    assert below == [str(p) for p in files_below_checkpoint(here, 2)]
    assert len(below) == 3
    assert tombstones_with(there, ["a b%c"]) == tombstones_with(here, ["a b%c"]) > 0
    assert sweep_rules.missing(there) == sweep_rules.missing(here) == []
    assert [twins.alike(f.path) for f in sweep_rules.unreferenced(there)] == [
        f.path for f in sweep_rules.unreferenced(here)
    ]
    for history in (True, False):
        ours, theirs = read_log(here, history=history), read_log(there, history=history)
        assert (ours.version, ours.configuration, ours.features) == (
            theirs.version,
            theirs.configuration,
            theirs.features,
        )
        assert [twins.alike(f.path) for f in theirs.files] == [str(f.path) for f in ours.files]
    assert read_log(here, history=False).files == read_log(here).files


def test_what_may_go_and_what_stays(twins: Twins) -> None:
    """A dead writer's file goes, one in flight stays; so does what nobody's writer of Delta has named."""
    old = {file.path for file in sweep_rules.unreferenced(twins.there)}
    dead = twins.put(f"day=x/{PART}")
    s3_standin.age(twins.world.endpoint_url, 2 * DAY)
    flying, strange = twins.put(PART), twins.put("finance.parquet")
    found = sweep_rules.due(twins.there, 0, 24)
    assert {file.path for file in found.going} == {*old, dead}
    assert found.strange == 1
    stopped = {file.path for file in sweep_rules.due(twins.there, 0, 0).going}
    assert stopped == {*old, dead, flying}
    assert strange not in stopped
    s3_standin.age(twins.world.endpoint_url, -DAY)
    assert {file.path for file in sweep_rules.due(twins.there, 0, 0).going} == stopped, "S3's clock is ahead of ours"
    assert old.isdisjoint(f.path for f in sweep_rules.due(twins.there, 200, 24).going), "time travel"
    table_folders.remove(twins.there, [file.path for file in found.going])
    left = sweep_rules.due(twins.there, 0, 24)
    assert (left.going, left.strange) == ((), 1)
    assert sweep_rules.missing(twins.there) == []


def test_what_stands_for_an_empty_partition_goes(twins: Twins) -> None:
    """Objects that name a person's value and hold nothing."""
    gone = [twins.put(name, b"") for name in ("email=x/", "email=y/day=1/", "email=y/", "email=z_$folder$")]
    twins.put("email=x/day=2_$folder$", b"")
    kept = ["email=w/", "day=2026-11-01/", "plain/", "", "_delta_log/", "_checkpoints/a=b/", "email=v/"]
    for name in kept:
        twins.put(name, b"text" if name == "email=v/" else b"")
    twins.put(f"email=w/{PART}")
    before = twins.names()
    found = sweep_rules.empty_partitions(twins.there)
    assert {*gone, f"{twins.there}/email=x/day=2_$folder$"} == set(found)
    table_folders.remove_partitions(twins.there, found)
    assert sweep_rules.empty_partitions(twins.there) == []
    assert len(before - twins.names()) == 5


@pytest.mark.parametrize("inner", ["in/_delta_log/0.json", "a=1/in/.hoodie/x", "in/metadata/v1.metadata.json"])
def test_a_table_inside_is_not_swept(twins: Twins, inner: str) -> None:
    twins.put(inner)
    with pytest.raises(RunError, match="a different table") as refused:
        sweep_rules.unreferenced(twins.there)
    assert "a=1" not in str(refused.value.where)


def test_a_file_that_is_not_there_is_told(twins: Twins) -> None:
    live = sorted(read_log(twins.there).needed)
    table_folders.remove(twins.there, live[:1])
    assert sweep_rules.missing(twins.there) == live[:1]


def test_manifests_that_lead_other_engines_astray_are_seen_in_s3(twins: Twins) -> None:
    live = sorted(read_log(twins.there).needed)
    twins.put("_symlink_format_manifest/manifest", "\n".join(p.replace("s3:", "s3a:") for p in live).encode())
    assert sweep_rules.stale_manifests(twins.there) == []
    stale = twins.put("_symlink_format_manifest/day=1/manifest", b"s3a://b/wh/t/gone.parquet\n")
    assert sweep_rules.stale_manifests(twins.there) == [stale]


def test_many_files_are_deleted_by_few_requests(twins: Twins) -> None:
    requests: list[str] = []
    twins.there.client.meta.events.register("before-call.s3", lambda model, **_: requests.append(model.name))
    table_folders.remove(twins.there, [f"{twins.there}/day=1/{n}" for n in range(2500)])
    assert requests == ["DeleteObjects"] * 3
    requests.clear()
    sweep_rules.missing(twins.there)
    assert requests.count("ListObjectsV2") < 10
    assert requests.count("HeadObject") < 5, "of the checkpoint, not of each file"


def test_s3_that_refuses_is_told_by_its_code_alone(world: World) -> None:
    with pytest.raises(RunError, match=r"S3 refuses: NoSuchBucket|S3 refuses: FileNotFoundError") as refused:
        Places(estate(world.endpoint_url)).at("s3://nobody-has-this/wh/t")
    assert "exist" not in str(refused.value)


def test_questions_that_pathlib_answers(twins: Twins, tmp_path: Path) -> None:
    for name in ("_delta_log", "_delta_log/00000000000000000000.json", "day=2026-11-01", "nothing", "day"):
        here, there = twins.here / name, twins.there / name
        assert (there.exists(), there.is_dir(), there.is_file()) == (here.exists(), here.is_dir(), here.is_file()), name
    log = "_delta_log/00000000000000000000.json"
    assert (twins.there / log).read_text(encoding="utf-8") == (twins.here / log).read_text(encoding="utf-8")


def test_of_a_large_file_only_the_footer_is_fetched(twins: Twins) -> None:
    sink = pa.BufferOutputStream()
    numbers = pa.array(range(600_000), pa.int64())
    pq.write_table(pa.table({"id": numbers}), sink, compression="none", use_dictionary=False)
    data = sink.getvalue().to_pybytes()
    twins.put("big.parquet", data)
    read: list[int] = []
    twins.there.client.meta.events.register(
        "after-call.s3.GetObject", lambda parsed, **_: read.append(parsed["ContentLength"])
    )
    with (twins.there / "big.parquet").seekable() as stream:
        assert pq.read_schema(stream).names == ["id"]
    assert sum(read) < len(data) / 4
    with (twins.there / "big.parquet").seekable() as stream:
        assert stream.read() == data
        assert stream.seek(5) == 5
        assert stream.read(3) == data[5:8]
        assert stream.seek(-4, 2) == len(data) - 4
        assert stream.read(100) == data[-4:]


def test_a_file_that_is_written_again_while_it_is_read_is_an_error(twins: Twins) -> None:
    twins.put("a.bin", b"a" * 1_000_000)
    with (twins.there / "a.bin").seekable() as stream:
        stream.read(1)
        twins.put("a.bin", b"b" * 1_000_000)
        stream.seek(900_000)
        with pytest.raises(OSError, match=r"PreconditionFailed|412"):
            stream.read(1)


def test_only_a_plan_with_a_table_in_s3_has_spark_reach_it(world: World, tmp_path: Path) -> None:
    lake, where = estate(world.endpoint_url, spark=small_spark()), copy(MATCH)
    assert stores_of(plan([], [where])) == {"s3"}
    assert not stores_of(plan([], [where.model_copy(update={"location": "/wh/orders"})]))
    there = where.model_copy(update={"location": "gs://lake/orders"})
    assert stores_of(plan([], [there])) == {"gs"}
    assert not stores_of(plan([], [there.model_copy(update={"format": Format.PARQUET})])), "a bare folder"
    assert "hadoop-aws" in session_conf(lake, tmp_path, stores={"s3"})["spark.jars.packages"]
    assert "hadoop-aws" not in session_conf(lake, tmp_path)["spark.jars.packages"]
    assert s3_clients(lake)
