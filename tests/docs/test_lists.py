"""Lists and tables of the pages begin where a reader sees them begin."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from tests.docs.prose import ROOT, pages

_CODE = re.compile(r"(?ms)^ *(```|~~~).*?^ *\1 *$")
_DASHES = re.compile(r"\|[-:| ]*-[-:| ]*")
_ITEM = re.compile(r"- |\d+\. ")


def torn(text: str) -> list[str]:
    """Lines that belong to a list or a table, and do not look so: the sign that begins an item or a row is missing, or
    no empty line is before the list, so that the site shows it as a part of its paragraph, or the head of a table."""
    lines = ["", *_CODE.sub("", text).splitlines()]
    found = []
    for before, line in pairwise(lines):
        in_list = before == "" or before.startswith((" ", "#", "<")) or _ITEM.match(before)
        no_item = line.startswith("- ") and not in_list
        no_row = line == "|" or (line.startswith("|") and before and not before.startswith(("|", "<")))
        row_without_sign = before.startswith("|") and line and not line.startswith("|")
        no_head = bool(_DASHES.fullmatch(line)) and not before.startswith("|")
        if no_item or no_row or row_without_sign or no_head:
            found.append(line)
    return found


def test_lists_and_tables_of_the_pages_are_whole() -> None:
    found = {str(page.relative_to(ROOT)): torn(page.read_text(encoding="utf-8")) for page in pages()}
    assert {page: lines for page, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("These are refused:\n\na table;\n- a view.\n", ["- a view."]),
        ("These are refused:\n- a view.\n", ["- a view."]),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n|\n", ["|"]),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n3 | 4 |\n", ["3 | 4 |"]),
        ("See:\n\n|---|---|\n| 1 | 2 |\n", ["|---|---|"]),
        ("See:\n| a | b |\n|---|---|\n", ["| a | b |"]),
        ("These are refused:\n\n- a table,\n  of any kind\n- a view\n\n```\nx\n- y\n```\n", []),
    ],
)
def test_a_torn_list_is_seen(text: str, lines: list[str]) -> None:
    assert torn(text) == lines
