"""Real tables of every format that hold a longer key, and never the shorter one: clean, metadata included."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pii_tracer.lake.rows.spark_frames import frame_of_rows
from pii_tracer.model.datasets import KeySet, Match, MatchTerm
from pii_tracer.scan.folder_scan import scan_tree
from pii_tracer.scan.known_columns import key_columns
from pii_tracer.scan.value_forms import build_patterns
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
HERS, OTHERS = "P-55102", "P-551020"
KEYS = build_patterns([KeySet(name="uid", origin="uid", weak=False, values=(("s", HERS),))])
COLUMNS = "uid string, payload string, at bigint"


def _made(spark: SparkSession, world: SparkEstate, kind: str, key: str) -> Path:
    """A table with the key as plain column and inside long and short text; returns the folder to scan."""
    # longer than what column indexes keep, with the key near their beginning, and where the least and the greatest are cut
    least, greatest = (lead + "0123456789abcdef" * 2 + "0123456789abcde:" for lead in ("[pay:xxx ", "{uid:xx "))
    least, greatest = (f'{lead}{key}","city":"Bengaluru","amount":"12.50"' for lead in (least, greatest))
    rows = [(key, least, 1), ("A-1", '{"uid":"' + key + '","note":"' + "x" * 80 + '"}', 2), ("Z-9", f"for {key}", 3)]
    rows.append(("Y-8", greatest, 4))
    return _written(spark, world, kind, key, rows, f"uid = '{key}'")


def _written(
    spark: SparkSession, world: SparkEstate, kind: str, key: str, rows: list[tuple[str, str, int]], chosen: str
) -> Path:
    frame = frame_of_rows(spark, rows, COLUMNS).coalesce(1)
    folder = world.folder(f"neighbour_{kind}_{len(key)}")
    shutil.rmtree(folder, ignore_errors=True)
    if kind.startswith("parquet"):
        frame.write.option("compression", kind.split("-")[1]).parquet(str(folder))
    elif kind == "delta":
        frame.write.format("delta").save(str(folder))
        spark.sql(f"UPDATE delta.`{folder}` SET at = 9 WHERE {chosen}")
        spark.sql(f"OPTIMIZE delta.`{folder}`")
    elif kind == "iceberg":
        table = f"lake.neighbours.t{len(key)}"
        spark.sql(f"DROP TABLE IF EXISTS {table} PURGE")
        frame.writeTo(table).using("iceberg").create()
        spark.sql(f"DELETE FROM {table} WHERE uid = 'Z-9'")
        folder = world.base / "warehouse" / "lake" / "neighbours" / f"t{len(key)}"
    else:
        options = {
            "hoodie.table.name": "neighbours",
            "hoodie.datasource.write.recordkey.field": "uid",
            "hoodie.datasource.write.precombine.field": "at",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ" if kind == "hudi-mor" else "COPY_ON_WRITE",
        }
        for at in (1, 2):
            frame.selectExpr("uid", "payload", f"at + {at} AS at").write.format("hudi").options(**options).mode(
                "append"
            ).save(str(folder))
    return folder


KINDS = ["parquet-snappy", "parquet-none", "parquet-zstd", "delta", "iceberg", "hudi-cow", "hudi-mor"]
NAME, LONGER = "ashakumar", "ashakumari"
NAMES = build_patterns([KeySet(name="uid", origin="uid", weak=False, values=(("s", NAME),))])
BY_NAME = Match(terms=(MatchTerm(column="uid", key_set="uid", type="string"),))


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_a_table_of_longer_names_is_clean_and_the_person_is_found_beside_them(
    spark: SparkSession, spark_estate: SparkEstate, kind: str
) -> None:
    """The names stand in the key's column alone; files, statistics, indexes and logs are all searched. A predicate in a
    log is text of no column, and counts.
    """
    rows = [(LONGER, "paid", 1), ("kashakumar", "open", 2), ("Z-9", "paid", 3), ("ASHAKUMAR2", "paid", 4)]
    others = _written(spark, spark_estate, kind, LONGER, rows, "at = 1")
    patterns = NAMES.comparing(key_columns(BY_NAME, others))
    assert any(file.hits for file in scan_tree(others, NAMES).files)
    found = scan_tree(others, patterns)
    assert found.unread == ()
    assert [(f.path, h.where, h.form, h.column) for f in found.files for h in f.hits] == []
    hers = _written(spark, spark_estate, kind, NAME, [*rows, (NAME, "paid", 5)], "at = 1")
    held = {f.path for f in scan_tree(hers, patterns).files if any(h.where == "data" for h in f.hits)}
    assert any(path.endswith(".parquet") for path in held)


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_with_the_longer_key_only_is_clean(spark: SparkSession, spark_estate: SparkEstate, kind: str) -> None:
    hers = _made(spark, spark_estate, kind, HERS)
    assert any(file.hits for file in scan_tree(hers, KEYS).files)
    others = _made(spark, spark_estate, kind, OTHERS)
    found = scan_tree(others, KEYS)
    assert found.unread == ()
    assert [(f.path, h.where, h.form, h.column) for f in found.files for h in f.hits] == []


HER_MAIL, NAMESAKE = (f"christian.maximilian.mueller-lang@{place}.example" for place in ("gmail", "yahoo"))
SHORT_MAIL, LONGER_MAIL = "lena@yahoo.example", "lena@yahoo.example.com.br"
RESEMBLING = build_patterns(
    [
        KeySet(name="uid", origin="uid", weak=False, values=(("s", NAME),), others=("AshaKumar",)),
        KeySet(name="email", origin="email", weak=False, values=(("s", HER_MAIL), ("t", SHORT_MAIL))),
    ]
)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_table_of_people_who_resemble_the_person_is_clean(
    spark: SparkSession, spark_estate: SparkEstate, kind: str
) -> None:
    """A key in another case, addresses that share what bounds keep, one that goes on: nobody of them is the person."""
    rows = [("AshaKumar", NAMESAKE, 1), ("Z-9", LONGER_MAIL, 2), ("Z-8", NAMESAKE, 3)]
    others = _written(spark, spark_estate, kind, "others", rows, "at = 1")
    patterns = RESEMBLING.comparing(key_columns(BY_NAME, others))
    found = scan_tree(others, patterns)
    assert found.unread == ()
    assert [(f.path, h.where, h.form, h.column) for f in found.files for h in f.hits] == []
    hers = _written(spark, spark_estate, kind, "her", [*rows, (NAME, HER_MAIL, 4), ("Z-7", SHORT_MAIL, 5)], "at = 4")
    seen = {(h.key_set, str(h.form)) for f in scan_tree(hers, patterns).files for h in f.hits}
    assert seen >= {("uid", "text"), ("email", "text"), ("email", "prefix")}
