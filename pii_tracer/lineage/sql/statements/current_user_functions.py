"""Functions that give the name of whoever is logged in."""

from __future__ import annotations

from sqlglot import exp

_USERS = (exp.CurrentUser, exp.SessionUser, exp.CurrentRole)
_NAMES = frozenset(
    {
        "user", "current_user", "session_user", "system_user", "user_name", "suser_name", "suser_sname",
        "original_login", "currentuser", "initialuser", "initial_user", "authenticateduser", "authenticated_user",
        "logged_in_user",
        "effective_user", "username", "current_user_name", "sys_context", "session_context", "context_info",
        "current_setting", "getpgusername", "auth.email", "auth.jwt", "auth.uid",
    }
)  # fmt: skip
"""By other names, also of what an application says of its user (`current_setting('app.user')`)."""
_ITEM_OF_APEX = frozenset({"v", "apex_util.get_session_state"})
"""Functions of Oracle APEX that give the user where they are asked for `APP_USER`."""


def gives_user(node: exp.Expression) -> bool:
    """Whether an expression itself, whatever is in it, gives the name of whoever is logged in."""
    return isinstance(node, _USERS) or _is_called_so(node)


def _is_called_so(node: exp.Expression) -> bool:
    """Whether an expression calls such a function, by its name alone or with its schema's."""
    called = node.expression if isinstance(node, exp.Dot) else node
    if not isinstance(called, exp.Anonymous):
        return False
    name = (f"{node.this.name}.{called.name}" if isinstance(node, exp.Dot) else called.name).lower()
    asked = [item.name.upper() for item in called.expressions]
    return name in _NAMES or (name in _ITEM_OF_APEX and asked == ["APP_USER"])
