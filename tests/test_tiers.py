"""Which tests `make test` leaves out: each has a name that exists, and something of its kind that `make test` runs."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.mutants import TESTS
from tests.nightly_tests import NIGHTLY
from tests.slow_tests import SLOW, STAYS, is_slow, matches

ROOT = Path(__file__).parents[1]
LISTS = {"slow": SLOW, "nightly": NIGHTLY, "stays": STAYS}


@cache
def module(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


def files(name: str) -> list[str]:
    """The test files that a name of a list begins, or is of."""
    path = name.partition("*")[0].partition("::")[0]
    folder, _, start = path.rpartition("/")
    found = (ROOT / folder).rglob(f"{start}*" if start else "test_*.py")
    return [file.relative_to(ROOT).as_posix() for file in found if file.match("test_*.py")]


def functions(path: str) -> list[ast.FunctionDef | ast.ClassDef]:
    return [node for node in ast.walk(module(path)) if isinstance(node, ast.FunctionDef | ast.ClassDef)]


def marks(node: ast.AST) -> str:
    """The marks that a decorator, or `pytestmark`, gives to all of it."""
    return " ".join(re.findall(r"mark\.(\w+)", ast.unparse(node)))


@pytest.mark.parametrize("tier", LISTS)
def test_every_name_is_a_tests(tier: str) -> None:
    for name in LISTS[tier]:
        wanted = name.partition("::")[2].split("[")[0].split("*")[0]
        there = [node.name for path in files(name) for node in functions(path)]
        assert any(known.startswith(wanted) for known in there), name


def test_a_name_that_no_test_has_is_seen() -> None:
    assert files("tests/test_tiers.py::test_x") == ["tests/test_tiers.py"]
    assert files("tests/test_nowhere.py::test_x") == []
    assert len(files("tests/executors/formats/delta/test_delta")) > 2


def test_what_shows_the_same_is_there() -> None:
    """Files and folders that the lists name in their reasons."""
    for tier in (SLOW, NIGHTLY):
        for name, reason in tier.items():
            for path in re.findall(r"tests/[\w/]+(?:\.py)?", reason):
                assert (ROOT / path).exists(), (name, path)


def test_what_shows_the_same_is_not_left_out_itself() -> None:
    """A file of which `make test` runs nothing shows nothing there."""
    for name, reason in SLOW.items():
        for path in re.findall(r"tests/[\w/]+\.py", reason):
            tests = [f"{path}::{node.name}" for node in functions(path) if node.name.startswith(("test_", "Test"))]
            assert any(not is_slow(test) and not test.startswith(tuple(NIGHTLY)) for test in tests), (name, path)


def test_what_stays_is_run() -> None:
    for name, kind in STAYS.items():
        path, _, test = name.partition("::")
        assert not name.startswith(tuple(NIGHTLY)), kind
        of_all = [
            node for node in module(path).body if isinstance(node, ast.Assign) and "pytestmark" in ast.unparse(node)
        ]
        its = [mark for node in functions(path) if node.name.startswith(test.split("[")[0]) and test
               for mark in node.decorator_list if "parametrize" not in ast.unparse(mark)]  # fmt: skip
        assert not {"slow", "nightly"} & set(" ".join(map(marks, [*of_all, *its])).split()), kind


def test_no_rule_is_slow() -> None:
    """What `make mutants` runs decides what is deleted and what is clean: there, only tests with an engine are slow."""
    rules = tuple({f"tests/{path}" for paths in TESTS.values() for path in paths})
    assert len(rules) >= 4
    assert all((ROOT / path).exists() for path in rules)
    for name in SLOW:
        for path in files(name):
            if path.startswith(rules):
                assert "pytest.mark.spark" in (ROOT / path).read_text(encoding="utf-8"), name


def test_parameters_of_a_name() -> None:
    assert matches("tests/a/test_b.py::test_c[x-postgresql]", "tests/a/*postgresql")
    assert not matches("tests/a/test_b.py::test_c[x-file]", "tests/a/*postgresql")
    assert not matches("tests/b/test_b.py::test_c[x-postgresql]", "tests/a/*postgresql")
    assert is_slow(f"{next(iter(SLOW))}test_x")
    assert not any(is_slow(name) for name in STAYS)
