"""A table fills what it fills also under another name, whatever is read first: files have no order, rows of a log stand
alone.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pii_tracer.config.lineage import LineageSources, QueryLog
from pii_tracer.lineage.dataset_names import VIEW
from pii_tracer.model.datasets import DatasetId
from tests.lineage.harvesting import harvest
from tests.planners.estates import columns, dataset

TABLES = ("prod.users", "prod.shops", "prod.a", "prod.b", "prod.out")
KEYS = "INSERT INTO prod.out (id, w) SELECT id, w FROM prod.users"
OTHERS = "INSERT INTO prod.out (w) SELECT w FROM prod.shops"
MOVES: dict[str, tuple[str, list[str]]] = {
    "ALTER TABLE RENAME": (
        "postgres",
        ["CREATE TABLE prod.a (id BIGSERIAL, w TEXT)", "ALTER TABLE prod.a RENAME TO out"],
    ),
    "a chain of names": (
        "postgres",
        [
            "CREATE TABLE prod.a (id BIGSERIAL, w TEXT)",
            "ALTER TABLE prod.a RENAME TO b",
            "ALTER TABLE prod.b RENAME TO out",
        ],
    ),
    "a column and its table": (
        "postgres",
        [
            "CREATE TABLE prod.a (x BIGSERIAL, w TEXT)",
            "ALTER TABLE prod.a RENAME COLUMN x TO id",
            "ALTER TABLE prod.a RENAME TO out",
        ],
    ),
    "a column and its table at once": (
        "mysql",
        [
            "CREATE TABLE prod.a (x BIGINT, w TEXT)",
            "ALTER TABLE prod.a RENAME TO prod.out, CHANGE x id BIGINT AUTO_INCREMENT",
        ],
    ),
    "RENAME TABLE": (
        "mysql",
        ["CREATE TABLE prod.a (id BIGINT AUTO_INCREMENT, w TEXT)", "RENAME TABLE prod.a TO prod.out"],
    ),
    "sp_rename": (
        "tsql",
        ["CREATE TABLE prod.a (id BIGINT IDENTITY(1, 1), w TEXT)", "EXEC sp_rename 'prod.a', 'out'"],
    ),
    "SWAP WITH": (
        "snowflake",
        [
            "CREATE TABLE prod.a (id INT AUTOINCREMENT, w TEXT)",
            "CREATE TABLE prod.out (id INT, w TEXT)",
            "ALTER TABLE prod.a SWAP WITH prod.out",
        ],
    ),
    "SWAP WITH, the other way": (
        "snowflake",
        [
            "CREATE TABLE prod.a (id INT AUTOINCREMENT, w TEXT)",
            "CREATE TABLE prod.out (id INT, w TEXT)",
            "ALTER TABLE prod.out SWAP WITH prod.a",
        ],
    ),
    "EXCHANGE TABLES": (
        "clickhouse",
        [
            "CREATE TABLE prod.a (id Int64 DEFAULT rand(), w String)",
            "CREATE TABLE prod.out (id Int64, w String)",
            "EXCHANGE TABLES prod.a AND prod.out",
        ],
    ),
}


def filled(base: Path, dialect: str, texts: list[str], *, log: bool, into: DatasetId | None = None) -> set[str]:
    """The columns that tables fill in what is written to prod.out, or elsewhere."""
    if log:
        rows = [{"sql": text, "at": f"2026-11-01T00:00:{n:02d}Z"} for n, text in enumerate(texts)]
        (base / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        sources = LineageSources(queries=(QueryLog(path="log.jsonl", dialect=dialect, time="at"),))
    else:
        (base / "jobs").mkdir()
        for number, text in enumerate(texts):
            (base / "jobs" / f"{number}.sql").write_text(text)
        sources = LineageSources(sql=("jobs",), dialect=dialect)
    schemas = {name: columns("id bigint, w string") for name in TABLES}
    graph = harvest(sources, base, (), {name: dataset(name) for name in TABLES}, schemas)
    return {column.lower() for job in graph.jobs_into(into or dataset("prod.out")) for column, _ in job.filled}


@pytest.mark.parametrize("log", [True, False], ids=["log", "files"])
@pytest.mark.parametrize("last", [True, False], ids=["moved last", "moved first"])
@pytest.mark.parametrize(("dialect", "texts"), MOVES.values(), ids=MOVES)
def test_a_table_fills_its_columns_under_another_name(
    tmp_path: Path, dialect: str, texts: list[str], last: bool, log: bool
) -> None:
    writes = [KEYS, OTHERS]
    told = [*writes, *reversed(texts)] if last else [*texts, *writes]
    assert "id" in filled(tmp_path, dialect, told, log=log)


@pytest.mark.parametrize("log", [True, False], ids=["log", "files"])
def test_nothing_is_filled_in_a_table_that_only_gives_rows(tmp_path: Path, log: bool) -> None:
    made = ["CREATE TABLE prod.a (id BIGINT IDENTITY(1, 1), w TEXT)", "CREATE TABLE prod.out (id BIGINT, w TEXT)"]
    texts = [*made, KEYS, OTHERS, "ALTER TABLE prod.a SWITCH TO prod.out"]
    assert not filled(tmp_path, "tsql", texts, log=log)


@pytest.mark.parametrize(
    ("defined", "known"), [([], False), (["CREATE TABLE prod.a (id INT, w TEXT)"], True)], ids=["unknown", "known"]
)
@pytest.mark.parametrize("move", ["ALTER TABLE prod.a RENAME TO out", "ALTER TABLE prod.out SWAP WITH prod.a"])
def test_the_word_default_means_anything_where_nobody_defines_what_took_the_name(
    tmp_path: Path, move: str, defined: list[str], known: bool
) -> None:
    texts = [*defined, move, "UPDATE prod.out SET id = DEFAULT WHERE w = 'x'"]
    if "SWAP" in move:
        texts.insert(0, "CREATE TABLE prod.out (id INT, w TEXT)")
    assert ("id" not in filled(tmp_path, "snowflake", texts, log=True)) is known


SHOWN = {
    "a view": ("postgres", ["CREATE VIEW prod.v AS SELECT id, w FROM prod.out"]),
    "a view that renames": ("postgres", ["CREATE VIEW prod.v AS SELECT id AS no, w FROM prod.out"]),
    "a view of a view": (
        "postgres",
        ["CREATE VIEW prod.u AS SELECT id AS no, w FROM prod.out", "CREATE VIEW prod.v AS SELECT no, w FROM prod.u"],
    ),
    "a synonym": ("oracle", ["CREATE SYNONYM prod.v FOR prod.out"]),
}


@pytest.mark.parametrize("log", [True, False], ids=["log", "files"])
@pytest.mark.parametrize(("dialect", "views"), SHOWN.values(), ids=SHOWN)
def test_a_table_fills_its_columns_behind_a_view(tmp_path: Path, dialect: str, views: list[str], log: bool) -> None:
    made = "CREATE TABLE prod.out (id INT GENERATED BY DEFAULT AS IDENTITY, w VARCHAR(9))"
    texts = [made, *views, "INSERT INTO prod.v (w) SELECT w FROM prod.shops"]
    found = filled(tmp_path, dialect, texts, log=log, into=DatasetId(namespace=VIEW, name="prod.v"))
    assert found == {"no" if "no" in views[0] else "id"}


def test_a_view_that_says_all_leaves_nothing_to_fill(tmp_path: Path) -> None:
    made = ["CREATE TABLE prod.out (id BIGSERIAL, w TEXT)", "CREATE VIEW prod.v AS SELECT id AS no, w FROM prod.out"]
    texts = [*made, "INSERT INTO prod.v (no, w) SELECT id, w FROM prod.users"]
    assert not filled(tmp_path, "postgres", texts, log=False, into=DatasetId(namespace=VIEW, name="prod.v"))
