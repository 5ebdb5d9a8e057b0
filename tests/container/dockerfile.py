"""A Dockerfile as instructions, and what its .dockerignore lets in.

https://docs.docker.com/reference/dockerfile/
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "Dockerfile"
IGNORED = ROOT / ".dockerignore"


@dataclass(frozen=True)
class Instruction:
    """One instruction. words: of its exec form, else None. stage: counted from 0."""

    name: str
    value: str
    words: tuple[str, ...] | None
    stage: int


def instructions(text: str) -> list[Instruction]:
    """Instructions in their order.

    Raises:
        ValueError: an instruction stands before the first FROM.
    """
    found: list[Instruction] = []
    stage = -1
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        name, _, value = line.strip().partition(" ")
        if not name:
            continue
        name, value = name.upper(), value.strip()
        stage += name == "FROM"
        if stage < 0:
            raise ValueError(f"{name} stands before the first FROM")
        found.append(Instruction(name, value, exec_form(value), stage))
    return found


def exec_form(value: str) -> tuple[str, ...] | None:
    try:
        words = json.loads(value)
    except ValueError:
        return None
    return tuple(words) if isinstance(words, list) and all(isinstance(word, str) for word in words) else None


def copied(instruction: Instruction) -> tuple[str | None, list[str], str]:
    """Of a COPY: the stage that it copies from (None: the context), the sources and the destination."""
    words = instruction.value.split()
    flags = [word for word in words if word.startswith("--")]
    *sources, destination = [word for word in words if not word.startswith("--")]
    stages = [flag.partition("=")[2] for flag in flags if flag.startswith("--from=")]
    return (stages[0] if stages else None), sources, destination


def let_in(text: str) -> set[str]:
    """What a .dockerignore that begins with `*` lets into the context.

    Raises:
        ValueError: it does not begin with `*`.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if lines[:1] != ["*"]:
        raise ValueError("the first pattern is not *")
    return {line[1:] for line in lines if line.startswith("!")}
