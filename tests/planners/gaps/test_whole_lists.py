"""A gap that shows a part of a list has all of it for its digest: a waiver of the first file is for no other rest."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
MAKERS = {"gap": 5, "_gap": 6, "gap_of": 5, "Gap": 9, "InventoryGap": 5}
"""By what makes a gap, the number of arguments with which it has the whole list."""
WHOLE = {"seen", "whole", "listed"}


def cut(node: ast.AST) -> bool:
    """Whether the first of something is taken, or the first few."""
    taken = [one.slice for one in ast.walk(node) if isinstance(one, ast.Subscript)]
    return any(isinstance(one, ast.Slice) or (isinstance(one, ast.Constant) and one.value == 0) for one in taken)


def partly_shown(source: str) -> Iterator[int]:
    """Lines with a gap that shows the beginning of something and does not have the rest."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS:
            named = {one.arg for one in node.keywords}
            whole = len(node.args) >= MAKERS[node.func.id] or WHOLE & named
            if not whole and any(map(cut, [*node.args, *(one.value for one in node.keywords)])):
                yield node.lineno


def test_it_finds_a_gap_that_shows_the_first_file_alone() -> None:
    assert list(partly_shown("gap(d, kind, reason, str(missing[0]))")) == [1]
    assert list(partly_shown("gap(d, kind, reason, str(missing[0]), missing)")) == []
    assert list(partly_shown("Gap(id='a', reason=', '.join(names[:3]))")) == [1]


def test_every_gap_that_shows_a_part_of_a_list_has_all_of_it() -> None:
    files = [file for room in ("planners", "pii_tracer/lake") for file in sorted((ROOT / room).rglob("*.py"))]
    assert [f"{file}:{line}" for file in files for line in partly_shown(file.read_text())] == []
