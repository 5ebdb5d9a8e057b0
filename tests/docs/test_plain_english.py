"""Short sentences and everyday words in the documentation and in messages.

The allowlist counts what is left of older texts, by file. It may only shrink: `python -m tests.docs.prose --write` lowers it.
`python -m tests.docs.prose FILE` shows a file's faults.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.docs import prose

LONG = " ".join(["word"] * 31) + "."


def test_no_file_has_more_faults_than_the_allowlist_has() -> None:
    allowed = json.loads(prose.ALLOWLIST.read_text())
    now = prose.measured()
    none = {"long": 0, "listed": 0}
    worse = [
        f"{file}: {len(found)} {kind}, {allowed.get(file, none)[kind]} allowed: {' / '.join(found)}"
        for file, faults in now.items()
        for kind, found in faults.items()
        if len(found) > allowed.get(file, none)[kind]
    ]
    assert worse == [], "shorten the sentence, or use the word that prose.LISTED proposes"
    better = [
        file
        for file, kinds in allowed.items()
        if kinds != {kind: len(found) for kind, found in now.get(file, {"long": [], "listed": []}).items()}
    ]
    assert better == [], "lower the allowlist: python -m tests.docs.prose --write"


@pytest.mark.parametrize(
    ("page", "faults"),
    [
        (LONG, 1),
        (LONG.replace("word word", "word. Word", 1), 0),
        (f"- {LONG}\n- {LONG}", 2),
        (f"| a | {LONG} |", 1),
        (f"```\n{LONG}\n```", 0),
        ("`" + LONG + "`", 0),
        (f"[{LONG}](x.md)", 1),
        ("word word " * 8 + "\n" + "word word " * 8, 1),
    ],
)
def test_a_long_sentence_of_a_page_is_seen(page: str, faults: int) -> None:
    assert len(prose.too_long([s for block in prose.blocks(page) for s in prose.sentences(block)])) == faults


def test_messages_are_seen_and_docstrings_are_not(tmp_path: Path) -> None:
    module = tmp_path / "m.py"
    module.write_text(
        f'"""{LONG}"""\n\nraise ValueError(f"{{x}} {LONG}")\n\n\n'
        f'def f():\n    """{LONG}"""\n\n\n@cli.command()\ndef g():\n    """{LONG} He told it."""\n'
    )
    found = prose.of_module(module)
    assert len(prose.too_long(found)) == 2
    assert prose.listed(found) == ["told: He told it."]
