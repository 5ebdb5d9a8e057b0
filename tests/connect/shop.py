"""A shop's lakehouse that is built through Spark Connect, and read through it: in a process of its own, because a process
that has used Connect cannot have a Spark of its own any more.

`python -m tests.connect.shop build|naive|rows|workers|parted FOLDER` works by the estate file there; answers are JSON.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from executors.engine.spark_session import open_session
from executors.engine.table_registration import register_tables
from pii_tracer.config.estate_file import Estate, load_estate
from pii_tracer.lake.keys.envelope.cells import Binding
from pii_tracer.lake.keys.envelope.key_wrapping import LocalFile, Wrapper
from pii_tracer.lake.keys.envelope.spark_columns import decrypt_columns, encrypt_columns
from pii_tracer.lineage.sources.query_log.shape_parsing import Query, parse_here
from pii_tracer.lineage.sources.query_log.spark_parsing import parser_on
from pii_tracer.lineage.sources.table_candidates import Tables
from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.folder_scan import scan_tree
from pii_tracer.scan.value_forms import build_patterns
from tests.cli.small import RECEIVED
from tests.lake.keys.test_cells import kek

KEY, MAIL = "C-88413", "Ines.Okafor@shop.example"
OTHERS = 5
PATTERNS = build_patterns(
    [KeySet(name=f"v{n}", origin="v", weak=False, values=(("p", value),)) for n, value in enumerate((KEY, MAIL))]
)

JOBS = """
CREATE TABLE IF NOT EXISTS shop.cards USING delta LOCATION '{base}/tables/cards' AS
SELECT uid, mail FROM med.shop.customers;

INSERT OVERWRITE DIRECTORY '{base}/tables/boxes' USING parquet
SELECT uid, mail, timestamp'2026-01-02 03:04:05' AS packed FROM med.shop.customers
"""

TABLES = {
    "customers": "SELECT * FROM med.shop.customers",
    "audit": "SELECT * FROM med.shop.customers.branch_audit",
    "cards": "SELECT * FROM delta.`{base}/tables/cards`",
}


def estate(address: str) -> dict[str, Any]:
    """The estate file's content."""
    return {
        "version": 1,
        "estate": "shop",
        "environment": "local",
        "spark": {"remote": address},
        "catalogs": {
            "med": {"type": "iceberg-hadoop", "warehouse": "warehouse"},
            "spark_catalog": {
                "type": "declared",
                "tables": [
                    {"name": "shop.cards", "format": "delta", "location": "tables/cards"},
                ],
            },
        },
        "roots": ["warehouse", "tables"],
        "lineage": {"sql": ["jobs.sql"]},
        "subjects": [
            {
                "name": "customer",
                "source": "med.shop.customers",
                "key": "uid",
                "identifiers": [{"column": "mail", "category": "email"}],
            }
        ],
    }


def write_estate(base: Path, address: str) -> None:
    """Estate file, policy, request and the jobs' SQL."""
    (base / "warehouse").mkdir(parents=True)
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(estate(address)))
    (base / "policy.yaml").write_text(yaml.safe_dump({"version": 1, "allow_immediate_retention": True}))
    (base / "jobs.sql").write_text(JOBS.format(base=base))
    request = {
        "id": "SHOP-1",
        "law": "GDPR",
        "received": RECEIVED,
        "subject": {"type": "customer", "key": KEY},
    }
    (base / "request.yaml").write_text(yaml.safe_dump(request))


def build(base: Path, spark: Any) -> None:
    """Create the tables by running the jobs that lineage is read from."""
    rows = [(f"C-{n}", f"c{n}@shop.example", "Bonn") for n in range(OTHERS)] + [(KEY, MAIL, "Bonn")]
    spark.sql("CREATE DATABASE IF NOT EXISTS med.shop")
    spark.sql("CREATE DATABASE IF NOT EXISTS shop")
    frame = spark.createDataFrame(rows, "uid string, mail string, city string")
    frame.coalesce(1).writeTo("med.shop.customers").using("iceberg").tableProperty(
        "write.delete.mode", "merge-on-read"
    ).create()
    spark.sql("ALTER TABLE med.shop.customers CREATE BRANCH audit")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    for statement in JOBS.format(base=base).split(";"):
        spark.sql(statement)
    properties = "'delta.enableDeletionVectors' = 'true', 'delta.checkpointInterval' = '3'"
    spark.sql(f"ALTER TABLE delta.`{base}/tables/cards` SET TBLPROPERTIES ({properties})")
    # as pandas would write it: Spark refuses nanoseconds, so the verifier has to decode the files on the workers
    folder = base / "tables" / "boxes"
    table = pq.read_table(folder)
    for path in folder.iterdir():
        path.unlink()
    at = table.schema.get_field_index("packed")
    table = table.set_column(at, "packed", table.column("packed").cast(pa.timestamp("ns")))
    pq.write_table(table, folder / "part-0.parquet", version="2.6")


