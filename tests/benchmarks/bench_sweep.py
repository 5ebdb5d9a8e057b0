"""The inventory sweep against the engine's own listing VACUUM, on S3A. Exits 1 when a target is missed.

python -m tests.benchmarks.bench_sweep [--files 10000,100000] [--folders 1000] [--strays 20,100] [--latency 50]

The server is MinIO on loopback (`make stores`), and every request to it arrives later by --latency milliseconds, in
both arms alike: https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance-design-patterns.html
speaks of 100 to 200 for a small object. The sweep is its two passes: a dry one over the whole inventory, a look at each
file that is to go, and one over exactly those.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tarfile
import tempfile
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from executors.engine.spark_session import open_session
from executors.engine.version_profiles import installed_profile
from executors.formats.delta.table_sweep import vacuum_listed
from tests import storeservers
from tests.benchmarks.erase_tables import estate, timed
from tests.benchmarks.slow_proxy import slow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pii_tracer.lake.stores.s3.object_versions import S3Client

HADOOP_AWS = "org.apache.hadoop:hadoop-aws:3.3.4"
BUCKET = "sweep"
_IN_ONE_UPLOAD = 20_000
_AT_ONCE = 16
_SCHEMA = {"type": "struct", "fields": [{"name": "uid", "type": "long", "nullable": True, "metadata": {}}]}


@dataclass(frozen=True)
class Table:
    """A Delta table on the server of so many files in so many folders, all of them live; its data is never read."""

    client: S3Client
    name: str
    files: int
    folders: int

    @property
    def uri(self) -> str:
        """As Spark names it."""
        return f"s3a://{BUCKET}/{self.name}"

    def paths(self) -> list[str]:
        """Of the live files, below the table."""
        return [f"day={n % self.folders:04d}/part-{n:06d}.parquet" for n in range(self.files)]

    def make(self) -> None:
        """Write the files and a log that names them."""
        for start in range(0, self.files, _IN_ONE_UPLOAD):
            self._unpacked(self.paths()[start : start + _IN_ONE_UPLOAD])
        meta = {"id": str(uuid.uuid4()), "format": {"provider": "parquet", "options": {}}, "partitionColumns": []}
        actions: list[dict[str, Any]] = [
            {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
            {"metaData": meta | {"schemaString": json.dumps(_SCHEMA), "configuration": {}, "createdTime": 1}},
        ]
        add = {"partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
        actions += [{"add": {"path": path} | add} for path in self.paths()]
        body = "\n".join(map(json.dumps, actions)).encode()
        self.client.put_object(Bucket=BUCKET, Key=f"{self.name}/_delta_log/{0:020d}.json", Body=body)

    def _unpacked(self, paths: list[str]) -> None:
        """MinIO unpacks an archive into objects, which is much faster than as many uploads."""
        sink = io.BytesIO()
        with tarfile.open(fileobj=sink, mode="w") as archive:
            for path in paths:
                entry = tarfile.TarInfo(f"{self.name}/{path}")
                entry.size, entry.mtime = 1, time.time()
                archive.addfile(entry, io.BytesIO(b"-"))
        self.client.put_object(
            Bucket=BUCKET, Key=f"{self.name}.tar", Body=sink.getvalue(), Metadata={"Snowball-Auto-Extract": "true"}
        )

    def strays(self, count: int) -> list[str]:
        """Put files that no commit names into the folders."""
        step = max(1, self.folders // count)
        paths = [f"day={n * step % self.folders:04d}/part-stray-{n:04d}.parquet" for n in range(count)]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda p: self.client.put_object(Bucket=BUCKET, Key=f"{self.name}/{p}", Body=b"-"), paths))
        return paths

    def left(self) -> set[str]:
        """What the server holds, outside the log."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{self.name}/day=")
        return {item["Key"].partition("/")[2] for page in pages for item in page.get("Contents", [])}

    def check(self) -> None:
        """Exactly the live files are there."""
        if self.left() != set(self.paths()):
            raise SystemExit("a sweep left strays, or took what is live")


def listing(spark: SparkSession, table: Table) -> float:
    """Seconds of the engine's own VACUUM."""
    return timed(lambda: spark.sql(f"VACUUM delta.`{table.uri}` RETAIN 0 HOURS").collect())


def sweep(spark: SparkSession, table: Table, near: S3Client, strays: list[str], folder: Path) -> float:
    """Seconds of the inventory sweep. near: a client with the latency; the inventory is there before, as S3's is."""
    written = int(time.time() * 1000)
    inventory = folder / f"{uuid.uuid4().hex}.parquet"
    _inventory(table, [*table.paths(), *strays], written, inventory)

    def work() -> None:
        told = vacuum_listed(spark, f"delta.`{table.uri}`", _query(spark, inventory), 0, dry=True)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            keys = [f"{table.name}/{path.partition(f'{BUCKET}/{table.name}/')[2]}" for path in told]
            list(pool.map(lambda key: near.head_object(Bucket=BUCKET, Key=key), keys))
        going = folder / f"{uuid.uuid4().hex}.parquet"
        _inventory(table, [key.partition("/")[2] for key in keys], written, going)
        vacuum_listed(spark, f"delta.`{table.uri}`", _query(spark, going), 0, dry=False)

    return timed(work)


