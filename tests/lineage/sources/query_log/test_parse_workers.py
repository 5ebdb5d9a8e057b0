"""Several processes give the readings of one, in its order; a text that ends a process is a gap, and the rest is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from pii_tracer.lineage.sources.query_log import parse_workers
from pii_tracer.lineage.sources.query_log.parse_workers import parser_in
from pii_tracer.lineage.sources.query_log.shape_parsing import Query, parse_here
from pii_tracer.lineage.sources.table_candidates import Tables
from pii_tracer.lineage.sql.text.table_names import Loose
from pii_tracer.model.errors import LineageError

TABLES = Tables({"a.s": [("id", "int"), ("mail", "")], "a.l": Loose([("id", ""), ("mail", "")])})
TEXTS = [
    "INSERT INTO a.t{n} SELECT id, upper(mail) AS m FROM a.s WHERE id = 'piislot0te'",
    "INSERT INTO a.u SELECT * FROM l",
    "SELECT 'x",
    "FROBNICATE {n}",
]
QUERIES = [Query(TEXTS[n % 4].format(n=n), "spark", "a") for n in range(30)]
DIES = """
import os
from pii_tracer.lineage.sql.sql_lineage import Script
run = Script.run
Script.run = lambda self, text: os._exit(11) if "DIES" in text else run(self, text)
"""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse_workers, "FEW", 2)
    monkeypatch.setattr(parse_workers, "_AT_ONCE", 4)
    monkeypatch.setattr(parse_workers, "_AHEAD", 1)


def test_several_processes_give_the_readings_of_one():
    assert list(parser_in(2)(QUERIES, TABLES)) == list(parse_here(QUERIES, TABLES))


def test_few_texts_start_no_process(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parse_workers, "FEW", 31)
    monkeypatch.setattr(parse_workers, "_Worker", None)
    assert list(parser_in(2)(QUERIES, TABLES)) == list(parse_here(QUERIES, TABLES))


def test_a_text_that_ends_its_process_is_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "sitecustomize.py").write_text(DIES)
    monkeypatch.syspath_prepend(str(tmp_path))
    dying = {5, 29}
    queries = [Query("SELECT 'DIES'", "spark", "") if n in dying else q for n, q in enumerate(QUERIES)]
    found = list(parser_in(2)(queries, TABLES))
    whole = list(parse_here(QUERIES, TABLES))
    assert [n for n, one in enumerate(found) if "ended too early" in one.error] == sorted(dying)
    assert [one for n, one in enumerate(found) if n not in dying] == [r for n, r in enumerate(whole) if n not in dying]


def test_readers_that_stop_early_leave_no_process(monkeypatch: pytest.MonkeyPatch):
    started = []
    worker = parse_workers._Worker

    def starts() -> parse_workers._Worker:
        started.append(worker())
        return started[-1]

    monkeypatch.setattr(parse_workers, "_Worker", starts)
    readings = parser_in(2)(QUERIES, TABLES)
    next(readings)
    readings.close()  # type: ignore[attr-defined]
    assert len(started) == 2
    assert all(one.process.poll() is not None for one in started)


def test_a_process_that_cannot_start_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "sitecustomize.py").write_text("import os; os._exit(3)")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(LineageError, match="could not be started"):
        list(parser_in(2)(QUERIES, TABLES))
