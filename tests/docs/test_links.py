"""Links between pages lead to files and headings that exist."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.prose import ROOT, pages

LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """Of each heading, as GitHub makes them."""
    text = re.sub(r"(?ms)^ *```.*?^ *```", "", page.read_text(encoding="utf-8"))
    found: set[str] = set()
    for heading in re.findall(r"(?m)^#+ (.*)$", text):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", shown.strip()).replace(" ", "-"))
    return found


def broken(page: Path) -> list[str]:
    text = re.sub(r"(?ms)^ *```.*?^ *```|`[^`\n]*`", "", page.read_text(encoding="utf-8"))
    found = []
    for target in LINK.findall(text):
        path, _, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors(there)):
            found.append(f"{page.relative_to(ROOT)}: {target}")
    return found


def test_every_link_leads_somewhere() -> None:
    assert [link for page in pages() for link in broken(page)] == []


def test_headings_give_anchors() -> None:
    page = ROOT / "docs" / "index.md"
    assert "how-to" in anchors(page)
    assert "no-such-heading" not in anchors(page)
