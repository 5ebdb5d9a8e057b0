"""A recorded statement is run again only where its text lets it give what it gave, for the whole table."""

from __future__ import annotations

from typing import Any

import pytest

from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.inventory import TableState
from pii_tracer.lineage.dataset_names import Identities
from pii_tracer.lineage.graph.edges import JobRef, Subtype
from pii_tracer.model.datasets import Column, DatasetId, Format
from planners.locate.sql.rebuild_statement import recorded, splits_partitions
from tests.planners.smalllake import Lake, dataset, kinds, strategies


def state(where: DatasetId, kind: Format, *columns: str) -> TableState:
    made = tuple(Column(name=c, type="string") for c in columns)
    return TableState(dataset=where, table="prod.out", location="/w/out", format=kind, snapshot="1", columns=made)


TABLE = state(dataset("out"), DELTA, "day", "n")
PARTITIONED = TABLE.model_copy(update={"partition_columns": ("day",)})
PLAIN = "INSERT OVERWRITE TABLE prod.out SELECT day, count(*) AS n FROM prod.users GROUP BY day"


def job(text: str, **changes: Any) -> JobRef:
    fields = {"job": "j", "sql": text, "inputs": (dataset("users"),), "output": dataset("out"), "statement": text}
    return JobRef(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "sql",
    [
        PLAIN,
        "CREATE OR REPLACE TABLE prod.out USING delta PARTITIONED BY (day) AS SELECT day, count(*) AS n FROM prod.users GROUP BY day",
        "REPLACE TABLE prod.out AS SELECT day, count(*) AS n FROM prod.users GROUP BY day",
        "WITH u AS (SELECT * FROM prod.users) INSERT OVERWRITE prod.out SELECT day, count(*) n FROM u GROUP BY day",
        "INSERT OVERWRITE prod.out SELECT day, count(*) FROM prod.users GROUP BY day",
        "INSERT OVERWRITE prod.out (day, n) SELECT city, count(*) AS number FROM prod.users GROUP BY city",
        "INSERT OVERWRITE prod.out SELECT day, n FROM (SELECT *, row_number() OVER (PARTITION BY (day) ORDER BY n) AS r FROM prod.a)",
        "INSERT OVERWRITE prod.out SELECT day, n FROM prod.users ORDER BY n LIMIT 3",
        "INSERT OVERWRITE prod.out SELECT unix_timestamp(at) AS day, date_sub(to_date('2026-01-01'), 3) AS n FROM prod.users",
    ],
)
def test_a_statement_that_gives_what_it_gave_may_be_run_again(sql: str) -> None:
    assert recorded([job(sql)], TABLE).sql == sql


@pytest.mark.parametrize(
    ("select", "word"),
    [
        ("day, n FROM prod.users WHERE day >= date_sub(current_date(), 30)", "current_date"),
        ("day, n FROM prod.users WHERE day >= current_date - 30", "current_date"),
        ("day, n FROM prod.users WHERE day < NOW()", "now"),
        ("day, n FROM prod.users WHERE day < TIMESTAMP 'now'", "'now'"),
        ("day, n FROM prod.users WHERE day < DATE 'Today'", "'today'"),
        ("day, unix_timestamp() AS n FROM prod.users", "current_timestamp"),
        ("uuid() AS day, n FROM prod.users", "uuid"),
        ("day, n FROM prod.users WHERE rand() < 0.1", "rand"),
        ("day, monotonically_increasing_id() AS n FROM prod.users", "monotonically_increasing_id"),
        ("input_file_name() AS day, n FROM prod.users", "input_file_name"),
        ("_metadata.file_path AS day, n FROM prod.users", "_metadata"),
        ("current_user() AS day, n FROM prod.users", "current_user"),
        ("current_database() AS day, n FROM prod.users", "current_database"),
        ("day, n FROM prod.users VERSION AS OF 3", "an old version"),
        ("day, n FROM prod.users TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
        ("day, n FROM prod.users LIMIT 3", "LIMIT"),
        ("day, n FROM (SELECT day, n FROM prod.users LIMIT 3) ORDER BY n", "LIMIT"),
    ],
)
def test_a_statement_that_gives_other_rows_another_day_is_not(select: str, word: str) -> None:
    found = recorded([job("INSERT OVERWRITE prod.out SELECT " + select)], TABLE)
    assert found.sql is None
    assert word in found.why


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT OVERWRITE TABLE prod.out PARTITION (day) SELECT count(*) AS n, day FROM prod.users GROUP BY day",
        "INSERT OVERWRITE TABLE prod.out PARTITION (day='2026-03-01') SELECT count(*) AS n FROM prod.users",
        "insert overwrite prod.out partition(day, n) IF NOT EXISTS SELECT day, n FROM prod.users",
    ],
)
def test_single_partitions_are_not_the_whole_table(sql: str) -> None:
    for jobs in ([job(sql)], [job(PLAIN), job(sql)]):
        found = recorded(jobs, TABLE)
        assert found.sql is None
        assert "partition" in found.why.lower() or found.why == recorded([], TABLE).why


