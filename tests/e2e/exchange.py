"""An estate whose rows name two users: payments, gifts, loans, messages, and who referred whom."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from pii_tracer.lake.rows.spark_frames import frame_of_rows
from tests.cli.small import RECEIVED
from tests.leaks import Person
from tests.sparksession import HAS_HUDI, small_spark

USER, NAME = "U-771204", "Asha Rao of Pune"
PERSON = Person((), (USER,))
TWO, THREE = "U-771205", "U-9"
PAIRS = [(USER, TWO), (TWO, USER), (TWO, THREE), (USER, USER), (THREE, USER), (THREE, None)]
"""In each table: of the person to another, of others to the person, among others, of the person to itself."""

FOLDERS = {"app.messages": "parquet", "app.invites": "csv", "app.threads": "json", "app.likes": "orc"}
"""Bare folders; in the second the person of the first column owns the row, in the others no row is anybody's own."""

_KEYS = "key: first, row: {row}, other_keys: [{{column: second, row: keep, clears: [second_name]}}]"
HUDI = ("pay.loans",) if HAS_HUDI else ()
OWNED = ("pay.transfers", "ex.core.gifts", *HUDI, "app.invites")


def names() -> tuple[str, ...]:
    """The tables, but for the users."""
    return ("pay.transfers", "ex.core.gifts", *HUDI, *FOLDERS)


def rows(table: str) -> list[dict[str, Any]]:
    """What is written into a table, with what says more of whom the second key names."""
    found = [{"id": n, "first": one, "second": two, "n": n} for n, (one, two) in enumerate(PAIRS)]
    return [row | {"second_name": None if row["second"] is None else _name(row["second"])} for row in found]


def left(table: str) -> list[dict[str, Any]]:
    """What shall be left of it."""
    gone = {"second": None, "second_name": None}
    kept = [row for row in rows(table) if table not in OWNED or row["first"] != USER]
    kept = [row | (gone if row["second"] == USER else {}) for row in kept]
    return [row | ({"first": None} if row["first"] == USER else {}) for row in kept]


def _name(user: object) -> str:
    return NAME if user == USER else f"name of {user}"


def write_estate(base: Path) -> None:
    """Estate file, policy, request."""
    formats = {"app.users": "delta", "pay.transfers": "delta", **dict.fromkeys(HUDI, "hudi"), **FOLDERS}
    tables = [
        {"name": name, "format": kind, "location": f"tables/{name.rpartition('.')[2]}"}
        for name, kind in formats.items()
    ]
    further = [
        {"table": name, **yaml.safe_load("{" + _KEYS.format(row="delete" if name in OWNED else "keep") + "}")}
        for name in names()
    ]
    subject = {"name": "user", "source": "app.users", "key": "user_id", "tables": further}
    subject |= {"other_keys": [{"column": "referred_by", "row": "keep"}]}
    write_files(base, "exchange", tables, subject)


def write_files(base: Path, name: str, tables: list[dict[str, str]], subject: dict[str, Any]) -> None:
    """Estate file, policy and request of an estate with declared tables and an Iceberg catalog `ex`; no job writes."""
    estate = {
        "version": 1,
        "estate": name,
        "environment": "local",
        "spark": small_spark(),
        "catalogs": {
            "ex": {"type": "iceberg-hadoop", "warehouse": "warehouse"},
            "spark_catalog": {"type": "declared", "tables": tables},
        },
        "roots": ["warehouse", "tables"],
        "lineage": {"sql": ["jobs.sql"]},
        "subjects": [subject],
    }
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(estate))
    (base / "policy.yaml").write_text(yaml.safe_dump({"version": 1, "allow_immediate_retention": True}))
    request: dict[str, Any] = {"id": "EX-1", "law": "GDPR", "received": RECEIVED}
    (base / "request.yaml").write_text(yaml.safe_dump({**request, "subject": {"type": "user", "key": USER}}))
    (base / "jobs.sql").write_text("SELECT 1;\n")


def begin(base: Path, spark: Any, schemas: Iterable[str], tables: Iterable[str]) -> None:
    """The catalog `ex` for a session, and schemas without these tables."""
    spark.conf.set("spark.sql.catalog.ex", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set("spark.sql.catalog.ex.type", "hadoop")
    spark.conf.set("spark.sql.catalog.ex.warehouse", str(base / "warehouse"))
    spark.conf.set("spark.sql.catalog.ex.cache-enabled", "false")
    spark._jsparkSession.sessionState().catalogManager().reset()
    for schema in schemas:
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {schema}")
    for name in tables:
        spark.sql(f"DROP TABLE IF EXISTS {name}")


def build(base: Path, spark: Any) -> None:
    """The tables, each with a history."""
    write_estate(base)
    begin(base, spark, ("app", "pay", "ex.core"), ("app.users", *(n for n in names() if n != "ex.core.gifts")))
    users = [(USER, None), (TWO, USER), (THREE, TWO)]
    frame_of_rows(spark, users, "user_id string, referred_by string").createOrReplaceTempView("made_users")
    spark.sql(f"CREATE TABLE app.users USING delta LOCATION '{base}/tables/users' AS SELECT * FROM made_users")
    frame = frame_of_rows(
        spark,
        [tuple(row[c] for c in ("id", "first", "second", "second_name", "n")) for row in rows("")],
        "id int, first string, second string, second_name string, n int",
    )
    frame.coalesce(1).createOrReplaceTempView("made")
    vectors = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true')"
    spark.sql(
        f"CREATE TABLE pay.transfers USING delta {vectors} LOCATION '{base}/tables/transfers' AS SELECT * FROM made"
    )
    spark.sql("UPDATE pay.transfers SET n = n WHERE id = 1")
    deletes = "'format-version'='2', 'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read'"
    spark.sql(f"CREATE TABLE ex.core.gifts USING iceberg TBLPROPERTIES ({deletes}) AS SELECT * FROM made")
    spark.sql("ALTER TABLE ex.core.gifts CREATE BRANCH audit")
    spark.sql("ALTER TABLE ex.core.gifts CREATE TAG q1")
    spark.sql("UPDATE ex.core.gifts SET n = n WHERE id = 1")
    kind = "TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'n')"
    columns = "id INT, first STRING, second STRING, second_name STRING, n INT"
    for name in HUDI:
        spark.sql(f"CREATE TABLE {name} ({columns}) USING hudi {kind} LOCATION '{base}/tables/loans'")
        spark.sql(f"INSERT INTO {name} SELECT * FROM made")
        spark.sql(f"UPDATE {name} SET n = n WHERE id = 1")
    for name, fmt in FOLDERS.items():
        place = base / "tables" / name.rpartition(".")[2]
        frame.coalesce(1).write.format(fmt).option("header", "true").save(str(place))


def read(base: Path, spark: Any, table: str) -> list[dict[str, Any]]:
    """The rows of a table now, as `left` tells them."""
    kind = FOLDERS.get(table)
    if kind is None:
        if table in HUDI:
            spark.catalog.refreshTable(table)
        found = [row.asDict() for row in spark.table(table).collect()]
    else:
        place = str(base / "tables" / table.rpartition(".")[2])
        reader = spark.read.format(kind).option("header", "true").option("inferSchema", "true")
        found = [row.asDict() for row in reader.load(place).collect()]
    columns = ("id", "first", "second", "second_name", "n")
    return sorted(({c: row.get(c) for c in columns} for row in found), key=lambda row: row["id"])


def text(rows_: list[dict[str, Any]]) -> str:
    """Rows in one form, to be compared."""
    return json.dumps(rows_, sort_keys=True, indent=1)
