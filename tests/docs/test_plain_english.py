"""Short sentences and everyday words in the documentation and in messages, without exceptions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import prose

LONG = " ".join(["word"] * 31) + "."


def test_every_sentence_is_short_and_in_everyday_words() -> None:
    assert prose.faults() == [], "shorten the sentence, or use the word that prose.LISTED proposes"


def test_no_message_counts_in_the_plural_whatever_the_number() -> None:
    found = {path.relative_to(prose.ROOT).as_posix(): prose.fixed_plurals(path) for path in prose.modules()}
    assert {path: texts for path, texts in found.items() if texts} == {}, "write it with pii_tracer.common.plurals"


@pytest.mark.parametrize(
    ("code", "seen"),
    [
        ('f"{len(x)} files are left"', True),
        ('f"{len(x)} old files"', True),
        ('f"{n:,} rows"', True),
        ('f"{n} row(s)"', True),
        ('"the file(s) of the table"', True),
        ('{"a": [f"{sum(x)} files"]}', True),
        ('f"{len(x)} of {len(y)} could not be read"', False),
        ("f\"{counted(len(x), 'file is', 'files are')} left\"", False),
        ('"http(s)://HOST"', False),
        ('def f():\n    """Some file(s)."""', False),
    ],
)
def test_a_fixed_plural_is_seen(code: str, seen: bool, tmp_path: Path) -> None:
    module = tmp_path / "m.py"
    module.write_text(f"{code}\n" if code.startswith("def") else f"x = {code}\n")
    assert bool(prose.fixed_plurals(module)) == seen


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
        ("word " * 20 + "in 2024. " + "Word " * 20, 0),
        ("word " * 20 + "in\n2024. " + "Word " * 20, 0),
        ("word " * 20 + "in\n2024 " + "word " * 20, 1),
        ("word " * 30 + "of\n12) " + "word " * 5, 1),
        ("2. " + "word " * 20 + "\n3. " + "word " * 20, 0),
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


def test_templates_and_data_are_seen(tmp_path: Path) -> None:
    template, schema = tmp_path / "t.html.j2", tmp_path / "s.json"
    template.write_text(
        f"<p>{{% if x %}}{LONG[:-1]} <b>more</b>{{% endif %}}.</p><script>{LONG}</script><td>He told it</td>"
    )
    assert len(prose.too_long(prose.of_template(template))) == 1
    assert prose.listed(prose.of_template(template)) == ["told: He told it"]
    schema.write_text(f'{{"$defs": {{"A": {{"description": "{LONG}", "title": "{LONG}"}}}}, "required": ["a"]}}')
    assert len(prose.too_long(prose.of_data(schema))) == 1
    law = tmp_path / "l.yaml"
    law.write_text(f"rules: [{{condition: {LONG}, days: 3}}]")
    assert len(prose.too_long(prose.of_data(law))) == 1
