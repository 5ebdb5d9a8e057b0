"""Glue for tests: moto's, behind a door that answers what moto has not, and refuses what it is told to.

moto keeps databases, tables, their old versions and partitions; it has no column statistics, for which the door answers
as Glue does where nobody has counted anything (`EntityNotFoundException` for each column), unless it is given some.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import boto3

from tests.servers import Json, answering
from tests.storeservers import REGION

_STATISTICS = ("GetColumnStatisticsForTable", "GetColumnStatisticsForPartition")


@contextmanager
def glue_door(
    behind: str, refused: Mapping[str, str] | None = None, statistics: Mapping[str, Mapping[str, Any]] | None = None
) -> Iterator[str]:
    """The address of Glue. behind: moto's. refused: the error of each operation that is refused. statistics: by column
    what is known of it, as `ColumnStatisticsData`."""

    class Door(Json):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            operation = self.headers["X-Amz-Target"].rpartition(".")[2]
            if error := (refused or {}).get(operation):
                self.answer(400, json.dumps({"__type": error, "message": "no"}).encode())
            elif operation in _STATISTICS:
                self.answer(200, json.dumps(counted(json.loads(body)["ColumnNames"])).encode())
            else:
                headers = {key: value for key, value in self.headers.items() if key != "Host"}
                asked = urllib.request.Request(behind, body, headers, method="POST")
                try:
                    with urllib.request.urlopen(asked) as answer:
                        self.answer(answer.status, answer.read())
                except urllib.error.HTTPError as error:
                    self.answer(error.code, error.read())

    def counted(columns: list[str]) -> dict[str, Any]:
        told = statistics or {}
        missing = {"ErrorCode": "EntityNotFoundException"}
        return {
            "ColumnStatisticsList": [
                {"ColumnName": c, "ColumnType": "x", "AnalyzedTime": 0, "StatisticsData": told[c]}
                for c in columns
                if c in told
            ],
            "Errors": [{"ColumnName": c, "Error": missing} for c in columns if c not in told],
        }

    with answering(Door) as uri:
        yield uri


def glue_at(uri: str) -> Any:
    return boto3.client("glue", region_name=REGION, endpoint_url=uri)


SERDES = {
    "parquet": (
        "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    ),
    "orc": ("org.apache.hadoop.hive.ql.io.orc.OrcInputFormat", "org.apache.hadoop.hive.ql.io.orc.OrcSerde"),
    "csv": ("org.apache.hadoop.mapred.TextInputFormat", "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"),
    "json": ("org.apache.hadoop.mapred.TextInputFormat", "org.openx.data.jsonserde.JsonSerDe"),
}
"""As crawlers write them: input format and serializer."""


def glue_table(
    client: Any, name: str, place: str, kind: str, columns: Mapping[str, str], keys: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """A table as Spark (Delta, Hudi) or a crawler registers it; kind: `delta`, `hudi`, or one of `SERDES`. What was given
    to Glue."""
    storage: dict[str, Any] = {"Location": place, "Columns": [{"Name": n, "Type": t} for n, t in columns.items()]}
    parameters = {"classification": kind} if kind in SERDES else {"spark.sql.sources.provider": kind}
    if kind in SERDES:
        reader, serializer = SERDES[kind]
        storage |= {"InputFormat": reader, "SerdeInfo": {"SerializationLibrary": serializer}}
    told = {"Name": name, "TableType": "EXTERNAL_TABLE", "StorageDescriptor": storage, "Parameters": parameters}
    told["PartitionKeys"] = [{"Name": n, "Type": t} for n, t in (keys or {}).items()]
    client.create_table(DatabaseName="prod", TableInput=told)
    return told


def glue_partition(client: Any, table: str, values: list[str], place: str, **parameters: str) -> None:
    storage = {"Location": place, "InputFormat": SERDES["parquet"][0]}
    told = {"Values": values, "StorageDescriptor": storage, "Parameters": parameters}
    client.create_partition(DatabaseName="prod", TableName=table, PartitionInput=told)
