"""Tables that SQL files create without a class, or with too long a retention, fail before they exist."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from pii_tracer.cli.main import run
from pii_tracer.errors import LineageError
from pii_tracer.model import Format
from pii_tracer.retention.ddl import created

GOOD = (
    "TBLPROPERTIES ('pii-tracer.retention-class' = 'pii', 'delta.logRetentionDuration' = 'interval 7 days',"
    " 'delta.deletedFileRetentionDuration' = 'interval 7 days')"
)


@pytest.fixture
def estate(tmp_path: Path) -> Path:
    (tmp_path / "warehouse").mkdir()
    data = {
        "version": 1,
        "estate": "ddl",
        "environment": "local",
        "catalogs": {"lake": {"type": "iceberg-hadoop", "warehouse": "warehouse"}},
        "roots": ["warehouse"],
        "lineage": {"sql": []},
        "subjects": [
            {"name": "c", "source": "prod.people", "key": "uid", "identifiers": [{"column": "pan", "category": "id"}]}
        ],
        "retention": {"pii_columns": {"email": "email"}, "tables": {"prod.known": "derived"}},
    }
    (tmp_path / "pii-tracer.yaml").write_text(yaml.safe_dump(data))
    return tmp_path


def check(base: Path, sql: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[tuple[str, str, str]]]:
    (base / "new.sql").write_text(sql)
    words = ["retention", "check", "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "s")]
    code = run([*words, "--ddl", str(base / "new.sql"), "--format", "json"])
    violations = json.loads(capsys.readouterr().out)["violations"]
    return code, [(v["table"], v["kind"], v["where"].rsplit(":", 1)[1]) for v in violations]


def test_columns_declared_to_be_personal_need_a_class(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "-- two tables\n\nCREATE TABLE prod.a (PAN string, n int);\nCREATE TABLE prod.b (payer struct<id: int, email: string>);"
    assert check(estate, sql, capsys) == (
        4,
        [("prod.a", "unclassified", "3"), ("prod.b", "unclassified", "4")],
    )
    assert check(estate, "CREATE TABLE prod.c (n int, city string)", capsys) == (0, [])


def test_lineage_tells_where_names_do_not(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "CREATE TABLE prod.people (uid bigint) USING delta {0};\nCREATE TABLE prod.d USING delta AS SELECT uid AS x FROM prod.people;"
    code, found = check(estate, sql.format(GOOD), capsys)
    assert code == 4
    assert ("prod.d", "unclassified", "2") in found
    assert all(table == "prod.d" for table, _, _ in found)


def test_too_long_a_retention_fails_at_creation(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = f"CREATE TABLE prod.e (uid bigint) USING delta {GOOD}"
    assert check(estate, good, capsys) == (0, [])
    assert check(estate, good.replace("interval 7 days'", "interval 8 days'", 1), capsys) == (
        4,
        [("prod.e", "too_long", "1")],
    )
    later = good + ";\nALTER TABLE prod.e SET TBLPROPERTIES ('delta.logRetentionDuration' = 'interval 90 days')"
    assert check(estate, later, capsys) == (4, [("prod.e", "too_long", "1")])


def test_derived_is_no_class_for_personal_columns(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(estate, "CREATE TABLE prod.known (uid bigint)", capsys) == (4, [("prod.known", "wrong_class", "1")])


def test_a_create_table_that_does_not_parse_is_not_passed_over(
    estate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = check(estate, "CREATE TABLE prod.f (uid bigint USING", capsys)
    assert (code, found) == (4, [("new.sql", "unread", "1")])


def test_forms_of_create() -> None:
    sql = (
        "CREATE OR REPLACE TABLE c.d.t USING iceberg TBLPROPERTIES (a = 'b') AS SELECT 1 AS uid;\n"
        "CREATE TABLE x SHALLOW CLONE y LOCATION '/z';\nCREATE VIEW v AS SELECT 1;\nCREATE TABLE p (q int) USING CSV"
    )
    first, clone, last = created(sql, "spark", "f.sql")
    assert (first.table, first.format, first.properties, first.columns) == (
        "c.d.t",
        Format.ICEBERG,
        {"a": "b"},
        ("uid",),
    )
    assert (clone.table, clone.line, last.format, last.line) == ("x", 2, Format.CSV, 4)
    (torn,) = created("CREATE TABLE t (a string) TBLPROPERTIES ('a = b", "spark", "f.sql")
    assert torn.unread
    with pytest.raises(LineageError):
        created("SELECT 1; CREATE TABLE t (a string) TBLPROPERTIES ('a = b", "spark", "f.sql")


CREATED = "CREATE TABLE prod.g (id int) USING delta TBLPROPERTIES ('pii-tracer.retention-class' = 'derived');\n"


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("\ufeffCREATE TABLE prod.g (email string) USING delta", ("prod.g", "unclassified", "1")),
        ("CREATE EXTERNAL TABLE prod.g (email string) USING delta FOO BAR ((", ("new.sql", "unread", "1")),
        ("CREATE /* x */ TABLE prod.g (email string) FOO BAR ((", ("new.sql", "unread", "1")),
        ("SELECT 1;\nSELEC email FROM (", ("new.sql", "unread", "2")),
        ("CREATE TABLE lake.prod.g (email string)", ("lake.prod.g", "too_long", "1")),
        (CREATED + "ALTER TABLE prod.g ADD COLUMN email string", ("prod.g", "wrong_class", "1")),
        (CREATED + "ALTER TABLE prod.g ADD COLUMNS (p struct<email: string>)", ("prod.g", "wrong_class", "1")),
        (CREATED + "ALTER TABLE prod.g RENAME COLUMN id TO email", ("prod.g", "wrong_class", "1")),
        (CREATED + "ALTER TABLE prod.g CHANGE COLUMN id email int", ("prod.g", "wrong_class", "1")),
        (CREATED + "ALTER TABLE spark_catalog.prod.g ADD COLUMN email string", ("prod.g", "wrong_class", "1")),
        (CREATED + "ALTER TABLE prod.g ADD COLUMN (email ((", ("new.sql", "unread", "2")),
        (
            f"CREATE TABLE prod.g (email string) USING delta {GOOD};\n"
            "ALTER TABLE prod.g UNSET TBLPROPERTIES IF EXISTS ('delta.LOGRetentionDuration')",
            ("prod.g", "too_long", "1"),
        ),
        (
            f"CREATE TABLE prod.g (email string) USING delta {GOOD};\n"
            "ALTER TABLE prod.g SET TBLPROPERTIES ('DELTA.LOGRETENTIONDURATION' = 'interval 365 days')",
            ("prod.g", "too_long", "1"),
        ),
    ],
)
def test_what_is_not_understood_or_comes_later_is_not_passed_over(
    estate: Path, capsys: pytest.CaptureFixture[str], sql: str, found: tuple[str, str, str]
) -> None:
    code, told = check(estate, sql, capsys)
    assert code == 4
    assert found in told


def test_statements_about_other_things_are_no_violation(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = (
        "GRANT SELECT ON prod.x TO a;\nVACUUM prod.x;\nALTER TABLE prod.x DROP PARTITION (d = '1');\nDROP TABLE prod.x"
    )
    assert check(estate, sql, capsys) == (0, [])


def test_files_of_a_folder_are_read_whatever_the_case_of_their_ending(estate: Path) -> None:
    (estate / "ddl").mkdir()
    (estate / "ddl" / "A.SQL").write_text("CREATE TABLE prod.g (email string) USING delta")
    words = ["retention", "check", "--estate", str(estate / "pii-tracer.yaml"), "--state", str(estate / "s")]
    assert run([*words, "--ddl", str(estate / "ddl")]) == 4


def test_a_catalog_that_cannot_be_read_is_a_violation(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = yaml.safe_load((estate / "pii-tracer.yaml").read_text())
    data["catalogs"]["sql"] = {"type": "iceberg-sql", "uri": f"sqlite:///{estate}/cat.db", "warehouse": "warehouse"}
    data["retention"]["tables"] = {}
    (estate / "pii-tracer.yaml").write_text(yaml.safe_dump(data))
    (estate / "cat.db").touch()
    (estate / "s").mkdir()
    code = run(["retention", "check", "--estate", str(estate / "pii-tracer.yaml"), "--state", str(estate / "s")])
    out = capsys.readouterr().out
    assert "catalog sql" in out
    assert code == 4, out
