"""The sweep on real tables: what the class keeps stays readable, what nobody needs goes, nothing else does."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from executors.formats.delta.table_sweep import DeltaSweep
from executors.formats.iceberg.table_sweep import IcebergSweep
from executors.sweep import table_sweep as sweeping
from tests.executors.formats.iceberg import icebergjava
from tests.retention.hoard import Hoard, age_delta, age_files, age_iceberg, hold
from tests.sparksession import rows_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ORPHAN, YOUNG = (f"00000-0-{uuid.uuid4()}.parquet" for _ in range(2))
SEVEN = {"delta.deletedFileRetentionDuration": "interval 7 days"}


@pytest.fixture
def hoard(tmp_path: Path, request: pytest.FixtureRequest) -> Hoard:
    return Hoard(tmp_path, f"hoard{abs(hash(request.node.name)) % 10**9}")


def result(hoard: Hoard, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = hoard.command("sweep", "--format", "json", *words)
    data = json.loads(capsys.readouterr().out)
    return code, data | {"by": {t["table"]: t for t in data["tables"]}}


def data_files(folder: Path) -> set[str]:
    return {p.name for p in folder.rglob("*.parquet") if "_delta_log" not in p.parts}


def test_delta_keeps_what_the_class_keeps(
    spark: SparkSession, hoard: Hoard, capsys: pytest.CaptureFixture[str]
) -> None:
    path = hoard.delta(spark, "t", 5)
    hoard.write(tables={"delta/t": "pii"})
    age_files(path, 40)
    age_delta(spark, path, 30, 4)
    # version 4's file was replaced a moment ago by version 5: both are inside the class
    code, told = result(hoard, capsys)
    assert code == 0
    assert told["by"]["delta/t"]["files"] == 3
    assert len(data_files(path)) == 5
    code, done = result(hoard, capsys, "--apply")
    assert code == 0
    assert done["by"]["delta/t"]["files"] == 3
    assert done["by"]["delta/t"]["bytes"] == told["by"]["delta/t"]["bytes"] > 0
    assert len(data_files(path)) == 2
    assert [tuple(r) for r in spark.sql(f"SELECT * FROM delta.`{path}`").collect()] == [(4, "v4")]
    before = spark.read.format("delta").option("versionAsOf", 4).load(str(path))
    assert [tuple(r) for r in before.collect()] == [(3, "v3")]
    (record,) = [p for p in (hoard.base / "state" / "sweeps").iterdir() if json.loads(p.read_text())["applied"]]
    assert json.loads(record.read_text())["finished"]


def test_delta_keeps_what_the_class_keeps_longer_than_the_table(
    spark: SparkSession, hoard: Hoard, capsys: pytest.CaptureFixture[str]
) -> None:
    """Delta 4.1 and later pass over VACUUM's RETAIN, and go by the table's own setting (hazard D3)."""
    path = hoard.delta(spark, "t", 4)
    hoard.write(tables={"delta/t": "long"}, classes={"long": 60})
    two_days = "'delta.deletedFileRetentionDuration' = 'interval 2 days'"
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({two_days})")
    half = path / f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
    half.write_bytes(b"of a writer that died")
    age_files(path, 100)
    age_delta(spark, path, 30, 3)
    then = time.time() - 30 * 86_400
    os.utime(half, (then, then))
    before = data_files(path)
    assert result(hoard, capsys)[1]["by"]["delta/t"]["files"] == 0
    assert result(hoard, capsys, "--apply")[1]["by"]["delta/t"]["files"] == 0
    assert data_files(path) == before
    age_delta(spark, path, 40, 2)
    assert result(hoard, capsys, "--apply")[1]["by"]["delta/t"]["files"] == 1
    assert len(before - data_files(path)) == 1


def test_partitions_that_are_kept_longer_stay(
    spark: SparkSession, hoard: Hoard, capsys: pytest.CaptureFixture[str]
) -> None:
    path = hoard.base / "delta" / "t"
    spark.sql(f"CREATE TABLE delta.`{path}` (uid INT, land STRING) USING delta PARTITIONED BY (land)")
    for n in range(2):
        for land in ("DE", "FR"):
            spark.sql(f"INSERT INTO delta.`{path}` REPLACE WHERE land = '{land}' SELECT {n}, '{land}'")
    age_files(path, 40)
    age_delta(spark, path, 30, 4)
    old = {land: set((path / f"land={land}").glob("*.parquet")) for land in ("DE", "FR")}
    hoard.write(tables={"delta/t": "pii"}, classes={"long": 60}, partitions={"delta/t": {"land=DE": "long"}})
    assert result(hoard, capsys, "--apply")[1]["by"]["delta/t"]["files"] == 1
    left = {land: set((path / f"land={land}").glob("*.parquet")) for land in ("DE", "FR")}
    assert left["DE"] == old["DE"]
    assert len(old["FR"] - left["FR"]) == 1
    hoard.write(tables={"delta/t": "pii"}, classes={"short": 2}, partitions={"delta/t": {"land=DE": "short"}})
    [skipped] = result(hoard, capsys)[1]["skipped"]
    assert skipped["reason"].startswith("land=DE has fewer days than its table")


def test_iceberg_expires_by_class_and_tells_who_holds_the_rest(
    spark: SparkSession, hoard: Hoard, capsys: pytest.CaptureFixture[str]
) -> None:
    table = hoard.iceberg(spark, 4)
    first = spark.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at").first()
    assert first is not None
    spark.sql(f"ALTER TABLE {table} CREATE TAG q3 AS OF VERSION {first[0]}")
    spark.sql(f"ALTER TABLE {table} CREATE BRANCH audit AS OF VERSION {first[0]} RETAIN 400 DAYS")
    hoard.write(tables={table: "pii"})
    folder = hoard.iceberg_folder
    age_iceberg(folder, 30, 3)
    (folder / "data" / ORPHAN).write_bytes(b"left by a writer that died")
    age_files(folder, 40)
    (folder / "data" / YOUNG).write_bytes(b"of a writer that has not committed yet")
    code, told = result(hoard, capsys)
    assert code == 0
    item = told["by"][table]
    assert item["snapshots"] == 2
    assert {(h["ref"], h["snapshot"], h["until"] is None) for h in item["held"]} == {
        ("q3", str(first[0]), True),
        ("audit", str(first[0]), False),
    }
    before = data_files(folder)
    assert result(hoard, capsys, "--apply")[1]["by"][table]["files"] == item["files"] >= 3
    assert before - data_files(folder) >= {ORPHAN}
    assert YOUNG in data_files(folder)
    assert len(data_files(folder)) == 3  # the head's, the tag's, and the young one
    assert [tuple(r) for r in spark.sql(f"SELECT * FROM {table}").collect()] == [(3, "v3")]
    assert [tuple(r) for r in rows_at(spark, table, "tag", "q3").collect()] == [(0, "v0")]
    hoard.command("sweep")
    assert f"tag q3 keeps snapshot {first[0]} until never" in capsys.readouterr().out


def test_an_inventory_of_another_scheme_never_costs_a_live_file(
    spark: SparkSession, hoard: Hoard, capsys: pytest.CaptureFixture[str]
) -> None:
    table = hoard.iceberg(spark, 2)
    path = hoard.delta(spark, "t", 2)
    hoard.write(tables={table: "pii", "delta/t": "pii"})
    age_files(hoard.base, 40)
    listing = hoard.base / "listing.csv"
    rows = [p for p in hoard.base.rglob("*") if p.is_file() and ("lake" in p.parts or "delta" in p.parts)]
    for prefix in ("s3://bucket", "s3a://bucket"):
        lines = [f"{prefix}{p},{p.stat().st_size},false,{int(p.stat().st_mtime * 1000)}" for p in rows]
        listing.write_text("\n".join(["path,length,isDir,modificationTime", *lines]))
        before = {p: p.read_bytes() for p in rows}
        code, found = result(hoard, capsys, "--apply", "--inventory", str(listing))
        assert code == 7
        assert all("lists no file of this table" in t["failed"] for t in found["tables"])
        assert {p: p.read_bytes() for p in rows} == before
    code, found = result(hoard, capsys, "--apply", "--inventory", str(listing), "--map", "s3a://bucket/=/")
    assert (code, [t["failed"] for t in found["tables"]]) == (0, [None, None])
    assert spark.sql(f"SELECT count(*) FROM {table}").first()[0] == 1  # type: ignore[index]
    assert spark.sql(f"SELECT count(*) FROM delta.`{path}`").first()[0] == 1  # type: ignore[index]


def test_a_writer_that_commits_during_the_sweep_loses_nothing(
    spark: SparkSession, hoard: Hoard, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An old uncommitted file is told as unneeded; before it is removed its writer commits it."""
    path = hoard.delta(spark, "t", 2)
    hoard.write(tables={"delta/t": "pii"})
    spark.range(3, 4).selectExpr("cast(id as int) uid", "'late' v").coalesce(1).write.parquet(
        str(hoard.base / "staged")
    )
    (staged,) = (hoard.base / "staged").glob("*.parquet")
    late = path / staged.name
    late.write_bytes(staged.read_bytes())
    age_files(path, 40)
    real = sweeping._apply

    def commit_first(*arguments: Any) -> Any:
        log = path / "_delta_log"
        number = max(int(p.stem) for p in log.glob("*.json")) + 1
        add = {
            "path": late.name,
            "partitionValues": {},
            "size": late.stat().st_size,
            "modificationTime": 1,
            "dataChange": True,
        }
        (log / f"{number:020}.json").write_text(json.dumps({"add": add}) + "\n")
        return real(*arguments)

    assert result(hoard, capsys)[1]["by"]["delta/t"]["files"] == 1
    monkeypatch.setattr(sweeping, "_apply", commit_first)
    code, found = result(hoard, capsys, "--apply")
    assert code == 0
    assert found["by"]["delta/t"]["files"] == 0
    assert late.exists()
    assert sorted(r[0] for r in spark.sql(f"SELECT uid FROM delta.`{path}`").collect()) == [1, 3]


