"""Check a built site: `python -m tests.docs.built_site build/site` (part of `make docs`).

- a page loads nothing from another host, and its policy forbids that to scripts, too;
- links within the site lead to files and anchors that exist;
- no Markdown is left in a paragraph, as where a list or a table was not understood.
"""

from __future__ import annotations

import posixpath
import re
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "iframe": ("src",),
    "embed": ("src",),
    "video": ("src", "poster"),
    "audio": ("src",),
    "object": ("data",),
    "link": ("href",),
    "form": ("action",),
    "base": ("href",),
}
"""Attributes by which a page loads something or sends to it. Links that a reader follows are not among them."""
_POLICY = {"default-src 'self'", "script-src 'self' 'unsafe-inline'", "object-src 'none'"}
_IN_CSS = re.compile(r"""url\(\s*['"]?([^'")]+)|@import\s+['"]([^'"]+)""")
_MARKDOWN = re.compile(r"(?m)^\s*(?:[-*+] |\d+\. |\|.*\||#+ |```)|\]\(|^\s*\|?\s*:?-{3,}")


@dataclass
class Read(HTMLParser):
    """What a page loads, where its links lead, which anchors it has, and what its paragraphs say."""

    loads: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    paragraphs: list[str] = field(default_factory=list)
    policy: str = ""
    _open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        self.loads += [given[name] for name in _LOADED.get(tag, ()) if name in given]
        if "style" in given:
            self.loads += in_css(given["style"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "meta" and given.get("http-equiv", "").lower() == "content-security-policy":
            self.policy = given.get("content", "")
        if tag in ("p", "code", "style"):
            self._open.append(tag)
            if tag == "p":
                self.paragraphs.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            del self._open[len(self._open) - 1 - self._open[::-1].index(tag) :]

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "p":
            self.paragraphs[-1] += data
        if self._open and self._open[-1] == "style":
            self.loads += in_css(data)


def in_css(text: str) -> list[str]:
    return [match[1] or match[2] for match in _IN_CSS.finditer(text)]


def elsewhere(target: str) -> bool:
    """Whether a target names a host, or a scheme other than data."""
    parts = urlsplit(target.strip())
    return bool(parts.netloc) or parts.scheme not in ("", "data")


def read(page: Path) -> Read:
    found = Read()
    found.feed(page.read_text(encoding="utf-8"))
    return found


def faults(site: Path) -> list[str]:
    """What is wrong with a built site, one line each."""
    pages = {path.relative_to(site).as_posix(): read(path) for path in sorted(site.rglob("*.html"))}
    found = [f"{site}: no page was built"] if "index.html" not in pages else []
    for name, page in pages.items():
        found += [f"{name}: loads {target}" for target in page.loads if elsewhere(target)]
        missing = _POLICY - {part.strip() for part in page.policy.split(";")}
        found += [f"{name}: its policy lacks {part}" for part in sorted(missing)]
        found += [f"{name}: a link leads nowhere: {link}" for link in page.links if not leads(link, name, site, pages)]
        found += [f"{name}: Markdown is left: {text[:80]}" for text in page.paragraphs if _MARKDOWN.search(text)]
    for css in sorted(site.rglob("*.css")):
        loads = in_css(css.read_text(encoding="utf-8"))
        found += [f"{css.relative_to(site)}: loads {target}" for target in loads if elsewhere(target)]
    return found


def leads(link: str, page: str, site: Path, pages: dict[str, Read]) -> bool:
    """Whether a link of a page ends at a file, and at an anchor, of the site. Other hosts are not asked."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return parts.scheme in ("https", "mailto")
    path = unquote(parts.path)
    if page == "404.html":  # is shown for pages of any folder, so its links begin at the site's root
        path = path.removeprefix("/")
    there = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
    if (site / there).is_dir():
        there = posixpath.normpath(posixpath.join(there, "index.html"))
    if there.startswith("..") or not (site / there).is_file():
        return False
    return not parts.fragment or there not in pages or unquote(parts.fragment) in pages[there].anchors


if __name__ == "__main__":
    wrong = faults(Path(sys.argv[1]))
    for line in wrong:
        print(line, file=sys.stderr)
    sys.exit(1 if wrong else 0)
