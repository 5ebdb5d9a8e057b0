"""Conditions that tell a placeholder from a value: `mail <> ''`, `id IS NULL`, `city IN ('n/a', '-')`.

`CASE WHEN mail > 'm' THEN NULL ELSE mail END` takes their identifier from half of the persons, and their rows stay.
`nullif(mail, '')` takes it from nobody: a value that is no placeholder is equal to none.
"""

from __future__ import annotations

from sqlglot import exp

_JOINED = (exp.And, exp.Or, exp.Not, exp.Paren)
_SPELLED = (exp.Trim, exp.Lower, exp.Upper, exp.Cast, exp.Paren, exp.Coalesce)
"""What may be done to the value before it is compared."""


def is_test_of_placeholders(node: exp.Expression) -> bool:
    """Whether a condition compares a column, or a constant, with nothing but constants and NULL, for equality."""
    if isinstance(node, _JOINED):
        return all(is_test_of_placeholders(part) for part in node.iter_expressions())
    if isinstance(node, exp.EQ | exp.NEQ | exp.NullSafeEQ | exp.Is):
        return _is_value(node.this) and _is_value(node.expression)
    if isinstance(node, exp.In):
        return _is_value(node.this) and bool(node.expressions) and all(map(_is_constant, node.expressions))
    if isinstance(node, exp.GT) and isinstance(node.this, exp.Length):
        return _is_value(node.this.this) and isinstance(node.expression, exp.Literal) and node.expression.name == "0"
    return _is_value(node)  # what CASE compares with its branches, or NULLIF with its value


def _is_value(node: exp.Expression) -> bool:
    while isinstance(node, _SPELLED):
        if not all(map(_is_constant, [*node.expressions, *([node.expression] if node.args.get("expression") else [])])):
            return False
        node = node.this
    return _is_constant(node) or isinstance(node, exp.Column | exp.Dot)


def _is_constant(node: exp.Expression) -> bool:
    return isinstance(node.this if isinstance(node, exp.Neg) else node, exp.Literal | exp.Null | exp.Boolean)
