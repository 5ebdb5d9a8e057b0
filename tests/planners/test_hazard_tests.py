"""The catalogue's word `tested` is held to tests that exist (tests/hazard_tests.py), and so is what the docs name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

from tests.hazard_tests import NOT_SHOWN, SHOWN, TRAPS

ROOT = Path(__file__).parents[2]
CATALOGUE = dict(
    re.findall(r"^\| ([A-Z]\d+[a-z]?) \|.*\| (tested|documented) \|$", (ROOT / "docs/hazards.md").read_text(), re.M)
)
"""How we know, by id."""


def missing(nodes: Iterable[str]) -> list[str]:
    """Node ids without a test function at the top of that file."""
    functions = {
        path: {node.name for node in ast.parse((ROOT / path).read_text()).body if isinstance(node, ast.FunctionDef)}
        for path in {node.partition("::")[0] for node in nodes}
        if (ROOT / path).is_file()
    }
    return [node for node in nodes if node.partition("::")[2] not in functions.get(node.partition("::")[0], ())]


def test_every_tested_hazard_names_tests_that_exist() -> None:
    assert set(SHOWN) == {hazard for hazard, basis in CATALOGUE.items() if basis == "tested"}
    assert all(SHOWN.values())
    assert missing([node for nodes in SHOWN.values() for node in nodes]) == []


def test_every_entry_says_how_we_know_and_the_page_counts_them() -> None:
    page = (ROOT / "docs" / "hazards.md").read_text()
    assert set(re.findall(r"^\| ([A-Z]\d+[a-z]?) \|", page.partition("## Catalogue")[2], re.M)) == CATALOGUE.keys()
    assert f"of the {len(CATALOGUE)} entries" in page


def test_what_is_not_shown_says_why() -> None:
    assert set(NOT_SHOWN) == {hazard for hazard, basis in CATALOGUE.items() if basis != "tested"}
    assert all(NOT_SHOWN.values())


def test_every_hazard_that_a_planner_names_is_in_the_catalogue() -> None:
    texts = "".join(path.read_text() for path in (ROOT / "planners").rglob("*.py"))
    named = set(re.findall(r"\b([DIHFSKCEM]\d{1,2}b?)\b", "".join(re.findall(r"hazards ?=[^=]*?\)", texts))))
    assert len(named) > 30
    assert named <= CATALOGUE.keys()


def test_clean_ups_with_other_effects_have_tests_which_the_docs_name() -> None:
    assert missing(TRAPS) == []
    docs = (ROOT / "docs" / "hazards.md").read_text()
    (table,) = [part for part in docs.split("\n\n") if part.startswith("| clean-up |")]
    assert [node for node in TRAPS if node.partition("::")[2] not in table] == []


def test_a_test_that_is_not_there_is_missed() -> None:
    there = "tests/planners/test_hazard_tests.py::test_a_test_that_is_not_there_is_missed"
    gone = [f"{there}_any_more", "tests/planners/test_nowhere.py::test_x"]
    assert missing([there, *gone]) == gone
