"""The kinds of gaps: one vocabulary, told on one page, and none that nothing makes."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pii_tracer.config.estate_file import load_policy
from pii_tracer.model.errors import ConfigError, ReviewError
from pii_tracer.model.gap_kinds import GapKind, LineageGapKind
from pii_tracer.model.gap_remedies import REMEDIES
from pii_tracer.model.plan import Gap
from pii_tracer.review.plan_file import parse_plan
from tests.review.plans import plan

ROOT = Path(__file__).parents[2]
SOURCE = ("pii_tracer", "planners", "executors", "reports", "sample_lineage")
ENUMS = ("GapKind", "LineageGapKind")
LINK = re.compile(r"(\()?\[([^]]+)\]\(([^)]+)\)(?(1)\))")
GAP = Gap(id="g1", dataset=None, kind=GapKind.UNEXPECTED_COPY, reason="r", evidence="e")


def test_the_page_tells_each_kind_once() -> None:
    page = (ROOT / "docs" / "gaps.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| .+ \| .+ \|$", page, re.MULTILINE)
    assert page.count("\n| `") == len(rows), "a row has another form"
    assert rows == [kind.value for kind in (*GapKind, *LineageGapKind)]


def test_reports_say_what_the_page_says_to_do() -> None:
    page = (ROOT / "docs" / "gaps.md").read_text()
    written = dict(re.findall(r"^\| `(\w+)` \| .+ \| (.+) \|$", page, re.MULTILINE))
    assert {kind: LINK.sub(shown, written[kind]) for kind in GapKind} == REMEDIES


def shown(link: re.Match[str]) -> str:
    """A link of the page, where nobody can follow one: its text, and the page that it leads to. A link in brackets is
    the page alone."""
    bracket, text, target = link.groups()
    return f"{'' if bracket else f'{text} '}(docs/{'gaps.md' * target.startswith('#')}{target})"


def made(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Enum and member of each kind that is not only compared with, or a member of a set."""
    if isinstance(node, ast.Compare | ast.Set | ast.JoinedStr):
        return
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ENUMS:
        yield node.value.id, node.attr
    for child in ast.iter_child_nodes(node):
        yield from made(child)


def test_each_kind_is_made_somewhere() -> None:
    files = (
        f
        for folder in SOURCE
        for f in (ROOT / folder).rglob("*.py")
        if f.name not in ("gap_kinds.py", "gap_remedies.py")
    )
    found = {told for file in files for told in made(ast.parse(file.read_text()))}
    there = {(type(kind).__name__, kind.name) for kind in (*GapKind, *LineageGapKind)}
    assert sorted(there - found) == []


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("unexpected_coppy", "is `unexpected_copy` meant?"),
        ("Unexpected-Copy", "is `unexpected_copy` meant?"),
        ("sql_opaque", "gaps of lineage are all of the kind `lineage`"),
        ("zzz", "docs/gaps.md has all"),
        ("7", "no kind of gap is called 7 (docs/gaps.md has all)"),
        ("[unreadable]", "docs/gaps.md has all"),
    ],
)
def test_a_policy_that_names_no_kind_is_refused(tmp_path: Path, written: str, told: str) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(f"version: 1\nunwaivable: [left_out, {written}]\n")
    with pytest.raises(ConfigError, match="1 mistake") as error:
        load_policy(path)
    assert "unwaivable.1: " in str(error.value)
    assert told in str(error.value)


def test_a_policy_may_name_every_kind(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(f"version: 1\nunwaivable: [{', '.join(GapKind)}]\n")
    assert load_policy(path).unwaivable == tuple(GapKind)


def test_a_plan_has_the_kinds_as_plain_text_and_is_read_again() -> None:
    written = plan(gaps=[GAP])
    raw = written.to_bytes()
    assert json.loads(raw)["gaps"][0]["kind"] == "unexpected_copy"
    read = parse_plan(raw, "p").plan
    assert read.gaps[0].kind is GapKind.UNEXPECTED_COPY
    assert read.to_bytes() == raw


def test_a_plan_with_a_kind_that_is_not_known_is_refused() -> None:
    raw = plan(gaps=[GAP]).to_bytes().replace(b"unexpected_copy", b"unexpected_copie")
    with pytest.raises(ReviewError, match=r"gaps\.0\.kind: .*is `unexpected_copy` meant"):
        parse_plan(raw, "p")
