"""Hooks of MkDocs: add pages of the repository's root, and turn GitHub's Markdown into what Python-Markdown reads.

The pages are written for GitHub, where most people read them first. Three things differ on the site:

- a link to a file outside `docs/` leads to the file's page on the site, or to the repository;
- what belongs to an item of a list is indented by four spaces, where GitHub takes the indent of the item's own text;
- an item begins after an empty line, unless it follows another item.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
ROOT_PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
"""Pages of the repository's root, with their place on the site."""
_PLACES = {page: name for name, page in ROOT_PAGES.items()}
_LINK = re.compile(r"(`[^`\n]*`)|\]\(([^)\s]+)\)")
_FENCE = re.compile(r" *(```|~~~)")
_ITEM = re.compile(r"( *)([-*+]|\d+[.)])( +)\S")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    from mkdocs.structure.files import File

    for name, page in ROOT_PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    return for_site(markdown, page.file.src_uri, config.extra["repository"])


def for_site(markdown: str, page: str, repository: str) -> str:
    """A page's text as the site's Markdown. page: its place on the site."""
    lines = []
    for line, code in with_code(item_indents(markdown)):
        if not code:
            line = _LINK.sub(lambda m: m[1] or f"]({link_target(m[2], page, repository)})", line)
        lines.append(line)
    return "\n".join(lines)


def link_target(target: str, page: str, repository: str) -> str:
    """A link's target on the site, relative to the page. Files that the site does not have are in the repository."""
    path, mark, anchor = target.partition("#")
    if not path or "://" in target or target.startswith("mailto:"):
        return target
    here = _PLACES.get(page, f"docs/{page}")
    there = posixpath.normpath(posixpath.join(posixpath.dirname(here), path))
    place = ROOT_PAGES.get(there, there.removeprefix("docs/") if there.startswith("docs/") else None)
    if place is None or (ROOT / there).is_dir():
        return f"{repository}/{'tree' if (ROOT / there).is_dir() else 'blob'}/main/{there}{mark}{anchor}"
    return posixpath.relpath(place, posixpath.dirname(page) or ".") + mark + anchor


def with_code(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it belongs to a block of code."""
    fence = ""
    for line in text.splitlines():
        match = _FENCE.match(line)
        if fence:
            yield line, True
            fence = "" if match and match[1] == fence else fence
        else:
            fence = match[1] if match else ""
            yield line, bool(match)


def item_indents(text: str) -> str:
    """Indent what belongs to an item of a list by four spaces a level, with an empty line before each list."""
    items: list[int] = []  # where the text of each open item begins
    lines: list[str] = []
    for line, code in with_code(text):
        if not line.strip():
            lines.append("")
            continue
        indent = len(line) - len(line.lstrip())
        item = None if code else _ITEM.match(line)
        if not code or _FENCE.match(line):
            while items and indent < items[-1]:
                items.pop()
        inner = items[-1] if items else 0
        if item and lines and lines[-1] and not _in_item(lines):
            lines.append("")
        lines.append(" " * (4 * len(items) + max(indent - inner, 0)) + line.lstrip())
        if item:
            items.append(len(item[1]) + len(item[2]) + len(item[3]))
    return "\n".join(lines) + "\n"


def _in_item(lines: list[str]) -> bool:
    """Whether the last block of lines begins with an item of a list."""
    block = []
    for line in reversed(lines):
        if not line:
            break
        block.append(line)
    return bool(_ITEM.match(block[-1]))
