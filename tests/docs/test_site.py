"""The documentation's site: what its hooks make of GitHub's Markdown, and what the check of a built site reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.site.hooks import ROOT_PAGES, for_site, item_indents, link_target
from tests.docs.built_site import faults
from tests.docs.prose import ROOT

REPOSITORY = "https://code.example/r"


class _Config(yaml.SafeLoader):
    """MkDocs has a tag of its own for functions."""


_Config.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def entries(nav: Any) -> list[str]:
    """Pages of a navigation, at any depth."""
    if isinstance(nav, str):
        return [nav]
    return [page for part in (nav.values() if isinstance(nav, dict) else nav) for page in entries(part)]


def test_the_navigation_has_every_page_once() -> None:
    config = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), _Config)  # a subclass of the safe loader
    docs = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert sorted(entries(config["nav"])) == sorted([*docs, *ROOT_PAGES.values()])
    assert config["theme"]["font"] is False
    assert "repo_url" not in config, "the theme would ask that host for numbers"


@pytest.mark.parametrize(
    ("page", "target", "leads"),
    [
        ("gaps.md", "holds.md#a-b", "holds.md#a-b"),
        ("gaps.md", "#a", "#a"),
        ("gaps.md", "https://a.example/x", "https://a.example/x"),
        ("gaps.md", "../CONTRIBUTING.md#tests", "contributing.md#tests"),
        ("howto/schedule.md", "../../CHANGELOG.md", "../changelog.md"),
        ("howto/schedule.md", "../commands.md", "../commands.md"),
        ("storage.md", "../tests/glaciersupport.py", f"{REPOSITORY}/blob/main/tests/glaciersupport.py"),
        ("pull-requests.md", "workflows/", f"{REPOSITORY}/tree/main/docs/workflows"),
        ("changelog.md", "docs/changelog-archive/0.1.0.md", "changelog-archive/0.1.0.md"),
        ("security.md", "LICENSE", f"{REPOSITORY}/blob/main/LICENSE"),
    ],
)
def test_a_link_leads_to_a_page_of_the_site_or_to_the_repository(page: str, target: str, leads: str) -> None:
    assert link_target(target, page, REPOSITORY) == leads


def test_code_keeps_its_links() -> None:
    text = "`[a](../LICENSE)` [b](../LICENSE)\n```\n[c](../LICENSE)\n```"
    found = for_site(text, "gaps.md", REPOSITORY)
    assert found == f"`[a](../LICENSE)` [b]({REPOSITORY}/blob/main/LICENSE)\n```\n[c](../LICENSE)\n```"


@pytest.mark.parametrize(
    ("github", "site"),
    [
        ("text\n- a\n- b\n", "text\n\n- a\n- b\n"),
        ("- a\n  b\n- c\n", "- a\n    b\n- c\n"),
        ("- a\n  - b\n    - c\n- d\n", "- a\n    - b\n        - c\n- d\n"),
        ("1. a\n\n   ```sh\n   - x\n     y\n   ```\n2. b\n", "1. a\n\n    ```sh\n    - x\n      y\n    ```\n\n2. b\n"),
        ("1. a\n\n   b\n2. c\n", "1. a\n\n    b\n\n2. c\n"),
        ("- a\n\nb\n- c\n", "- a\n\nb\n\n- c\n"),
        ("```\n- a\n  b\n```\n", "```\n- a\n  b\n```\n"),
    ],
)
def test_what_belongs_to_an_item_is_indented_by_four_spaces(github: str, site: str) -> None:
    assert item_indents(github) == site


POLICY = "default-src 'self'; script-src 'self' 'unsafe-inline'; object-src 'none'"
HEAD = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'


def built(folder: Path, body: str, head: str = HEAD) -> list[str]:
    (folder / "index.html").write_text(f"<html><head>{head}</head><body>{body}</body></html>")
    return faults(folder)


def test_a_site_of_its_own_files_has_no_fault(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("a { background: url(data:image/png;base64,AA) } b { src: url('x.woff2') }")
    body = '<h2 id="x">X</h2><p><code>- a</code> b</p><a href="#x">x</a><a href="a.css">c</a><a href="https://b.example">d</a>'
    assert built(tmp_path, body) == []


@pytest.mark.parametrize(
    "body",
    [
        '<script src="https://cdn.example/a.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/css">',
        '<link rel="preconnect" href="https://fonts.example">',
        '<img srcset="https://cdn.example/a.png 2x">',
        '<p style="background: url(https://cdn.example/a.png)">a</p>',
        "<style>@import 'https://cdn.example/a.css';</style>",
        '<form action="https://search.example/"></form>',
        '<a href="#nowhere">a</a>',
        '<a href="nowhere.html">a</a>',
        '<a href="../../etc/passwd">a</a>',
        '<a href="http://plain.example/">a</a>',
        "<p>a\n- b</p>",
        "<p>| a | b |\n|---|---|</p>",
        "<p>1. a</p>",
    ],
)
def test_a_fault_of_a_page_is_reported(tmp_path: Path, body: str) -> None:
    assert len(built(tmp_path, body)) == 1


def test_styles_of_other_hosts_and_a_page_without_a_policy_are_reported(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("@font-face { src: url(https://fonts.example/a.woff2) }")
    assert built(tmp_path, "") == ["a.css: loads https://fonts.example/a.woff2"]
    (tmp_path / "a.css").unlink()
    assert len(built(tmp_path, "", head="")) == 3


def test_a_folder_without_a_site_is_reported(tmp_path: Path) -> None:
    assert faults(tmp_path) == [f"{tmp_path}: no page was built"]
