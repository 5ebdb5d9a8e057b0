"""Hudi tables for stores of tests: Spark writes them here, and their files are put there one by one."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from hudi import HudiTableBuilder

from tests.hdfs.shop import MAIL, OTHERS, PERSON, USER
from tests.sparkstatements import values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = ("cow", "mor")
MADE = "made_"
"""What precedes the name of a table here, in the database that the estate of the tests knows it in."""
ALIKE = (f"{USER}9", "zq.person@example.org")
"""Somebody whose key begins like the person's."""

EVERYBODY_ELSE = sorted([*OTHERS, ALIKE])
_SETTINGS = {
    "primaryKey": "uid",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.parquet.compression.codec": "uncompressed",
}


def hudi(spark: SparkSession, folder: Path, kind: str) -> Path:
    """A table that a person was in, updated, kept by a savepoint, deleted the naive way, and put in again."""
    table = f"quay.{MADE}{kind}"
    settings = ", ".join(f"'{name}' = '{value}'" for name, value in {**_SETTINGS, "type": kind}.items())
    spark.sql("CREATE DATABASE IF NOT EXISTS quay")
    spark.sql(f"DROP TABLE IF EXISTS {table}")
    spark.sql(
        f"CREATE TABLE {table} (uid STRING, mail STRING, seen INT) USING hudi LOCATION '{folder}'"
        f" TBLPROPERTIES ({settings})"
    )
    _add(spark, table, [OTHERS[0], ALIKE, PERSON])
    spark.sql(f"UPDATE {table} SET seen = 2 WHERE uid = '{USER}'")
    [instant, *_] = spark.sql(f"CALL show_commits(table => '{table}', limit => 1)").first()  # type: ignore[misc]
    spark.sql(f"CALL create_savepoint(table => '{table}', commit_time => '{instant}')")
    _add(spark, table, OTHERS[1:])
    spark.sql(f"DELETE FROM {table} WHERE uid = '{USER}'")
    spark.sql(f"CALL run_clean(table => '{table}')")
    return folder


def refilled(spark: SparkSession, kind: str) -> None:
    """The person is written into such a table again."""
    _add(spark, f"quay.{MADE}{kind}", [PERSON])


def _add(spark: SparkSession, table: str, people: Sequence[tuple[str, str]]) -> None:
    rows = ", ".join(f"('{uid}', '{mail}', 1)" for uid, mail in people)
    spark.sql(f"INSERT INTO {table} VALUES {rows}")


def declared(store: str, *folders: str) -> dict[str, Any]:
    """The estate file's catalogs: the shop's users, and tables in a store, `quay.FOLDER`."""
    users = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
    named = [{"name": f"quay.{one}", "format": "hudi", "location": f"{store}/{one}"} for one in folders]
    return {"spark_catalog": {"type": "declared", "tables": [users, *named]}}


def rows(files: Mapping[str, bytes], folder: str, here: Path) -> list[tuple[str, str]]:
    """What a reader of a table sees. files: what lies in a store, by its key. here: where the table is put to be read."""
    for key, data in files.items():
        if key.startswith(f"{folder}/") and not key.endswith("/"):  # what stands for a folder
            (here / key).parent.mkdir(parents=True, exist_ok=True)
            (here / key).write_bytes(data)
    batches = HudiTableBuilder.from_base_uri((here / folder).as_uri()).build().read()
    found = [row for batch in batches for row in pa.record_batch(batch).to_pylist()]
    return sorted((row["uid"], row["mail"]) for row in found)


def hold(data: bytes) -> bool:
    """Whether bytes have the person, and not only somebody whose key begins alike."""
    return MAIL.encode() in data or USER.encode() in data.replace(ALIKE[0].encode(), b"")


def made_by_hand(*people: tuple[str, str], at: str = "20261101000000000", **properties: str) -> dict[str, bytes]:
    """The files of a copy-on-write table of version 6 with one commit, by their paths. properties: with `_` for dots."""
    name = f"5a1f3c52-0000-4000-8000-000000000001-0_0-1-1_{at}.parquet"
    columns = {f"_hoodie_{one}": [""] * len(people) for one in ("commit_time", "commit_seqno")}
    columns |= {"_hoodie_record_key": [f"row {n}" for n in range(len(people))]}
    columns |= {f"_hoodie_{one}": [""] * len(people) for one in ("partition_path", "file_name")}
    columns |= {"uid": [uid for uid, _ in people], "mail": [mail for _, mail in people]}
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    fields = [{"name": one, "type": ["null", "string"], "default": None} for one in ("uid", "mail")]
    schema = json.dumps({"type": "record", "name": "t", "fields": fields})
    stats = {"fileId": name.partition("_")[0], "path": name, "prevCommit": "null", "partitionPath": ""}
    commit = {
        "partitionToWriteStats": {"": [{**stats, "numWrites": len(people), "fileSizeInBytes": len(sink.getvalue())}]},
        "compacted": False,
        "extraMetadata": {"schema": schema},
        "operationType": "INSERT",
    }
    told = {
        "hoodie.table.name": "t",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1",
        "hoodie.table.recordkey.fields": "uid",
        "hoodie.table.base.file.format": "PARQUET",
        **{key.replace("_", "."): value for key, value in properties.items()},
    }
    return {
        ".hoodie/hoodie.properties": "".join(f"{key}={value}\n" for key, value in told.items()).encode(),
        f".hoodie/{at}.commit.requested": b"",
        f".hoodie/{at}.inflight": b"",
        f".hoodie/{at}.commit": json.dumps(commit).encode(),
        ".hoodie_partition_metadata": f"commitTime={at}\npartitionDepth=0\n".encode(),
        name: sink.getvalue(),
    }


def in_and_out(table: str, place: str, everybody: Sequence[tuple[str, str]], person: tuple[str, str]) -> list[str]:
    """The statements of a table that a person was in, was deleted from the naive way, and came into again."""
    return [
        f"CREATE DATABASE IF NOT EXISTS {table.partition('.')[0]}",
        f"CREATE TABLE {table} (uid STRING, mail STRING) USING hudi LOCATION '{place}'"
        " TBLPROPERTIES (type = 'cow', primaryKey = 'uid')",
        f"INSERT INTO {table} VALUES {values(everybody)}",
        f"DELETE FROM {table} WHERE uid = '{person[0]}'",
        f"INSERT INTO {table} VALUES {values([person])}",
    ]
