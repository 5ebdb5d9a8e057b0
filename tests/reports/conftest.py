"""Hostile names and plans made of them."""

from __future__ import annotations

from typing import Any

import pytest

from pii_tracer.model.plan import ErasurePlan
from tests.reports.example import example_edges, example_gaps, example_plan

HOSTILE = (
    "<script>alert(1)</script>",
    "a|b|c",
    "`rm -rf` ``x``",
    "x](javascript:alert(1))",
    "![p](http://evil.example/p.png)",
    "\u202egnp.sresu",
    "users\u200f\u200b",
    "line\nbreak\r## heading\n```\n",
    "\x1b[31mred\x1b[0m\x07",
    '"><img src=x onerror=alert(1)>',
    "[bold red]rich[/bold red]",
    "@everyone #12 a@b.example www.evil.example https://evil.example/",
    "{{ 7*7 }}{% raw %}",
    '"]; click n0 "javascript:alert(1)"',
    "</title></style></details></summary>",
    "-->",
    "_em_ *em* ~~x~~ $x$",
)


def poisoned(plan: ErasurePlan, name: str) -> ErasurePlan:
    """The plan with `name` in every field that comes from outside."""

    def poison(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {inner: poison(item, inner) for inner, item in value.items()}
        if isinstance(value, list):
            return [poison(item, key) for item in value]
        outside = {"name", "table", "location", "reason", "evidence", "why", "who", "category", "law", "citation"}
        outside |= {"lineage", "notes", "hazards", "verification", "estate", "label", "subject"}
        return name if isinstance(value, str) and key in outside else value

    data = poison(plan.model_dump(mode="json", by_alias=True))
    data["overrides"] = [{"kind": name, "reason": name}]
    data["schedules"][0]["notes"] = [name]
    return ErasurePlan.model_validate(data)


@pytest.fixture
def plan() -> ErasurePlan:
    return example_plan()


@pytest.fixture
def edges() -> tuple[tuple[str, str], ...]:
    return example_edges()


@pytest.fixture(params=HOSTILE, ids=range(len(HOSTILE)))
def hostile(request: pytest.FixtureRequest) -> str:
    name = request.param
    assert isinstance(name, str)
    return name


@pytest.fixture
def hostile_plan(hostile: str) -> ErasurePlan:
    return poisoned(example_plan(gaps=example_gaps()), hostile)
