"""The states of an Iceberg table: the current one, every branch and tag, every snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pii_tracer.model.errors import ScanError
from pii_tracer.model.plan import Copy
from pii_tracer.verify.catalogs.nessie.nessie_states import NESSIE, nessie_states
from pii_tracer.verify.formats.base import State, TableReader, quoted_name

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
            f"the Iceberg copy {copy.id} has no table name to read it by",
            where=copy.location,
            todo="declare the catalog it belongs to in the estate file",
        )
    table = quoted_name(copy.table)

    def at(option: str, value: str) -> Callable[[], DataFrame]:
        # since Spark 4, Iceberg takes only Spark's own option, for snapshots, branches and tags alike
        name = option if spark.version.startswith("3.") else "versionAsOf"
        return lambda: spark.read.option(name, value).table(table)

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