def _inventory(table: Table, paths: list[str], modified: int, file: Path) -> None:
    rows = len(paths)
    columns = {
        "path": pa.array([f"{table.uri}/{path}" for path in paths]),
        "length": pa.array([1] * rows, pa.int64()),
        "isDir": pa.array([False] * rows),
        "modificationTime": pa.array([modified] * rows, pa.int64()),
    }
    pq.write_table(pa.table(columns), file)


def _query(spark: SparkSession, file: Path) -> str:
    spark.read.parquet(str(file)).createOrReplaceTempView("sweep_listed")
    return "SELECT path, length, isDir, modificationTime FROM sweep_listed"


def _session(port: int, base: Path) -> SparkSession:
    conf = {
        "spark.jars.packages": ",".join((*installed_profile().packages, HADOOP_AWS)),
        "spark.hadoop.fs.s3a.endpoint": f"http://127.0.0.1:{port}",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.access.key": storeservers.ACCESS,
        "spark.hadoop.fs.s3a.secret.key": storeservers.SECRET,
        "spark.hadoop.fs.s3a.attempts.maximum": "3",
        "spark.hadoop.fs.s3a.connection.timeout": "60000",
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        # deletes wait for the server: as many at once in both arms
        "spark.databricks.delta.vacuum.parallelDelete.enabled": "true",
    }
    return open_session(estate(), base, conf)


def run(files: list[int], folders: int, strays: list[int], latency: float, rounds: int) -> Iterator[tuple[str, bool]]:
    """Lines of the table, and whether each meets its target."""
    with tempfile.TemporaryDirectory() as name, storeservers.minio(Path(name) / "store") as store:
        client = store.client()
        client.create_bucket(Bucket=BUCKET)
        tables = [Table(client, f"t{count}", count, folders) for count in sorted(files)]
        for table in tables:
            table.make()
        with slow(int(urlsplit(store.endpoint_url).port or 0), latency) as port:
            near = storeservers.Store(store.kind, f"http://127.0.0.1:{port}").client()
            spark = _session(port, Path(name))
            try:
                yield from _lines(Arms(spark, near, Path(name), rounds), tables, strays)
            finally:
                spark.stop()


@dataclass(frozen=True)
class Arms:
    """Best times of so many rounds. near: a client with the latency."""

    spark: SparkSession
    near: S3Client
    folder: Path
    rounds: int

    def sweep(self, table: Table, strays: int) -> float:
        """Of the sweep, which leaves exactly what is live."""
        taken = []
        for _ in range(self.rounds):
            taken.append(sweep(self.spark, table, self.near, table.strays(strays), self.folder))
            table.check()
        return min(taken)

    def listing(self, table: Table, strays: int) -> float:
        """Of the engine's own."""
        taken = []
        for _ in range(self.rounds):
            table.strays(strays)
            time.sleep(1)  # servers tell times in whole seconds, and VACUUM takes what is older than now
            taken.append(listing(self.spark, table))
            table.check()
        return min(taken)


def _lines(arms: Arms, tables: list[Table], strays: list[int]) -> Iterator[tuple[str, bool]]:
    swept: dict[int, float] = {}
    for table in tables:
        sweep(arms.spark, table, arms.near, table.strays(2), arms.folder)  # warm
        for gone in strays:
            seconds = arms.sweep(table, gone)
            swept.setdefault(table.files, seconds)
            yield f"{table.files} files in {table.folders} folders, {gone} to delete: sweep {seconds:.1f} s", True
    least, most = tables[0], tables[-1]
    if least is not most:
        ratio = swept[most.files] / swept[least.files]
        yield f"{most.files // least.files} times the files that exist: {ratio:.2f} x the sweep's time", True
    seconds = arms.listing(most, strays[0])
    times = seconds / swept[most.files]
    told = f"{most.files} files in {most.folders} folders, {strays[0]} to delete: listing {seconds:.1f} s"
    yield f"{told}, {times:.1f} x the sweep's (>= 5)", times >= 5


def main() -> int:
    """Run and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", default="10000,100000")
    parser.add_argument("--folders", type=int, default=1_000)
    parser.add_argument("--strays", default="20,100", help="files to delete; the listing deletes the first number")
    parser.add_argument("--latency", type=float, default=50.0, help="milliseconds")
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    numbers = [[int(n) for n in text.split(",")] for text in (given.files, given.strays)]
    ok = True
    for line, met in run(numbers[0], given.folders, numbers[1], given.latency, given.rounds):
        ok &= met
        print(line + ("" if met else "   MISSED"), flush=True)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
