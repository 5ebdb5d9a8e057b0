"""Examples of the documentation: command lines that the program understands, YAML that its models take, and a tutorial that runs."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml
from click import Command, Group

from pii_tracer.cli.main import cli
from pii_tracer.config.estate_file import Estate
from tests.docs.prose import ROOT, pages
from tests.unitysupport import installed

__all__ = ["installed"]

FENCE = re.compile(r"(?ms)^( *)```(\w*)\n(.*?)^ *```")


def blocks_of(language: str) -> Iterator[tuple[str, str]]:
    """Page and text of each block in a language; lines that only say that something is left out are taken out."""
    for page in pages():
        for indent, written, text in FENCE.findall(page.read_text(encoding="utf-8")):
            if written == language:
                lines = [line.removeprefix(indent) for line in text.splitlines() if line.strip() != "…"]
                yield page.relative_to(ROOT).as_posix(), "\n".join(lines)


def command_lines(text: str) -> Iterator[str]:
    """Lines that call the program, a line that is continued as one; comments and pipes are left out."""
    for line in text.replace("\\\n", " ").splitlines():
        match = re.match(r"\s*(?:\$ )?(pii-tracer .*)", line)
        if match:
            yield re.split(r"\s[|>#]|\s\|\||;", match[1])[0]


def understood(line: str) -> None:
    """Parse a command line as the program would. Placeholders in capitals stand for values of any type."""
    words = shlex.split(line)[1:]
    command: Command = cli
    context = click.Context(cli)
    while isinstance(command, Group):
        found = command.get_command(context, words[0]) if words else None
        assert found is not None, f"no such command: {line}"
        command, words = found, words[1:]
        context = click.Context(command)
    command.make_parser(context).parse_args(list(words))


def examples() -> list[tuple[str, str]]:
    return [
        (page, line)
        for language in ("", "sh", "console")
        for page, text in blocks_of(language)
        for line in command_lines(text)
    ]


def test_every_command_line_of_the_pages_is_understood() -> None:
    lines = examples()
    assert len(lines) > 50
    wrong = []
    for page, line in lines:
        try:
            understood(line)
        except (click.UsageError, AssertionError, ValueError) as error:
            wrong.append(f"{page}: {line}: {error}")
    assert wrong == []


@pytest.mark.parametrize("line", ["pii-tracer nosuch", "pii-tracer check p.plan.json --no-such-option"])
def test_a_wrong_command_line_is_found(line: str) -> None:
    with pytest.raises((click.UsageError, AssertionError)):
        understood(line)


BASE = {"version": 1, "estate": "t", "environment": "local", "catalogs": {}, "roots": ["w"], "lineage": {}}
GIVEN = {
    "subjects": [{"name": "customer", "source": "s", "key": "k"}],
    "writers": [{"job": "web", "stopped": True}],
    "s3": {"region": "eu-west-1"},
    "hdfs": [{"namenode": "hdfs://nn.example:8020", "webhdfs": "http://nn.example:9870", "user": "hdfs"}],
}
"""What sections of the pages take for granted."""


def estate_sections() -> list[tuple[str, dict[str, object]]]:
    """Blocks of YAML that are sections of an estate file, known by their first key."""
    loaded = [(page, yaml.safe_load(text)) for page, text in blocks_of("yaml")]
    return [(p, b) for p, b in loaded if isinstance(b, dict) and set(b) <= set(Estate.model_fields) - {"version"}]


@pytest.mark.parametrize(("page", "block"), estate_sections())
def test_every_section_of_an_estate_file_is_taken(page: str, block: dict[str, object]) -> None:
    Estate.model_validate({**BASE, **GIVEN, **block})


def test_every_block_of_json_can_be_read() -> None:
    for _, text in blocks_of("json"):
        json.loads(text)


def tutorial() -> list[tuple[int, str]]:
    """Its blocks of shell, each with the exit code that the page announces."""
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    blocks = re.findall(r"(?ms)(?:^<!-- exit (\d+) -->\n)?^```sh\n(.*?)^```", page)
    return [(int(code or 0), text) for code, text in blocks]


def run(blocks: list[tuple[int, str]], folder: Path) -> list[str]:
    shim = folder.parent / "bin" / "pii-tracer"
    shim.parent.mkdir(exist_ok=True)
    shim.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m pii_tracer.cli.main "$@"\n')
    shim.chmod(0o755)
    path = os.pathsep.join([str(shim.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    printed = []
    for code, text in blocks:
        done = subprocess.run(
            ["bash", "-eu", "-c", text],
            cwd=folder,
            env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, (text, done.stdout, done.stderr)
        printed.append(done.stdout)
    return printed


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    (tmp_path / "t").mkdir()
    return tmp_path / "t"


@pytest.mark.slow
def test_the_tutorial_runs_up_to_the_approval(lake: Path) -> None:
    """Only the plans are made here; a run needs Spark."""
    blocks = tutorial()
    until = next(i for i, (_, text) in enumerate(blocks) if "pii-tracer apply" in text)
    printed = "".join(run(blocks[:until], lake))
    assert "gap-unexpected_copy-lake.newsletter" in printed
    assert "Complete and ready for review" in printed
    assert (lake / "REQ-1.approval-B.-Officer.json").exists()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.nightly
def test_the_tutorial_runs_to_its_end(lake: Path) -> None:
    printed = "".join(run(tutorial(), lake))
    assert "3/3 copies erased · residue 0 · bystander rows lost 0" in printed
    assert "everything holds" in printed
