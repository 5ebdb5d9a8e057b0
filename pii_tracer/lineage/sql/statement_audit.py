"""A second look at a resolved statement: every part of its text is accounted for, or the answer is partial.

Resolution walks clause by clause and can pass over what it does not know; this walks the whole tree and cannot. Each
part is followed by a rule, moves no data for a reason (`accounts`), or is not supported and said so. Tables and
columns count as followed when a rule looked at each of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from sqlglot import exp

from pii_tracer.lineage.sql.accounting.external_reads import reads_elsewhere, stored_elsewhere
from pii_tracer.lineage.sql.accounting.syntax_node_rules import (
    FOLLOWED,
    TRANSPARENT,
    clauses_of,
    is_quiet,
)
from pii_tracer.lineage.sql.scopes import Findings, shown
from pii_tracer.lineage.sql.text.dialect_forms import is_name, names_table
from pii_tracer.lineage.sql.text.table_names import Names


def audit(node: exp.Expression, findings: Findings, names: Names) -> None:
    """Doubt the answer for every part that nobody followed and that is not known to move no data."""
    for reason in dict.fromkeys(_doubts(node, findings, names)):
        findings.doubt(reason)


def _doubts(node: exp.Expression, findings: Findings, names: Names) -> Iterator[str]:
    """Walks without recursion: statements of megabytes are deep."""
    waiting: list[exp.Expression] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, exp.CTE) and id(part) not in findings.followed:
            continue  # nobody reads it
        if isinstance(part, exp.Column | exp.Table | exp.Dot):
            yield from _unfollowed(part, findings.followed)
            yield from _mistaken(part) if isinstance(part, exp.Table) and id(part) in findings.stored else ()
        elif isinstance(part, exp.Func | exp.Parameter) and id(part) not in findings.followed:
            yield from reads_elsewhere(part, names, findings.namespaces)
        elif isinstance(part, exp.Identifier) and not is_name(part) and not isinstance(part.parent, exp.Dot):
            yield f"the name {shown([part.name])} is in a part of the statement that lineage does not follow"
        elif _is_template(part):
            yield "a part of the statement is a variable that is replaced when it runs, so its text is not known"
        stored = stored_elsewhere(part)
        if stored is not None:
            yield from [stored] if stored else []
        elif type(part) in FOLLOWED:
            for name, known in clauses_of(part):
                if known is None and (kind := _KINDS.get((type(part), name))) is not None:
                    yield kind
                elif known is None:
                    yield f"the clause {name.strip('_').upper()} of {_called(part)} is not supported"
                elif known:
                    waiting += _children(part, name)
        elif is_quiet(part):
            waiting += _queries(part)
        elif isinstance(part, TRANSPARENT):
            waiting += part.iter_expressions()
        else:
            yield f"a part of kind {_called(part)} is not supported"


_KINDS = {
    (exp.Select, "match"): "lineage does not follow MATCH_RECOGNIZE",
    (exp.Into, "bulk_collect"): "values go through a variable or cursor of a procedure, which lineage does not follow",
}
"""Clauses that have a name of their own."""


def _mistaken(table: exp.Table) -> Iterator[str]:
    """A table of the database that has the name of a query which a WITH clause around it defines."""
    within: set[int] = {id(table)}
    around = table.parent
    while around is not None and not table.args.get("db"):
        clause = around.args.get("with_")
        for cte in clause.expressions if isinstance(clause, exp.With) else ():
            if id(cte) in within:
                break  # neither this query nor a later one has a name yet
            if cte.alias.lower() == table.name.lower():
                yield f"{shown([table.name])} is a WITH query, but lineage took it for a table of that name"
                return
        within.add(id(around))
        around = around.parent


def _is_template(part: exp.Expression) -> bool:
    """`{{ a }}`, which dialects take for a widget or for an object in an object."""
    if isinstance(part, exp.Placeholder):
        return isinstance(part.this, exp.Placeholder)
    inner = part.expressions[0] if isinstance(part, exp.Struct) and len(part.expressions) == 1 else None
    return isinstance(inner, exp.Struct)


def _unfollowed(part: exp.Expression, followed: set[int]) -> Iterator[str]:
    if isinstance(part, exp.Dot):
        if isinstance(part.this, exp.Identifier | exp.Placeholder) and not names_table(part):
            yield f"the name {shown([part.this.name])} is in a part of the statement that lineage does not follow"
        return
    if id(part) in followed or isinstance(part.this, exp.Star) or _is_target(part) or _is_parameter(part):
        return
    what = "column" if isinstance(part, exp.Column) else "table"
    name = shown(p.name for p in part.parts) if isinstance(part, exp.Column | exp.Table) else part.name
    yield f"{what} {name} is in a part of the statement that lineage does not follow"


def _children(part: exp.Expression, clause: str) -> list[exp.Expression]:
    if isinstance(part, exp.Select) and clause == "windows":
        return []  # followed where they are used
    if isinstance(part, exp.Pivot):
        return _queries(part)  # its columns are followed by name
    value = part.args[clause]
    found = [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, exp.Expression)]
    if isinstance(part, exp.Properties):
        return [v for v in found if not isinstance(v, exp.Order)]  # how ClickHouse's rows are stored
    return found


def _queries(part: exp.Expression) -> list[exp.Expression]:
    """Queries that stand where no data is expected."""
    found = part.find(exp.Select, exp.SetOperation)
    return [cast(exp.Expression, found)] if found is not None else []


def _called(part: exp.Expression) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(part).__name__).upper()


def _is_parameter(part: exp.Expression) -> bool:
    """Whether a name is a lambda's own: `x.a` in `x -> x.a`."""
    around = part.parent
    while isinstance(part, exp.Column) and around is not None and not isinstance(around, exp.Query):
        if isinstance(around, exp.Lambda) and part.parts[0].name.lower() in {
            p.name.lower() for p in around.expressions
        }:
            return True
        around = around.parent
    return False


def _is_target(part: exp.Expression) -> bool:
    """The columns that are written to: the left side of SET, the columns of MERGE's INSERT."""
    parent = part.parent
    if not isinstance(part, exp.Column):
        return False
    if isinstance(parent, exp.Tuple) and isinstance(parent.parent, exp.Insert) and parent.arg_key == "this":
        return True
    if isinstance(parent, exp.Tuple) and parent.arg_key == "this":
        parent = parent.parent
    elif part.arg_key != "this":
        return False
    return isinstance(parent, exp.EQ) and isinstance(parent.parent, exp.Update | exp.OnConflict)
