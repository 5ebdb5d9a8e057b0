"""What the columns of an Iceberg table's snapshots are called now, so that snapshots that stay are compared as a whole.

A column keeps its id when it is renamed (https://iceberg.apache.org/spec/#schema-evolution). Spark 3.5 reads a snapshot
by the names of now, and looks for these in filters among the names of then; later ones read it by the names of then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pii_tracer.lake.formats.iceberg.metadata_json import metadata_json
from pii_tracer.model.errors import ScanError
from pii_tracer.model.locations import placed
from pii_tracer.model.plan import Copy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class SnapshotNames:
    """Of each snapshot: what its columns are called then and now."""

    names: Mapping[int, Mapping[str, str]]

    @classmethod
    def of(cls, spark: SparkSession, copy: Copy, table: str) -> SnapshotNames:
        """From the table's metadata file. table: quoted.

        Raises:
            ScanError: it cannot be read.
        """
        rows = spark.sql(f"SELECT file FROM {table}.metadata_log_entries").collect()
        try:
            document = metadata_json(placed(rows[-1][0]).read_bytes())
            return cls({int(s["snapshot-id"]): _names(document, s) for s in document.get("snapshots") or ()})
        except Exception as error:
            raise ScanError(
                f"the metadata file of copy {copy.id} cannot be read: {type(error).__name__}",
                where=copy.location,
                todo="repair the table, because nothing is proved without its rows",
            ) from None

    def has(self, snapshot: int, copy: Copy) -> bool:
        """Whether a snapshot has every column by which the copy's rows are found."""
        there = {name.lower() for name in self.names.get(snapshot, {}).values()}
        return copy.places is not None and all(name.lower() in there for name in copy.places.columns)

    def of_now(self, snapshot: int, frame: DataFrame) -> DataFrame:
        """The rows of a snapshot, by the names of now."""
        from pyspark.sql import functions as f

        told = self.names.get(snapshot, {})
        if all(then == now for then, now in told.items()):
            return frame
        if frame.columns == list(told):
            return frame.toDF(*told.values())
        # what is observed is read before it is filtered, so that no filter gets to the snapshot
        return frame.observe("pii_tracer_rows", f.count(f.lit(1)).alias("rows"))


def _names(document: Mapping[str, Any], snapshot: Mapping[str, Any]) -> dict[str, str]:
    """A column that is no more keeps its name, with its id where another one has it now."""
    schemas = {schema["schema-id"]: schema for schema in document["schemas"]}
    now = {field["id"]: field["name"] for field in schemas[document["current-schema-id"]]["fields"]}
    taken = {name.lower() for name in now.values()}
    then = schemas[snapshot.get("schema-id", document["current-schema-id"])]["fields"]
    lost = {f["id"]: f"{f['name']} ({f['id']})" if f["name"].lower() in taken else f["name"] for f in then}
    return {field["name"]: now.get(field["id"], lost[field["id"]]) for field in then}
