"""Each kind of gap is named by a test: a kind that nobody plans for would not be missed."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from pii_tracer.model.gap_kinds import GapKind, LineageGapKind

TESTS = Path(__file__).parent
WRITTEN_BY_HAND = ("review", "reports", "docs", "schemas", "web", "proof", "benchmarks")
"""Folders whose plans are written by hand, or that read the documentation: a kind named there was raised by nobody."""
_KIND = re.compile(r"(?:gap-)?([a-z0-9_]+)|gap-([a-z0-9_]+)-.*", re.DOTALL)


def named(source: str) -> set[str]:
    """What a module names: members by their name in capitals; texts that are a kind, or an id of such a gap."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id.endswith("GapKind"):
            found.add(node.attr.lower())
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and (text := _KIND.fullmatch(node.value)):
            found.add(text[1] or text[2])
    return found


def test_each_kind_of_gap_is_named_by_a_test() -> None:
    modules = [path for path in TESTS.rglob("*.py") if path.relative_to(TESTS).parts[0] not in WRITTEN_BY_HAND]
    kinds = [kind.value for kind in (*GapKind, *LineageGapKind)]
    assert len(kinds) > 130
    missing = set(kinds)
    for path in modules:
        text = path.read_text(encoding="utf-8")
        # to parse all of them takes long, and most kinds stand in few
        if path != Path(__file__) and not missing.isdisjoint(re.findall(r"[a-z0-9_]+", text.lower())):
            missing -= named(text)
    assert sorted(missing) == []


def test_what_counts_as_naming_a_kind() -> None:
    told = "f(GapKind.HDFS_PLACE, 'hdfs_trash', 'gap-two_formats-x', f'{x}', 'no kind of not_keys', 'not_keys of', 'key_only/x', G.KEY_ONLY)"
    assert named(told) >= {"hdfs_place", "hdfs_trash", "two_formats"}
    assert named(told).isdisjoint({"not_keys", "key_only"})
