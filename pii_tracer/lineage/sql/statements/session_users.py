"""Who is logged in, as a value: often a person's address, in rows of whomever that person works on."""

from __future__ import annotations

from sqlglot import exp

from pii_tracer.lineage.graph.edges import EdgeType
from pii_tracer.lineage.sql.expressions import children
from pii_tracer.lineage.sql.statements.current_user_functions import gives_user


def goes_in(value: exp.Expression) -> bool:
    """Whether an expression gives the name of whoever is logged in, in some rows; not where it only decides."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if gives_user(node):
            return True
        waiting += [child for child, kind in children(node) if kind.type is EdgeType.DIRECT]
    return False