def test_commits_between_the_looks_of_an_iceberg_sweep_lose_nothing(
    spark: SparkSession, hoard: Hoard, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old files are told as unneeded, a snapshot as expired; before they go a writer commits the files, one at each
    moment, and somebody tags the snapshot.
    """
    table = hoard.iceberg(spark, 4)
    folder, writer = hoard.iceberg_folder, Importing(spark, table)
    oldest = spark.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at").first()[0]  # type: ignore[index]
    first = Path(spark.sql(f"SELECT file_path FROM {table}.all_data_files").collect()[-1][0])
    late = [first.with_name(f"00000-{n}-{uuid.uuid4()}.parquet") for n in range(3)]
    [row] = spark.read.parquet(str(first)).collect()
    for file in late:
        file.write_bytes(first.read_bytes())
    age_iceberg(folder, 30, 3)
    age_files(folder, 40)
    hoard.write(tables={table: "pii"})
    told = result(hoard, capsys)[1]["by"][table]
    assert told["snapshots"] == 3

    def tagging() -> None:
        writer.commit(late[1])
        spark.sql(f"ALTER TABLE {table} CREATE TAG found AS OF VERSION {oldest}")

    beside(monkeypatch, sweeping, "_listed", after=lambda: writer.commit(late[0]))
    beside(monkeypatch, sweeping, "_apply", before=tagging)
    beside(monkeypatch, IcebergSweep, "forget_versions", after=lambda: writer.commit(late[2]))
    code, done = result(hoard, capsys, "--apply")
    assert (code, done["by"][table]["failed"], writer.files) == (0, None, late)
    assert 0 < done["by"][table]["files"] < told["files"]
    assert sorted(tuple(r) for r in spark.table(table).collect()) == sorted(
        [tuple(row), tuple(row), tuple(row), (3, "v3")]
    )
    assert [tuple(r) for r in rows_at(spark, table, "tag", "found").collect()] == [(0, "v0")]
    for part, column in (("all_data_files", "file_path"), ("all_manifests", "path"), ("snapshots", "manifest_list")):
        named = [Path(r[0]) for r in spark.sql(f"SELECT {column} FROM {table}.{part}").collect()]
        assert [path for path in named if not path.exists()] == []


def test_files_that_the_engine_leaves_without_a_word_are_told(
    spark: SparkSession, hoard: Hoard, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Iceberg's expiry does in a folder that it may not write into."""
    path = hoard.delta(spark, "t", 3)
    hoard.write(tables={"delta/t": "pii"})
    age_files(path, 40)
    age_delta(spark, path, 30, 2)
    due = result(hoard, capsys)[1]["by"]["delta/t"]["files"]
    real = DeltaSweep._vacuum
    monkeypatch.setattr(DeltaSweep, "_vacuum", lambda self, view, *, dry: real(self, view, dry=True))
    code, found = result(hoard, capsys, "--apply")
    assert (code, found["by"]["delta/t"]["files"]) == (7, 0)
    assert found["by"]["delta/t"]["failed"].startswith(f"{due} of {due} unneeded file")


@dataclass
class Importing:
    """A writer that commits files which lie in the table's folder already."""

    spark: SparkSession
    table: str
    files: list[Path] = field(default_factory=list)

    def commit(self, file: Path) -> None:
        java: Any = self.spark
        table = icebergjava.load(self.spark, self.table)
        made = java._jvm.org.apache.iceberg.DataFiles.builder(table.spec()).withPath(str(file))
        made = made.withFormat(java._jvm.org.apache.iceberg.FileFormat.PARQUET).withRecordCount(1)
        table.newAppend().appendFile(made.withFileSizeInBytes(file.stat().st_size).build()).commit()
        self.files.append(file)


def beside(
    monkeypatch: pytest.MonkeyPatch,
    where: Any,
    name: str,
    before: Callable[[], None] | None = None,
    after: Any = None,
) -> None:
    """Let something happen just before or after a part of the sweep, once."""
    real, acts = getattr(where, name), [before, after]

    def watched(*arguments: Any, **named: Any) -> Any:
        if acts[0]:
            acts[0]()
        answer = real(*arguments, **named)
        if acts[1]:
            acts[1]()
        acts[:] = [None, None]
        return answer

    monkeypatch.setattr(where, name, watched)


def test_stale_inventories_and_files_written_again(
    spark: SparkSession, hoard: Hoard, capsys: pytest.CaptureFixture[str]
) -> None:
    path = hoard.delta(spark, "t", 1)
    hoard.write(tables={"delta/t": "pii"})
    again, newer = (path / f"part-00000-{uuid.uuid4()}-c000.snappy.parquet" for _ in range(2))
    again.write_bytes(b"x")
    age_files(path, 40)
    lines = [f"{p},{p.stat().st_size},false,{int(p.stat().st_mtime * 1000)}" for p in path.rglob("*.parquet")]
    lines.append(f"file://{path}/part-0-{uuid.uuid4()}.parquet,7,false,1000")
    listing = hoard.base / "listing.csv"
    listing.write_text("\n".join(["path,length,isDir,modificationTime", *lines]))
    now = time.time()
    os.utime(again, (now, now))
    newer.write_bytes(b"written after the inventory")
    os.utime(newer, (now - 40 * 86400, now - 40 * 86400))
    code, found = result(hoard, capsys, "--apply", "--inventory", str(listing))
    item = found["by"]["delta/t"]
    assert (code, item["files"], item["gone"], item["changed"]) == (0, 0, 1, 1)
    assert again.exists()
    assert newer.exists()


def test_partition_values_that_need_escapes_are_no_orphans(
    spark: SparkSession, hoard: Hoard, capsys: pytest.CaptureFixture[str]
) -> None:
    path = hoard.base / "delta" / "p"
    hoard.write(tables={"delta/p": "pii"})
    spark.sql(f"CREATE TABLE delta.`{path}` (uid INT, city STRING) USING delta PARTITIONED BY (city)")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, 'New Delhi'), (2, '100%'), (3, 'a:b/c'), (4, 'ü%20ß')")
    age_files(path, 40)
    before = data_files(path)
    code, found = result(hoard, capsys, "--apply")
    assert (code, found["by"]["delta/p"]["failed"], found["by"]["delta/p"]["files"]) == (0, None, 0)
    assert data_files(path) == before
    assert spark.sql(f"SELECT count(*) FROM delta.`{path}`").first()[0] == 4  # type: ignore[index]


