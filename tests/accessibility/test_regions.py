"""What scrolls can be reached and scrolled by keys alone, and says its name to those who hear pages."""

from __future__ import annotations

import re
from pathlib import Path

TEMPLATES = Path(__file__).parents[2] / "reports" / "templates"
_SCROLLS = re.compile(r'<div class="scroll\b[^>]*>')
_REACHED = re.compile(r' role="region" aria-label="[^"]+" tabindex="0"')


def test_every_region_that_scrolls_is_reached_by_keys() -> None:
    found = [(page.name, tag) for page in sorted(TEMPLATES.rglob("*.j2")) for tag in _SCROLLS.findall(page.read_text())]
    assert len(found) > 20
    assert [(name, tag) for name, tag in found if not _REACHED.search(tag)] == []


def test_every_column_has_a_head() -> None:
    assert [page.name for page in TEMPLATES.rglob("*.j2") if "<th></th>" in page.read_text()] == []
