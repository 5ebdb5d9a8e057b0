"""Sentences of the documentation and of the messages in code, as a reader meets them.

Also those of the templates of pages, of the JSON Schemas, and of the files of laws. A sentence ends at `.`, `!` or `?` before a blank; a table's cell, a heading and an item of a list are texts of their own.
Inline code and a link's target count as one word.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
CODE = ("pii_tracer", "planners", "executors", "reports")
LONGEST = 30
"""Words in a sentence."""
LISTED = {
    "told": "reported, shown, named",
    "tell": "show, report",
    "tells": "shows, reports",
    "telling": "showing, reporting",
    "brought": "came from, copied",
    "whereabouts": "linkage, location",
    "anew": "again",
    "wholly": "completely",
    "mend": "fix",
    "mends": "fixes",
    "mended": "fixed",
    "stands": "is, contains",
    "hangs": "depends on",
    "unseen": "unnoticed",
    "whoever": "the person who",
    "hitherto": "before",
    "otherwise than": "in another form than",
}
"""Words that this project used in a sense of its own, with what to write instead."""
_LISTED = re.compile(rf"\b({'|'.join(map(re.escape, LISTED))})\b", re.IGNORECASE)
_END = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)[)\"'*_”]*\s+")
_SQL = re.compile(r"\b(SELECT|CREATE|INSERT|MERGE|DELETE FROM|ALTER|CALL)\b")
_PLURAL = re.compile(
    r" (?!was\b|is\b|has\b|his\b|its\b|this\b|of\b)([a-z_-]+ )?(?!was\b|is\b|has\b|its\b|this\b)[a-z_-]+s\b"
)
_ITEM = re.compile(r"\s*(?:[-*+]|(\d+)[.)])\s+")


def sentences(text: str) -> list[str]:
    return [part for part in _END.split(text.strip()) if part]


def words(sentence: str) -> int:
    return sum(any(c.isalnum() for c in word) for word in sentence.split())


def plain(text: str) -> str:
    """Markdown as a reader sees it: inline code is one word, a link its text."""
    text = re.sub(r"`[^`]+`", "CODE", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"<[^>]+>|\*\*|__", "", text)


def blocks(page: str) -> Iterator[str]:
    """Paragraphs, headings, items and cells of a Markdown page, without its code and comments."""
    page = re.sub(r"(?ms)^ *(```|~~~).*?^ *\1 *$", "\n", page)
    page = re.sub(r"(?s)<!--.*?-->", "", page)
    paragraph: list[str] = []
    in_item = False
    for line in [*page.splitlines(), ""]:
        row = line.lstrip().startswith("|")
        item = _ITEM.match(line)
        if item and item[1] not in (None, "1") and paragraph and not in_item:
            item = None  # a number at the start of a line, in the middle of a paragraph, begins no list
        alone = row or item or not line.strip() or line.startswith("#")
        if alone and paragraph:
            yield plain(" ".join(paragraph))
            paragraph = []
        if row:
            yield from (plain(cell) for cell in re.split(r"(?<!\\)\|", line.strip().strip("|")))
        elif line.startswith("#"):
            yield plain(line.lstrip("# "))
        elif line.strip():
            in_item = bool(item) or bool(paragraph and in_item)
            paragraph.append(line[item.end() if item else 0 :].strip())


def of_page(path: Path) -> list[str]:
    return [s for block in blocks(path.read_text(encoding="utf-8")) for s in sentences(block)]


@cache
def parsed(path: Path) -> ast.Module:
    """A module: two rules look at each."""
    return ast.parse(path.read_text(encoding="utf-8"))


def _text(node: ast.AST) -> str | None:
    """A literal, or an f-string with each value as one word."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
    return None


