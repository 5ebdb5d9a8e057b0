"""Reads Prometheus text as strictly as the format is written down, for tests of what is exposed.

https://prometheus.io/docs/instrumenting/exposition_formats/#text-format-details, and the conventions of names that
`promtool check metrics` asks for: https://prometheus.io/docs/practices/naming/
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_HELP = re.compile(rf"# HELP ({_NAME}) ((?:[^\\]|\\\\|\\n)+)")
_TYPE = re.compile(rf"# TYPE ({_NAME}) (counter|gauge|summary|histogram|untyped)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\\\|\\"|\\n)*)"')
_SAMPLE = re.compile(rf"({_NAME})(?:\{{((?:{_LABEL.pattern},?)*)\}})? (\S+)")
_SUFFIXES = {"summary": {"_sum", "_count", ""}, "histogram": {"_sum", "_count", "_bucket"}}


@dataclass(frozen=True)
class Sample:
    name: str
    labels: dict[str, str]
    value: float


@dataclass(frozen=True)
class Family:
    name: str
    kind: str
    text: str
    samples: list[Sample] = field(default_factory=list)


def families(text: str) -> dict[str, Family]:
    """Every metric of a text, by name.

    Raises:
        ValueError: the line that is against the format or the conventions.
    """
    if not text.endswith("\n"):
        raise ValueError("the last line has no end")
    found: dict[str, Family] = {}
    series: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    told: tuple[str, str] | None = None
    current: Family | None = None
    for line in text.removesuffix("\n").split("\n"):
        if helped := _HELP.fullmatch(line):
            told, current = (helped[1], helped[2]), None
        elif typed := _TYPE.fullmatch(line):
            if told is None or told[0] != typed[1] or typed[1] in found:
                raise ValueError(f"no help before it, or twice: {line}")
            current = found[typed[1]] = Family(typed[1], typed[2], told[1])
            if (current.kind == "counter") != current.name.endswith("_total"):
                raise ValueError(f"counters end in _total, and nothing else does: {line}")
        elif sample := _SAMPLE.fullmatch(line):
            if current is None or sample[1].removeprefix(current.name) not in _SUFFIXES.get(current.kind, {""}):
                raise ValueError(f"a sample of no metric: {line}")
            labels = {name: _unescaped(value) for name, value in _LABEL.findall(sample[2] or "")}
            key = (sample[1], tuple(sorted(labels.items())))
            if key in series:
                raise ValueError(f"twice: {line}")
            series.add(key)
            current.samples.append(Sample(sample[1], labels, float(sample[5])))
        else:
            raise ValueError(f"not of the format: {line}")
    return found


def _unescaped(value: str) -> str:
    return re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), value)
