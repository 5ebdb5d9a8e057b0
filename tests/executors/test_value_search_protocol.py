"""What executors are given to look for values with, and that without it nothing counts as clean."""

from __future__ import annotations

import ast
from datetime import datetime, timezone
from pathlib import Path

import pytest

from executors.context import ExecutionContext
from pii_tracer.app.execution.executor_value_search import ScanFinder
from pii_tracer.model.datasets import Format, KeySet, Match, MatchTerm
from pii_tracer.model.errors import RunError
from pii_tracer.review.sealed_person_values import KeyRing
from tests.s3support import estate

MAIL = "k.mueller@firm.example"
SETS = (
    KeySet(name="mail", origin="u.mail", weak=False, values=(("subj_1", MAIL),)),
    KeySet(name="id", origin="u.id", weak=True, values=(("subj_1", "48213"),)),
)
MATCH = Match(terms=(MatchTerm(column="id", key_set="id", type="string"),))


def test_without_a_search_nothing_is_clean() -> None:
    ctx = ExecutionContext(estate("http://127.0.0.1:9"), Path(), KeyRing(()), lambda: datetime.now(timezone.utc))
    with pytest.raises(RunError, match="no value search is configured"):
        ctx.finds(SETS)


def test_a_value_is_seen_wherever_it_stands() -> None:
    finder = ScanFinder(SETS)
    assert MAIL not in finder.mask(f"day=1/{MAIL}/a")
    assert (finder.in_text(f"of {MAIL}"), finder.in_text("of nobody")) == (True, False)
    held = finder.in_file("a.csv", f"id,mail\n7,{MAIL}\n".encode(), Format.CSV, MATCH, (), {})
    assert (held.held, held.unread) == (True, ())
    assert finder.beside({"Metadata": {"owner": MAIL}}, {}, ()).held
    assert finder.beside({}, {"owner": MAIL}, ()).held
    assert not finder.beside({"Metadata": {"owner": "ops"}}, {"owner": "ops"}, ()).held
    assert finder.beside({"MissingMeta": 1}, {}, ()).unread


def test_a_short_number_counts_but_where_it_means_something_else() -> None:
    finder, data = ScanFinder(SETS), b"id,price\n7,48213\n"
    assert finder.in_file("a.csv", data, Format.CSV, MATCH, (), {}).held
    assert not finder.in_file("a.csv", data, Format.CSV, MATCH, ("price",), {}).held


def test_another_systems_number_counts_but_in_its_column() -> None:
    sets = (KeySet(name="id", origin="u.id", weak=False, values=(("subj_1", "7340219981"),)),)
    finder, driver = ScanFinder(sets), {"driver": frozenset({"id"})}
    for data, held in ((b"id,driver\n7,7340219981\n", False), (b"driver,note\n7,7340219981\n", True)):
        assert finder.in_file("a.csv", data, Format.CSV, MATCH, (), {}).held
        assert finder.in_file("a.csv", data, Format.CSV, MATCH, (), driver).held is held


def test_who_erases_imports_nothing_of_who_searches() -> None:
    """The rule of the import linter, for who runs the tests alone."""
    found = []
    for path in Path("executors").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            found += [
                (path.name, name) for name in names if f"{name}.".startswith(("pii_tracer.scan.", "pii_tracer.verify."))
            ]
    assert found == []