def naive(base: Path, spark: Any) -> dict[str, tuple[int, int]]:
    """Rows seen, and files in which the person is read, after DELETE as everybody writes it on copies of the source."""
    frame = spark.table("med.shop.customers")
    folder = base / "naive"
    frame.coalesce(1).write.format("delta").option("delta.enableDeletionVectors", "true").save(f"{folder}/delta")
    spark.sql("CREATE DATABASE IF NOT EXISTS med.naive")
    frame.coalesce(1).writeTo("med.naive.copy").using("iceberg").tableProperty(
        "write.delete.mode", "merge-on-read"
    ).create()
    found = {}
    for table, place in ((f"delta.`{folder}/delta`", folder), ("med.naive.copy", base / "warehouse" / "naive")):
        spark.sql(f"DELETE FROM {table} WHERE uid = '{KEY}'")
        seen = int(spark.sql(f"SELECT * FROM {table} WHERE uid = '{KEY}'").count())
        found["delta" if place == folder else "iceberg"] = (seen, files_with_the_person(place))
    spark.sql("DROP TABLE med.naive.copy PURGE")
    shutil.rmtree(base / "warehouse" / "naive")
    return found


def files_with_the_person(place: Path) -> int:
    """How many files below a folder hold the key or the address."""
    return sum(bool(file.hits) for file in scan_tree(place, PATTERNS).files)


def rows(base: Path, spark: Any) -> dict[str, list[str]]:
    """Every table's rows as text, sorted."""
    found = {
        name: sorted(str(row) for row in spark.sql(query.format(base=base)).collect()) for name, query in TABLES.items()
    }
    boxes = pq.read_table(base / "tables" / "boxes").to_pylist()
    return found | {"boxes": sorted(str(row) for row in boxes)}


def workers(base: Path, spark: Any) -> dict[str, Any]:
    """What comes back from functions that run on the server's workers: parsed statements, encrypted columns."""
    queries = [Query(f"INSERT INTO a.b SELECT k + {n} AS k FROM c.d", "spark", "") for n in range(450)]
    known = Tables({"c.d": [("k", "int")]})
    source = LocalFile(str(kek(base)))
    wrapper = Wrapper(source, 60)
    keys = spark.createDataFrame([(1, bytearray(wrapper.new_key("1")))], "uid long, wrapped binary")
    users = spark.createDataFrame([(1, "0711 555")], "uid long, phone string")
    columns, names = {"phone": Binding("users", "phone")}, {"person": "uid", "wrapped": "wrapped"}
    stored = encrypt_columns(users, keys, columns, source, **names)
    read = decrypt_columns(stored, keys, columns, source, **names)
    return {
        "parsed_alike": list(parser_on(spark)(queries, known)) == list(parse_here(queries, known)),
        "hidden": b"0711 555" not in bytes(stored.collect()[0]["phone"]),
        "read": read.collect()[0]["phone"],
    }


def parted(base: Path, spark: Any) -> list[int]:
    """Rows that a declared folder of partitions has by its name, before and after a partition goes."""
    folder = base / "parted"
    spark.range(4).selectExpr("id", "id % 2 AS side").write.partitionBy("side").parquet(str(folder))
    given = estate("sc://unused:1")
    declared = {"name": "shop.parted", "format": "parquet", "location": str(folder)}
    given["catalogs"] = {"spark_catalog": {"type": "declared", "tables": [declared]}}
    register_tables(spark, Estate.model_validate(given), base)
    found = [int(spark.table("shop.parted").count())]
    shutil.rmtree(folder / "side=1")
    spark.catalog.refreshTable("shop.parted")
    found.append(int(spark.table("shop.parted").count()))
    spark.sql("DROP TABLE shop.parted")
    shutil.rmtree(folder)
    return found


def main(what: str, base: Path) -> None:
    """Do one of these and print what it gives."""
    spark = open_session(load_estate(base / "pii-tracer.yaml"), base)
    asked = {"build": build, "naive": naive, "rows": rows, "workers": workers, "parted": parted}
    print(json.dumps(asked[what](base, spark)))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
