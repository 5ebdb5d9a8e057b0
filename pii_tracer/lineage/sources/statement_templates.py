"""Texts that differ in dates and run ids only: one of them is parsed, where its lineage does not hold what differs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from pii_tracer.lineage.sql.statement_effects import StatementLineage

_DIFFERS = re.compile(
    r"'(\d{4}-\d\d(?:-\d\d)?(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?|\d{8}|\d{10}"
    r"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})'"
)
"""Quoted dates, times and UUIDs. Plain numbers stay: they can be positions (`GROUP BY 2`) or lengths."""


def skeleton(text: str) -> str:
    """The text without its dates and run ids."""
    return _DIFFERS.sub("'?'", text)


def stands_for_all(text: str, made: Sequence[StatementLineage]) -> bool:
    """Whether all texts of one skeleton have this text's lineage: nothing in it shows a date or run id of the text.

    A date can be within an expression (a salt, a condition), a path or a name; then each text has a lineage of its own.
    """
    told = msgspec.json.encode([replace(one, sql="") for one in made]).decode()
    return not any(value in told for value in _DIFFERS.findall(text))