def _is_command(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and any("command" in ast.unparse(d) for d in node.decorator_list)


def _literals(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and _text(child.value) is not None and not _is_command(node):
            continue  # a docstring, which nobody meets but in the code
        text = _text(child)
        if text is not None:
            yield text
            if isinstance(child, ast.JoinedStr):
                for value in child.values:
                    if isinstance(value, ast.FormattedValue):
                        yield from _literals(value)
            continue
        yield from _literals(child)


def of_module(path: Path) -> list[str]:
    """Sentences of at least two words in a module's literals and in the help of its commands, SQL left out."""
    found = []
    for text in _literals(parsed(path)):
        if not _SQL.search(text):
            for block in re.split(r"\n\s*\n|\n(?=\s*[-*] )", text):
                found += [s for s in sentences(" ".join(plain(block).split())) if words(s) >= 2]
    return found


def fixed_plurals(path: Path) -> list[str]:
    """Messages that count in the plural whatever the number: `f"{len(files)} files"`, `f"{n:,} rows"`, `"file(s)"`."""
    found = []
    for node in _messages(parsed(path)):
        text = _text(node) or ""
        if re.search(r"\w\(s\)(?!\w|://)", text):
            found.append(text)
        parts = node.values if isinstance(node, ast.JoinedStr) else []
        for value, after in pairwise(parts):
            if _is_count(value) and isinstance(after, ast.Constant) and _PLURAL.match(str(after.value)):
                found.append(text)
    return found


def _is_count(part: ast.expr) -> bool:
    """A length, a sum, or a number written with its thousands apart, as one word of an f-string."""
    if not isinstance(part, ast.FormattedValue):
        return False
    call = isinstance(part.value, ast.Call) and ast.unparse(part.value.func) in ("len", "sum", "number")
    return call or (part.format_spec is not None and _text(part.format_spec) == ",")


def _messages(node: ast.AST) -> Iterator[ast.AST]:
    """The literals below a node, docstrings left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and _text(child.value) is not None and not _is_command(node):
            continue
        if _text(child) is not None:
            yield child
        yield from _messages(child)


def of_template(path: Path) -> list[str]:
    """Sentences of a page's template, each value as one word; its tags, scripts and styles left out."""
    text = re.sub(r"(?s)\{#.*?#\}|\{%.*?%\}|<(script|style)\b.*?</\1>", "", path.read_text(encoding="utf-8"))
    text = re.sub(r"</?(?:a|b|code|em|span|strong)\b[^>]*>", "", re.sub(r"(?s)\{\{.*?\}\}", "X", text))
    return [s for block in re.split(r"<[^>]+>|\n\s*\n", text) for s in sentences(" ".join(block.split()))]


def of_data(path: Path) -> list[str]:
    """Sentences of the texts in a JSON Schema (its descriptions) or in the file of a law."""
    schema = path.suffix == ".json"
    read = path.read_text(encoding="utf-8")
    texts = _texts(json.loads(read) if schema else yaml.safe_load(read), "description" if schema else None)
    return [s for text in texts for s in sentences(" ".join(plain(text).split()))]


def _texts(data: Any, member: str | None) -> Iterator[str]:
    for name, value in data.items() if isinstance(data, dict) else enumerate(data):
        if isinstance(value, dict | list):
            yield from _texts(value, member)
        elif isinstance(value, str) and member in (None, name):
            yield value


def pages() -> list[Path]:
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted(found)


def modules() -> list[Path]:
    return sorted(file for folder in CODE for file in (ROOT / folder).rglob("*.py"))


def too_long(found: list[str]) -> list[str]:
    return [s for s in found if words(s) > LONGEST]


def listed(found: list[str]) -> list[str]:
    return [f"{match[0]}: {s}" for s in found for match in _LISTED.finditer(s)]


def faults() -> list[str]:
    """Every sentence that is too long, and every listed word, with its file."""
    found = []
    data = [*(ROOT / "pii_tracer" / "schemas").glob("*.json"), *(ROOT / "pii_tracer/config/law_files").glob("*.yaml")]
    readers = {of_page: pages(), of_module: modules(), of_data: sorted(data)}
    readers[of_template] = sorted((ROOT / "reports" / "templates").rglob("*.j2"))
    for path, read in ((path, read) for read, paths in readers.items() for path in paths):
        file, here = path.relative_to(ROOT).as_posix(), read(path)
        found += [f"{file}: {words(s)} words: {s}" for s in too_long(here)]
        found += [f"{file}: {word}" for word in listed(here)]
    return found