def test_partitions_are_split_by_the_sessions_of_the_estate() -> None:
    assert splits_partitions({"spark.sql.sources.partitionOverwriteMode": "DYNAMIC"})
    assert splits_partitions({"hoodie.datasource.overwrite.mode": "dynamic"})
    assert not splits_partitions({"spark.sql.sources.partitionOverwriteMode": "static"})
    assert not splits_partitions({})
    assert "dynamic" in recorded([job(PLAIN)], PARTITIONED, dynamic=True).why
    assert recorded([job(PLAIN)], PARTITIONED).sql == PLAIN
    assert recorded([job(PLAIN)], TABLE, dynamic=True).sql == PLAIN
    whole = PLAIN.replace("INSERT OVERWRITE TABLE prod.out", "CREATE OR REPLACE TABLE prod.out AS")
    assert recorded([job(whole)], PARTITIONED, dynamic=True).sql == whole


@pytest.mark.parametrize(
    ("other", "rebuilt"),
    [
        (PLAIN.replace("count(*)", "sum(x)"), False),
        (PLAIN.replace(" GROUP", " WHERE day = '2026-03-01' GROUP"), False),
        (PLAIN.replace("OVERWRITE TABLE", "INTO"), False),
        ("MERGE INTO prod.out t USING prod.users s ON t.day = s.day WHEN MATCHED THEN UPDATE SET n = 1", False),
        ("INSERT INTO prod.out REPLACE WHERE day = '1' SELECT day, n FROM prod.users", False),
        ("INSERT INTO prod.out -- once: insert overwrite\nSELECT day, n FROM prod.users", False),
        ("this is no statement", False),
        (PLAIN.replace("GROUP BY day", "\n group by DAY -- nightly"), True),
        (PLAIN.replace("INSERT OVERWRITE TABLE prod.out", "CREATE OR REPLACE TABLE prod.out AS"), True),
    ],
)
def test_one_query_makes_the_table_or_none_is_run_again(other: str, rebuilt: bool) -> None:
    for jobs in ([job(PLAIN), job(other)], [job(other), job(PLAIN)]):
        assert (recorded(jobs, TABLE).sql is not None) is rebuilt, recorded(jobs, TABLE).why


def test_what_a_failed_run_may_have_written_counts_too() -> None:
    failed = job(PLAIN.replace("count(*)", "sum(x)"), sql=None)
    assert "different recorded statements" in recorded([failed, job(PLAIN)], TABLE).why
    assert recorded([job(PLAIN, sql=None)], TABLE).sql is None


def test_the_columns_are_the_tables_by_position() -> None:
    turned = "INSERT OVERWRITE prod.out SELECT count(*) AS n, day FROM prod.users GROUP BY day"
    assert "writes the columns n, day, but the table has day, n" in recorded([job(turned)], TABLE).why
    renamed = "INSERT OVERWRITE prod.out SELECT day AS date, count(*) FROM prod.users GROUP BY day"
    assert recorded([job(renamed)], TABLE).sql == renamed
    named = renamed.replace("count(*)", "count(*) AS number")
    assert recorded([job(named)], TABLE).sql == named
    assert recorded([job(named.replace("prod.out", "prod.out BY NAME"))], TABLE).sql is None
    assert (
        recorded([job(named.replace("OVERWRITE", "OVERWRITE TABLE").replace("day AS", "day, 1 AS"))], TABLE).sql is None
    )
    folder = state(dataset("out"), Format.PARQUET, "day", "n")
    assert recorded([job(turned)], folder).sql == turned
    assert recorded([job(turned.replace("day FROM", "city FROM"))], folder).sql is None
    hudi = TABLE.model_copy(update={"columns": (Column(name="_hoodie_record_key", type="string"), *TABLE.columns)})
    assert recorded([job(PLAIN)], hudi).sql == PLAIN


def test_the_plan_blocks_and_says_why() -> None:
    copies = {"b": Subtype.AGGREGATION}
    lake = Lake(
        copies=copies, sql={"b": "INSERT OVERWRITE b SELECT sum(x) AS amount FROM users WHERE day > current_date()"}
    )
    made = lake.plan()
    assert strategies(made)["c-prod.b"] == "blocked"
    assert kinds(made) == ["cannot_be_proved"]
    assert made.gaps[0].reason.startswith("no key to delete by: its recorded statement uses current_date")
    assert not made.applyable
    good = Lake(copies=copies, sql={"b": "INSERT OVERWRITE b SELECT sum(x) AS amount FROM users"}).plan()
    assert strategies(good)["c-prod.b"] == "rebuild"


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT OVERWRITE prod.out SELECT day, count(*) AS n FROM prod.users.branch_audit GROUP BY day",
        "CREATE OR REPLACE TABLE prod.out AS SELECT day, n FROM (SELECT day, n FROM lake.prod.users.`tag_v1.0`)",
        "WITH u AS (SELECT * FROM prod.users.files) INSERT OVERWRITE prod.out SELECT spec_id AS day, 1 AS n FROM u",
    ],
)
def test_what_reads_a_branch_a_tag_or_metadata_is_not_run_again(sql: str) -> None:
    """After the erasure these are others, or none; a table that is called so is like any other."""
    names = Identities({"lake.prod.users": dataset("users")})
    found = recorded([job(sql)], TABLE, passing=lambda name: names.part_of(name) is not None)
    assert found.sql is None
    assert "a branch, a version or the metadata" in found.why
    assert recorded([job(sql)], TABLE).sql == sql
