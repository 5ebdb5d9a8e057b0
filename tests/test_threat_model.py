"""docs/threat-model.md names tests and modules that exist, and pages that lead to it do so."""

from __future__ import annotations

import re
from pathlib import Path

from tests.planners.test_hazard_tests import missing

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/threat-model.md").read_text(encoding="utf-8")
NOT_STOPPED = "**Not stopped:**"


def test_every_test_it_names_exists() -> None:
    named = re.findall(r"`(tests/[^`]*::[^`]*)`", PAGE)
    assert len(named) == PAGE.count("::")  # no other way of writing one escapes the check
    assert missing(named) == []


def test_every_module_it_names_exists() -> None:
    named = set(re.findall(r"`([\w/]+\.py)`", PAGE))
    assert len(named) > 20
    assert [path for path in sorted(named) if not (ROOT / path).is_file()] == []


def test_each_actor_has_a_test_in_every_row_and_says_what_is_not_stopped() -> None:
    for actor in PAGE.split("\n## ")[1:]:
        rows = [line for line in actor.splitlines() if line.startswith("| ")][1:]
        assert rows, actor
        assert [row for row in rows if "::" not in row.rsplit(" | ", 1)[1]] == []
        assert actor.count(NOT_STOPPED) == actor.count("What to do: ") == 1, actor


def test_it_is_found_from_the_pages_that_lead_to_it() -> None:
    for page, link in (
        ("README.md", "docs/threat-model.md"),
        ("SECURITY.md", "docs/threat-model.md"),
        ("docs/architecture.md", "threat-model.md"),
    ):
        assert f"({link})" in (ROOT / page).read_text(encoding="utf-8"), page
