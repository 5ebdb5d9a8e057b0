"""Tables of one shape in every variant, persons in known files of them, and what an erasure did to the files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from executors.context import ExecutionContext
from pii_tracer.common.str_enum import StrEnum
from pii_tracer.config.catalogs import CatalogType
from pii_tracer.config.estate_file import Catalog, Estate, Spark
from pii_tracer.config.lineage import LineageSources
from pii_tracer.config.subjects import Subject
from pii_tracer.lake.formats.delta.vocabulary import (
    DELTA,
    DELTA_CLEAN_LOG,
    DELTA_DELETE_ROWS,
    DELTA_PURGE,
    DELTA_VACUUM,
)
from pii_tracer.lake.formats.iceberg.vocabulary import (
    ICEBERG,
    ICEBERG_DELETE_ROWS,
    ICEBERG_EXPIRE_SNAPSHOTS,
    ICEBERG_REMOVE_ORPHANS,
    ICEBERG_REWRITE_FILES,
    ICEBERG_REWRITE_MANIFESTS,
)
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Format, KeySet
from tests.executors.world import BY_UID, NOW, Steps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST = 6_000_000_000
"""The lowest key; keys rise with the rows, so that files have bounds that differ."""
EVERYWHERE = FIRST - 1
"""The key of a person who has a row in every file."""


class Variant(StrEnum):
    """A format and the way it deletes."""

    DELTA = "delta"
    DELTA_VECTORS = "delta, deletion vectors"
    ICEBERG_COW = "iceberg, copy-on-write"
    ICEBERG_MOR = "iceberg, merge-on-read"
    PARQUET = "parquet files"


@dataclass(frozen=True)
class Ring:
    """Keys of some people."""

    people: tuple[int, ...]

    def key_set(self, name: str) -> KeySet:
        values = tuple((f"subj_{n}", str(key)) for n, key in enumerate(self.people))
        return KeySet(name=name, origin="t.uid", weak=True, values=values)


@dataclass
class Cost:
    """Seconds by step, bytes of the data files that were written, and of those that held the people before."""

    seconds: dict[Action, float] = field(default_factory=dict)
    written: int = 0
    held: int = 0
    touched: int = 0
    files: int = 0

    @property
    def total(self) -> float:
        """Seconds of all steps."""
        return sum(self.seconds.values())


def estate() -> Estate:
    """Local Spark with a small heap, and an Iceberg catalog `lake`."""
    conf = {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"}
    return Estate(
        version=1,
        estate="bench",
        environment="local",
        spark=Spark(master="local[2]", conf=conf),
        catalogs={"lake": Catalog(type=CatalogType.ICEBERG_HADOOP, warehouse="warehouse/lake")},
        roots=("warehouse", "files"),
        lineage=LineageSources(),
        subjects=(Subject(name="customer", source="lake.prod.customers", key="uid"),),
    )


@dataclass(frozen=True)
class Bench:
    """One session and a folder for its tables."""

    spark: SparkSession
    estate: Estate
    base: Path

    def table(self, variant: Variant, name: str, files: int, rows: int) -> Table:
        """A table of so many files of so many rows each; one row in each file is of the person who is everywhere."""
        frame = self.spark.range(0, files * rows, 1, files).selectExpr(
            "id",
            f"CASE WHEN id % {rows} = {rows // 2} THEN {EVERYWHERE}L ELSE id + {FIRST}L END AS uid",
            "concat('customer', id, '@example.net') AS email",
            "sha2(CAST(id AS STRING), 256) AS note",
            "CAST(id % 997 AS INT) AS amount",
        )
        location = self.base / "files" / name
        table = None
        if variant in (Variant.ICEBERG_COW, Variant.ICEBERG_MOR):
            table, location = f"lake.bench.{name}", self.base / "warehouse/lake/bench" / name
            mode = "copy-on-write" if variant is Variant.ICEBERG_COW else "merge-on-read"
            writer = frame.writeTo(table).using("iceberg").tableProperty("format-version", "2")
            writer.tableProperty("write.delete.mode", mode).tableProperty("write.distribution-mode", "none").create()
        elif variant is Variant.PARQUET:
            frame.write.parquet(str(location))
        else:
            vectors = str(variant is Variant.DELTA_VECTORS).lower()
            frame.write.format("delta").option("delta.enableDeletionVectors", vectors).save(str(location))
        return Table(self, variant, table, location)


_ICEBERG = (
    (ICEBERG_DELETE_ROWS, {}),
    (ICEBERG_REWRITE_FILES, {}),
    (ICEBERG_REWRITE_MANIFESTS, {}),
    (ICEBERG_EXPIRE_SNAPSHOTS, {"older_than": None, "retain_last": 1}),
    (ICEBERG_REMOVE_ORPHANS, {}),
)
_DELTA = (
    (DELTA_DELETE_ROWS, {}),
    (DELTA_PURGE, {}),
    (DELTA_VACUUM, {"retain_hours": 0}),
    (DELTA_CLEAN_LOG, {}),
)
_SEQUENCE: dict[Variant, tuple[tuple[Action, dict[str, Any]], ...]] = {
    Variant.DELTA: _DELTA,
    Variant.DELTA_VECTORS: _DELTA,
    Variant.ICEBERG_COW: _ICEBERG,
    Variant.ICEBERG_MOR: _ICEBERG,
    Variant.PARQUET: ((Action.FILES_REWRITE, {"format": "parquet"}),),
}
_FORMAT = {Variant.PARQUET: (Format.PARQUET, "files")}
for _variant in (Variant.DELTA, Variant.DELTA_VECTORS):
    _FORMAT[_variant] = (DELTA, "delta")
for _variant in (Variant.ICEBERG_COW, Variant.ICEBERG_MOR):
    _FORMAT[_variant] = (ICEBERG, "iceberg")


@dataclass(frozen=True)
class Table:
    """One table of the bench."""

    bench: Bench
    variant: Variant
    name: str | None
    location: Path

    def steps(self, people: Iterable[int]) -> Steps:
        """Steps that erase these people."""
        kind, executor = _FORMAT[self.variant]
        ctx = ExecutionContext(self.bench.estate, self.bench.base, Ring(tuple(people)), lambda: NOW)
        return Steps(ctx, executor, self.name, self.location, kind, BY_UID)

    def delete_rows(self, people: Iterable[int]) -> float:
        """Seconds of the statement that deletes rows, alone."""
        action, parameters = _SEQUENCE[self.variant][0]
        return timed(lambda: self.steps(people).once(action, **parameters))

    def erase(self, people: Iterable[int]) -> Cost:
        """Run every step, and count the files."""
        steps, cost = self.steps(people), Cost()
        before = self.data_files()
        cost.files = len(before)
        seen = dict(before)
        for action, parameters in _SEQUENCE[self.variant]:
            cost.seconds[action] = timed(lambda a=action, p=parameters: steps.once(a, **p))  # type: ignore[misc]
            now = self.data_files()
            cost.written += sum(size for key, (size, _) in now.items() if seen.get(key, (0, 0)) != now[key])
            seen |= now
        gone = {key for key, state in before.items() if seen[key] != state or key not in now}
        cost.touched, cost.held = len(gone), sum(before[key][0] for key in gone)
        return cost

    def data_files(self) -> dict[str, tuple[int, int]]:
        """Size and inode of each Parquet file that holds rows or says which are deleted."""
        found = {}
        for path in self.location.rglob("*.parquet"):
            if "_delta_log" not in path.parts:
                stat = path.stat()
                found[str(path)] = (stat.st_size, stat.st_ino)
        return found


def timed(work: Callable[[], object]) -> float:
    """Seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
