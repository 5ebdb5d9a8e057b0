"""Who is logged in, as a value: often a person's address, in rows of whomever that person works on."""

from __future__ import annotations

from sqlglot import exp

from pii_tracer.lineage.graph.edges import EdgeType
from pii_tracer.lineage.sql.expressions import children

_USERS = (exp.CurrentUser, exp.SessionUser)
_NAMES = frozenset(
    {
        "user", "current_user", "session_user", "system_user", "user_name", "suser_name", "suser_sname",
        "original_login", "currentuser", "initialuser", "initial_user", "authenticateduser", "authenticated_user",
        "logged_in_user",
        "effective_user", "username", "current_user_name", "sys_context", "session_context", "context_info",
        "current_setting",
    }
)  # fmt: skip
"""By other names, also of what an application says of its user (`current_setting('app.user')`)."""


def goes_in(value: exp.Expression) -> bool:
    """Whether an expression gives the name of whoever is logged in, in some rows; not where it only decides."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, _USERS) or (isinstance(node, exp.Anonymous) and node.name.lower() in _NAMES):
            return True
        waiting += [child for child, kind in children(node) if kind.type is EdgeType.DIRECT]
    return False
