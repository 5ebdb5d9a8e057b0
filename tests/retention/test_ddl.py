"""Tables that SQL files create without a class, or with too long a retention, fail before they exist."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from pii_tracer.cli.main import run
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import LineageError
from pii_tracer.retention.ddl_tables import created

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
    first, clone, last = created([("f.sql", sql)], "spark", [])
    assert (first.table, first.format, first.properties, first.columns) == (
        "c.d.t",
        ICEBERG,
        {"a": "b"},
        ("uid",),
    )
    assert (clone.table, clone.line, last.format, last.line) == ("x", 2, Format.CSV, 4)
    (torn,) = created([("f.sql", "CREATE TABLE t (a string) TBLPROPERTIES ('a = b")], "spark", [])
    assert torn.unread
    with pytest.raises(LineageError):
        created([("f.sql", "SELECT 1; CREATE TABLE t (a string) TBLPROPERTIES ('a = b")], "spark", [])


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


def check_files(
    base: Path, files: dict[str, str], given: list[str], capsys: pytest.CaptureFixture[str]
) -> list[tuple[str, str, str]]:
    """Violations of several files: table, kind, file and line."""
    for name, sql in files.items():
        (base / name).parent.mkdir(exist_ok=True)
        (base / name).write_text(sql)
    words = ["retention", "check", "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "s")]
    run([*words, "--format", "json", *(word for name in given for word in ("--ddl", str(base / name)))])
    violations = json.loads(capsys.readouterr().out)["violations"]
    return [(v["table"], v["kind"], Path(v["where"]).name) for v in violations]


KEEPS_LONG = "ALTER TABLE prod.g SET TBLPROPERTIES ('delta.logRetentionDuration' = 'interval 90 days')"
GOOD_G = f"CREATE TABLE prod.g (email string) USING delta {GOOD}"
BAD_G = GOOD_G.replace("interval 7 days'", "interval 90 days'", 1)
MENDS = "ALTER TABLE prod.g SET TBLPROPERTIES ('delta.logRetentionDuration' = 'interval 7 days')"


def test_a_later_file_changes_the_tables_of_an_earlier_one(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"m/01_make.sql": GOOD_G, "m/02_change.sql": KEEPS_LONG}
    assert check_files(estate, files, ["m"], capsys) == [("prod.g", "too_long", "01_make.sql:1")]
    mended = {"n/01_make.sql": BAD_G, "n/02_change.sql": MENDS}
    assert check_files(estate, mended, ["n"], capsys) == []


def test_files_count_in_the_order_in_which_they_are_given(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"z.sql": GOOD_G, "b.sql": KEEPS_LONG, "a.sql": MENDS}
    assert check_files(estate, files, ["z.sql", "b.sql", "a.sql"], capsys) == []
    assert check_files(estate, files, ["z.sql", "a.sql", "b.sql"], capsys) == [("prod.g", "too_long", "z.sql:1")]


def test_numbers_in_names_of_files_count_as_numbers(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"m/V2__make.sql": GOOD_G, "m/V10__change.sql": KEEPS_LONG}
    assert check_files(estate, files, ["m"], capsys) == [("prod.g", "too_long", "V2__make.sql:1")]


def test_a_file_that_is_given_twice_counts_once(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"m/1.sql": BAD_G}
    assert check_files(estate, files, ["m", "m/1.sql"], capsys) == [("prod.g", "too_long", "1.sql:1")]


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("USE prod; CREATE TABLE g (a int)", ["prod.g"]),
        ("USE SCHEMA prod; CREATE TABLE g (a int); USE DATABASE dev; CREATE TABLE g (a int)", ["prod.g", "dev.g"]),
        ("use namespace prod; CREATE TABLE g (a int)", ["prod.g"]),
        ("USE LAKE; CREATE TABLE g (a int); CREATE TABLE prod.g (a int)", ["LAKE.g", "LAKE.prod.g"]),
        ("USE lake.prod; CREATE TABLE g (a int); CREATE TABLE dev.g (a int)", ["lake.prod.g", "lake.dev.g"]),
        ("USE CATALOG main; CREATE TABLE g (a int); USE prod; CREATE TABLE g (a int)", ["main.default.g", "main.prod.g"]),
        ("SET CATALOG lake; CREATE TABLE prod.g (a int)", ["lake.prod.g"]),
        ("USE CATALOG main; CREATE TABLE lake.g (a int); CREATE TABLE a.b.c (a int)", ["lake.g", "a.b.c"]),
        ("USE `my prod`; CREATE TABLE `g` (a int)", ["my prod.g"]),
        ("USE prod; CREATE TABLE delta.`/x/y` (a int)", ["delta./x/y"]),
        ("USE prod; CREATE TABLE x SHALLOW CLONE y", ["prod.x"]),
        ("USE prod; USE IDENTIFIER(:db); CREATE TABLE g (a int)", ["g"]),
        ("USE prod; USE ${db}; CREATE TABLE g (a int)", ["g"]),
        ("USE prod; USE ROLE admin; CREATE TABLE g (a int)", ["prod.g"]),
    ],
)  # fmt: skip
def test_use_is_followed_when_names_are_resolved(sql: str, names: list[str]) -> None:
    assert [table.table for table in created([("f.sql", sql)], "spark", ["lake"])] == names


def test_use_counts_until_the_end_of_its_file() -> None:
    files = [("1.sql", "USE prod; CREATE TABLE g (a int)"), ("2.sql", "CREATE TABLE h (a int)")]
    assert [table.table for table in created(files, "spark", [])] == ["prod.g", "h"]


@pytest.mark.parametrize(
    ("between", "changed"),
    [("", True), ("USE prod;", True), ("USE lake.prod;", True), ("USE dev;", False), ("USE CATALOG other;", False)],
)
def test_a_change_is_of_the_table_that_use_makes_it(between: str, changed: bool) -> None:
    sql = f"CREATE TABLE lake.prod.g (a int) USING delta; {between} ALTER TABLE g SET TBLPROPERTIES ('a' = 'b');"
    (table,) = created([("f.sql", sql + f"{between} ALTER TABLE g UNSET TBLPROPERTIES ('c')")], "spark", ["lake"])
    assert table.properties == ({"a": "b"} if changed else {})


def test_a_renamed_table_stays_where_it_is() -> None:
    sql = "CREATE TABLE lake.prod.g (a int); ALTER TABLE lake.prod.g RENAME TO h; USE lake.prod; ALTER TABLE h ADD COLUMN b int"
    (table,) = created([("f.sql", sql)], "spark", ["lake"])
    assert (table.table, table.columns) == ("lake.prod.h", ("a", "b"))


def test_classes_and_lineage_know_a_table_by_the_schema_in_use(
    estate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(estate, "USE prod;\nCREATE TABLE known (uid bigint)", capsys) == (
        4,
        [("prod.known", "wrong_class", "2")],
    )
    assert check(estate, "USE lake;\nCREATE TABLE prod.g (email string)", capsys)[1] == [
        ("lake.prod.g", "too_long", "2"),
        ("lake.prod.g", "unclassified", "2"),
    ]
    people = f"CREATE TABLE prod.people (uid bigint) USING delta {GOOD};\n"
    sql = f"{people}USE prod;\nCREATE TABLE d USING delta AS SELECT uid AS x FROM prod.people;"
    assert ("prod.d", "unclassified", "3") in check(estate, sql, capsys)[1]
