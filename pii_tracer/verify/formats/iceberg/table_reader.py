"""The states of an Iceberg table: the current one, every branch and tag, every snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pii_tracer.model.errors import ScanError
from pii_tracer.model.plan import KEEPS_HISTORY, Copy
from pii_tracer.verify.catalogs.nessie.readable_references import NESSIE, nessie_states
from pii_tracer.verify.formats.base import State, TableReader, quoted_name
from pii_tracer.verify.formats.iceberg.snapshot_column_names import SnapshotNames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class IcebergReader(TableReader):
    """Iceberg tables by their name in a catalog; under Nessie, what its references and commits can read."""

    reads_s3 = True

    def states(self, spark: SparkSession, copy: Copy) -> Iterator[State]:
        if NESSIE in copy.facts:
            yield from (State(name, load, kept) for name, load, kept in nessie_states(spark, copy))
        else:
            yield from _states(spark, copy)


def _states(spark: SparkSession, copy: Copy) -> Iterator[State]:
    if copy.table is None:
        raise ScanError(
            f"the Iceberg copy {copy.id} has no table name",
            where=copy.location,
            todo="declare the catalog of this table in the estate file",
        )
    table = quoted_name(copy.table)

    def at(option: str, value: str) -> Callable[[], DataFrame]:
        # since Spark 4, Iceberg takes only Spark's own option, for snapshots, branches and tags alike
        name = option if spark.version.startswith("3.") else "versionAsOf"
        return lambda: spark.read.option(name, value).table(table)

    if KEEPS_HISTORY in copy.facts:
        yield from _kept_states(spark, copy, at)
        return
    only = copy.facts.get("ref")
    refs = spark.sql(f"SELECT name, type FROM {table}.refs ORDER BY name").collect()
    if only is None:
        yield State("current", lambda: spark.read.table(table), kept=True)
    for ref in refs:
        if ref["name"] == only or (only is None and ref["name"] != "main"):
            kind = ref["type"].lower()
            stays = ref["name"] not in copy.facts.get("lapsing_refs", ())
            yield State(f"{kind} {ref['name']}", at(kind, ref["name"]), kept=stays)
    if only is None:
        rows = spark.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at").collect()
        for row in rows:
            yield State(f"snapshot {row['snapshot_id']}", at("snapshot-id", str(row["snapshot_id"])))


def _kept_states(spark: SparkSession, copy: Copy, at: Callable[[str, str], Callable[[], DataFrame]]) -> Iterator[State]:
    """Where every snapshot stays, the rows of each have to be as they were, but for the persons'.

    A snapshot from before one of the key columns is read for the persons alone.
    """
    table = quoted_name(str(copy.table))
    names = SnapshotNames.of(spark, copy, table)

    def named(option: str, value: str, snapshot: int) -> Callable[[], DataFrame]:
        return lambda: names.of_now(snapshot, at(option, value)())

    yield State("current", lambda: spark.read.table(table), kept=True)
    refs = spark.sql(f"SELECT name, type, snapshot_id FROM {table}.refs ORDER BY name").collect()
    for ref in refs:
        name, kind, snapshot = ref["name"], ref["type"].lower(), ref["snapshot_id"]
        if kind == "branch" and name != "main":  # is read by the names of now
            yield State(f"branch {name}", at(kind, name), kept=True)
        elif kind == "tag":
            yield State(f"tag {name}", named(kind, name, snapshot), kept=names.has(snapshot, copy))
    for row in spark.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at").collect():
        number = row["snapshot_id"]
        kept = names.has(number, copy)
        yield State(f"snapshot {number}", named("snapshot-id", str(number), number), kept=kept)
