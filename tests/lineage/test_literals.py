"""Literals in SQL are found and hidden whatever they hold; names stay."""

from __future__ import annotations

import pytest

from pii_tracer.lineage.sql.text.literal_redaction import hidden, literals


@pytest.mark.parametrize(
    ("sql", "shown", "inside"),
    [
        ("a = 'P-1' OR b <> \"mira\"", "a = '…' OR b <> '…'", ["P-1", "mira"]),
        ("`it's` = 'O''Brien'", "`it's` = '…'", ["O'Brien"]),
        (r"a = 'x\'y' AND b", "a = '…' AND b", ["x'y"]),
        (r"rlike(a, r'\') AND b = 'q'", "rlike(a, '…') AND b = '…'", ["\\", "q"]),
        ("a /* mira's */ + b -- zoe\n+ c", "a /* … */ + b /* … */\n+ c", ["mira's", "zoe"]),
        ("a = 'open", "a = '…'", ["open"]),
        ("date'2026-01-01' + CAST(x AS STRING)", "date'…' + CAST(x AS STRING)", ["2026-01-01"]),
        ("sha2(db.people.cust, 256)", "sha2(db.people.cust, 256)", []),
    ],
)
def test_literals_are_found_and_hidden(sql: str, shown: str, inside: list[str]) -> None:
    assert hidden(sql) == shown
    assert list(literals(sql)) == inside
