"""Columns into which a statement puts values of its own making: a sequence's next number, a count, a parameter.

Of statements that Spark's parser reads the planner finds that out by itself, of the recorded text
(`planners.locate.foreign.generated_values`). Here the dialect is known, and what a query log's texts leave out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import cast

from sqlglot import exp

from pii_tracer.lineage.graph.edges import EdgeType
from pii_tracer.lineage.sql.relations import COUNTED, Alt, Field
from pii_tracer.lineage.sql.statements.filled_columns import DRAWN

_READ_BY_PLANNERS = frozenset({"spark", "spark2", "databricks", "hive"})
_LEFT_OUT = re.compile(r"piislot\d+[td]e|7700770077\d{4}")
"""What stands for a literal in a text that stands for many (`statement_shapes`): any value may have been there."""
_UNKNOWN = (exp.Parameter, exp.Placeholder, exp.SessionParameter)
_OF_PARTS = (
    exp.Paren, exp.Cast, exp.TryCast, exp.Neg, exp.Alias, exp.Concat, exp.DPipe, exp.Lower, exp.Upper, exp.Trim,
    exp.Coalesce, exp.Array, exp.Tuple, exp.Struct,
)  # fmt: skip
"""What makes constants of constants."""
_TIMES = (exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.CurrentDatetime, exp.CurrentUser, exp.Uuid)


def made_in(fields: Iterable[Field], dialect: str) -> tuple[str, ...]:
    """The columns with a value, in some rows at least, that comes from no column and is not known to be a constant."""
    known = dialect in _READ_BY_PLANNERS
    return tuple(f.name for f in fields if any(_makes(alt, known=known) for alt in f.alts))


def _makes(alt: Alt, *, known: bool) -> bool:
    if alt.expression is None or any(d.kind.type is EdgeType.DIRECT and d.kind != COUNTED for d in alt.deps):
        return False
    if known:
        return any(_LEFT_OUT.search(one.name) for one in alt.expression.find_all(exp.Literal))
    return _is_made(alt.expression)


def _is_made(value: exp.Expression) -> bool:
    if isinstance(value, exp.Literal):
        return bool(_LEFT_OUT.search(value.name))
    if isinstance(value, exp.Case | exp.If):
        branches = [*(i.args["true"] for i in value.args.get("ifs") or ()), value.args.get("true")]
        branches += [value.args.get("default"), value.args.get("false")]
        return any(_is_made(branch) for branch in branches if isinstance(branch, exp.Expression))
    if isinstance(value, _OF_PARTS):
        return any(_is_made(cast(exp.Expression, part)) for part in value.iter_expressions())
    if isinstance(value, _TIMES) or (isinstance(value, exp.Anonymous) and value.name.lower() in DRAWN):
        return False
    return isinstance(value, _UNKNOWN) or value.find(exp.Column, exp.Func, *_UNKNOWN) is not None