def test_what_is_not_swept_and_why(spark: SparkSession, hoard: Hoard, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("unnamed", "held", "longer", "cloned"):
        hoard.delta(spark, name, 1)
    longer = hoard.base / "delta" / "longer"
    spark.sql(
        f"ALTER TABLE delta.`{longer}` SET TBLPROPERTIES ('delta.deletedFileRetentionDuration'='interval 9 days')"
    )
    spark.sql(f"CREATE TABLE delta.`{hoard.base}/delta/clone` SHALLOW CLONE delta.`{hoard.base}/delta/cloned`")
    names = ("held", "longer", "cloned")
    hoard.write(tables={f"delta/{n}": "pii" for n in names}, holds=[hold("delta/held")])
    age_files(hoard.base / "delta", 40)
    code, found = result(hoard, capsys, "--apply")
    reasons = {s["table"]: s["reason"] for s in found["skipped"]}
    assert (code, found["tables"]) == (0, [])
    assert "no retention class" in reasons["delta/unnamed"]
    assert reasons["delta/held"] == "hold h1 (case 7) without an end"
    assert "enforce" in reasons["delta/longer"]
    assert "shallow clone" in reasons["delta/cloned"]


@pytest.mark.parametrize("listed", [False, True], ids=["walked", "listed"])
def test_a_table_inside_another_ones_folder_keeps_its_files(
    spark: SparkSession, hoard: Hoard, capsys: pytest.CaptureFixture[str], listed: bool
) -> None:
    """VACUUM of the outer one takes the inner one's files for orphans."""
    outer, inner = hoard.delta(spark, "outer", 2), hoard.delta(spark, "outer/inner", 1)
    hoard.write(tables={"delta/outer": "pii"})
    age_files(hoard.base, 40)
    before = {p: p.read_bytes() for p in inner.rglob("*") if p.is_file()}
    words = []
    if listed:
        listing = hoard.base / "listing.csv"
        rows = [p for p in outer.rglob("*") if p.is_file()]
        lines = [f"{p},{p.stat().st_size},false,{int(p.stat().st_mtime * 1000)}" for p in rows]
        listing.write_text("\n".join(["path,length,isDir,modificationTime", *lines]))
        words = ["--inventory", str(listing)]
    code, found = result(hoard, capsys, "--apply", "--table", "delta/outer", *words)
    assert {p: p.read_bytes() for p in inner.rglob("*") if p.is_file()} == before
    assert (code, found["tables"]) == (0, [])
    assert "a table is inside the folder" in found["skipped"][0]["reason"]


def test_files_that_look_like_somebody_elses_are_not_swept(
    spark: SparkSession, hoard: Hoard, capsys: pytest.CaptureFixture[str]
) -> None:
    path = hoard.delta(spark, "t", 2)
    (path / "notes of the finance team.csv").write_text("somebody's")
    hoard.write(tables={"delta/t": "pii"})
    age_files(hoard.base, 40)
    code, found = result(hoard, capsys, "--apply")
    assert (path / "notes of the finance team.csv").exists()
    assert (code, found["tables"]) == (0, [])
    assert "with names that" in found["skipped"][0]["reason"]
