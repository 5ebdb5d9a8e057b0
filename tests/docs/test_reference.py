"""Reference pages name what the code has, and nothing else: commands with their options, keys of the estate file, fields of a plan.

Kinds of gaps are held to their page by tests/review/test_gap_kinds.py.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator
from typing import Any

import click
import pytest
from click import Command, Group
from pydantic import BaseModel

from pii_tracer.cli.main import cli
from pii_tracer.config.estate_file import Estate
from pii_tracer.model.plan import ErasurePlan
from tests.docs.prose import ROOT

DOCS = ROOT / "docs"
COMMANDS = (DOCS / "commands.md").read_text(encoding="utf-8")


def commands(command: Command, name: str = "") -> Iterator[tuple[str, Command]]:
    if isinstance(command, Group):
        context = click.Context(command)
        for part in command.list_commands(context):
            below = command.get_command(context, part)
            assert below is not None
            yield from commands(below, f"{name} {part}".strip())
    else:
        yield name, command


def sections() -> dict[str, str]:
    """By command: the text below the headings that name it."""
    found: dict[str, str] = {}
    for part in re.split(r"(?m)^### ", COMMANDS)[1:]:
        heading, _, text = part.partition("\n")
        for written in re.findall(r"`([^`]+)`", heading):
            name = " ".join(re.findall(r"^(?:[a-z][a-z-]*(?: |$))+", written)).strip()
            found[name] = re.split(r"(?m)^## ", heading + "\n" + text)[0]
    return found


def test_the_page_names_every_command_and_no_other() -> None:
    assert set(sections()) - {"the"} == {name for name, _ in commands(cli)}


@pytest.mark.parametrize(("name", "command"), list(commands(cli)))
def test_the_page_names_every_option_of_a_command_and_no_other(name: str, command: Command) -> None:
    known = {
        o for p in command.params if isinstance(p, click.Option) and not p.hidden for o in (*p.opts, *p.secondary_opts)
    }
    section = sections()[name]
    written = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", section))
    shared = {"--estate", "--state", "--format"}
    assert known - shared - {"--help"} - written == set(), "not on the page"
    others = {
        o
        for _, c in commands(cli)
        for p in c.params
        if isinstance(p, click.Option)
        for o in (*p.opts, *p.secondary_opts)
    }
    assert written - others == set(), "no command has it"


def models(kind: Any) -> Iterator[type[BaseModel]]:
    """Models that a field's type is made of."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for part in typing.get_args(kind):
        yield from models(part)


def keys(model: type[BaseModel], seen: frozenset[type[BaseModel]] = frozenset()) -> Iterator[str]:
    """Every key that a file of this model may have, at any depth."""
    for name, field in model.model_fields.items():
        yield field.alias or name
        for below in models(field.annotation):
            if below not in seen:
                yield from keys(below, seen | {model})


def named(*pages: str) -> set[str]:
    """Words of inline code and of code blocks."""
    found = []
    for page in pages:
        text = (DOCS / page).read_text(encoding="utf-8")
        found += re.findall(r"(?ms)^ *```.*?^ *```", text)
        found += re.findall(r"`[^`\n]+`", re.sub(r"(?ms)^ *```.*?^ *```", "", text))
    return set(re.findall(r"\w+", " ".join(found)))


def test_the_page_of_the_estate_file_has_a_row_for_every_section() -> None:
    page = (DOCS / "estate-file.md").read_text(encoding="utf-8")
    rows = {re.split(r"[.\[]", key)[0] for key in re.findall(r"^\| `([\w.\[\]]+)", page, re.MULTILINE)}
    assert set(Estate.model_fields) - rows == set(), "not on the page"


def test_every_key_of_an_estate_file_is_on_some_page() -> None:
    pages = sorted(page.name for page in DOCS.glob("*.md") if not page.name.startswith("changelog"))
    assert set(keys(Estate)) - named(*pages) == set()


def test_the_page_of_the_plan_names_every_field() -> None:
    assert set(keys(ErasurePlan)) - named("plan-format.md", "gaps.md", "requests.md") == set()
