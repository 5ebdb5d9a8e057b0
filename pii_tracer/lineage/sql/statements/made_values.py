"""Columns into which a statement puts values of its own making: a sequence's next number, a count, a parameter.

Of statements that Spark's parser reads the planner finds that out by itself, of the recorded text
(`planners.locate.foreign.generated_values`). Here the dialect is known, and what a query log's texts leave out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import cast

from sqlglot import exp

from pii_tracer.lineage.graph.edges import EdgeType
from pii_tracer.lineage.sql.relations import COUNTED, GENERATED, Alt, Field
from pii_tracer.lineage.sql.statements.filled_columns import DRAWN

_READ_BY_PLANNERS = frozenset({"spark", "spark2", "databricks", "hive"})
_LEFT_OUT = re.compile(r"piislot\d+[td]e|7700770077\d{4}")
"""What stands for a literal in a text that stands for many (`statement_shapes`): any value may have been there."""
_SAME = (exp.Paren, exp.Cast, exp.TryCast, exp.Alias)
"""What leaves a constant as it is."""
_NO_NUMBER = (
    exp.Null, exp.Var, exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.CurrentDatetime, exp.CurrentUser,
    exp.Uuid,
)  # fmt: skip


def made_in(fields: Iterable[Field], dialect: str) -> tuple[tuple[str, str], ...]:
    """The columns with a value, in some rows at least, that comes from no column: with the constant where it is one."""
    known = dialect in _READ_BY_PLANNERS
    return tuple((f.name, text) for f in fields for alt in f.alts for text in _made(alt, known=known))


def _made(alt: Alt, *, known: bool) -> Iterator[str]:
    """The constants of one way, and an empty text for a value that is not known to be one."""
    if any(d.kind.type is EdgeType.DIRECT and d.kind != COUNTED for d in alt.deps):
        return
    if not known:
        yield from [""] if alt.expression is None else _values(alt.expression)
    elif alt.expression is not None:
        parts = alt.expression.find_all(exp.Literal, exp.Anonymous)
        left_out = (_LEFT_OUT.search(p.name) if isinstance(p, exp.Literal) else p.name == GENERATED for p in parts)
        yield from [""] if any(left_out) else ()


def _values(value: exp.Expression) -> Iterator[str]:
    if isinstance(value, exp.Literal | exp.Boolean):
        yield "" if _LEFT_OUT.search(value.name) else value.name or str(value.this)
    elif isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal):
        yield from (f"-{text}" if text else "" for text in _values(value.this))
    elif isinstance(value, exp.Case | exp.If):
        branches = [*(i.args["true"] for i in value.args.get("ifs") or ()), value.args.get("true")]
        branches += [value.args.get("default"), value.args.get("false")]
        yield from (text for branch in branches if isinstance(branch, exp.Expression) for text in _values(branch))
    elif isinstance(value, (exp.Coalesce, *_SAME)):
        parts = (part for part in value.iter_expressions() if not isinstance(part, exp.DataType))
        yield from (text for part in parts for text in _values(cast(exp.Expression, part)))
    elif not isinstance(value, _NO_NUMBER) and not (isinstance(value, exp.Anonymous) and value.name.lower() in DRAWN):
        yield ""
