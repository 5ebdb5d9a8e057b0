"""Templates that are interpreted: what becomes of them, at which lines, and what is refused."""

from __future__ import annotations

import pytest

from pii_tracer.lineage.projects.jinja_operations import Unrendered
from pii_tracer.lineage.projects.jinja_subset import MOST_TEXTS, Surroundings, macros_of, render

MACROS = macros_of(
    "{% macro money(column, places=2) -%}\nround({{ column }}, {{ places }})\n{%- endmacro %}"
    "{% macro twice(c) %}{{ money(c) }}{{ shop.money(c, places=0) }}{% endmacro %}{% macro broken( %}{% endmacro %}"
)


def around(incremental: bool = False) -> Surroundings:
    def relation(kind: str, given: tuple[str, ...]) -> str | None:
        return ".".join(given) if given[-1] != "gone" else None

    return Surroundings(MACROS, {"day": "2024-01-01"}, relation, "me", "shop", incremental)


def one(template: str) -> str:
    (text,) = render(template, around()).texts
    return " ".join(text.sql.split())


@pytest.mark.parametrize(
    ("template", "sql"),
    [
        ("select a from {{ ref('b') }}", "select a from b"),
        ("select a from {{ source('raw', 'c') }} -- {# no #}", "select a from raw.c --"),
        ("{{ config(materialized='table', tags=[target.name]) }}select '{{ var(\"day\") }}'", "select '2024-01-01'"),
        ("{% set cols = ['a', 'b'] %}select {% for c in cols %}{{ c }}{{ ',' if not loop.last }}{% endfor %}", "select a,b"),
        ("select {{ ['a', 'b'] | join(', ') }}, {{ money('c') }}", "select a, b, round(c, 2)"),
        ("{{ twice('x') }}", "round(x, 2)round(x, 0)"),
        ("{{ dbt_utils.generate_surrogate_key(['a']) }}", "md5(coalesce(cast(a as string), '_dbt_utils_surrogate_key_null_'))"),
        ("{% raw %}{{ a }}{% endraw %}", "{{ a }}"),
        ("{% if is_incremental() %}x{% else %}y{% endif %}", "y"),
    ],
)  # fmt: skip
def test_what_becomes_of_a_template(template: str, sql: str) -> None:
    assert one(template) == sql


def test_both_outcomes_of_what_only_dbt_knows() -> None:
    found = render("{% if is_incremental() %}a{% elif target.name == 'prod' %}b{% else %}c{% endif %}", around(True))
    assert {text.sql for text in found.texts} == {"a", "b", "c"}
    twice = "{% if is_incremental() %}a{% endif %}{% if is_incremental() %}b{% endif %}"
    assert {text.sql for text in render(twice, around(True)).texts} == {"ab", ""}, "one question has one answer"
    many = "".join(f"{{% if target.x{n} %}}{n}{{% endif %}}" for n in range(9))
    with pytest.raises(Unrendered, match=str(MOST_TEXTS)):
        render(many, around())


def test_lines_are_those_of_the_template() -> None:
    template = "{{ config(a=1) }}\n\nselect\n  {{ money('a') }} as a,\n{% for c in ['b', 'c'] %}\n  {{ c }} as {{ c }}x,\n{% endfor %}\n  d\n"
    (text,) = render(template, around()).texts
    where = {
        word: text.line_of(text.sql[: text.sql.index(word)].count("\n") + 1)
        for word in ("select", "round", "bx", "cx", "  d")
    }
    assert where == {"select": 3, "round": 4, "bx": 6, "cx": 6, "  d": 8}


@pytest.mark.parametrize(
    "template",
    [
        "{{ ref('gone') }}", "{{ ref(x) }}", "{{ unknown }}", "{{ unknown() }}", "{{ env_var('HOME') }}", "{{ this.schema }}",
        "{% set a = target.name %}{{ a }}", "{% for x in y %}{% endfor %}", "{% for x in 'ab' %}{% endfor %}", "{{ [1] }}",
        "{{ money() | tojson }}", "{{ money('a', 'b', 'c') }}", "{{ money(z=1) }}", "{{ broken('a') }}", "{{ money(*['a']) }}",
        "{% call money('a') %}{% endcall %}", "{% include 'x' %}", "{% import 'x' as y %}", "{% extends 'x' %}", "{{ 'a'.format() }}",
        "{{ 'a' * 9 }}", "{{ 2 ** 99999999 }}", "{% endif %}", "{% statement %}", "{{ ''.__class__ }}", "{{ cycler.__init__.__globals__ }}",
        "{% for a in ['x','x','x','x','x','x','x','x','x','x'] %}" * 6 + "{{ a }}" + "{% endfor %}" * 6,
        "{% set a = 'xxxxxxxxxx' %}" + "{% set a = a ~ a ~ a ~ a ~ a ~ a ~ a ~ a ~ a ~ a %}" * 9 + "{{ a }}",
    ],
)  # fmt: skip
def test_what_is_refused(template: str) -> None:
    with pytest.raises(Unrendered) as refused:
        render(template, around())
    assert refused.value.line >= 1
