"""Conditions that tell a placeholder from a value: `mail <> ''`, `id IS NULL`, `city IN ('n/a', '-')`.

`CASE WHEN mail > 'm' THEN NULL ELSE mail END` takes their identifier from half of the persons, and their rows stay.
`nullif(mail, '')` takes it from nobody: a value that is no placeholder is equal to none. `CASE WHEN id = 5 THEN NULL
ELSE id END` takes it from person 5: what looks like somebody's value is no placeholder.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from sqlglot import exp

_JOINED = (exp.And, exp.Or, exp.Not, exp.Paren)
_SPELLED = (exp.Trim, exp.Lower, exp.Upper, exp.Cast, exp.Paren, exp.Coalesce)
"""What may be done to the value before it is compared."""
_NINES = 3
"""Digits of a number that stands for none."""
_LONGEST = 24
"""Digits of the longest number that is looked at: an exponent can ask for any length."""
_NOBODY = frozenset(
    {"", "-", "--", "---", ".", "?", "??", "???", "n/a", "#n/a", "na", "n.a.", "nan", "null", "(null)", "<null>", "\\n",
     "nil", "none", "unknown", "undefined", "missing", "not available", "not applicable", "not provided", "not set"}
)  # fmt: skip
"""Texts that stand for no value, in small letters. A list of exceptions: any other text can be a name or a key."""


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
    """A constant that is nobody's value."""
    node = node.this if isinstance(node, exp.Neg) else node
    return isinstance(node, exp.Null | exp.Boolean) or (isinstance(node, exp.Literal) and not _names_somebody(node))


def _names_somebody(node: exp.Literal) -> bool:
    """Whether a constant can be somebody's: all but the words and numbers that stand for none."""
    name = node.name.strip().lower()
    try:
        number = Decimal(name)
    except InvalidOperation:
        return name not in _NOBODY
    if not number.is_finite():
        return name not in _NOBODY
    if isinstance(node.parent, exp.Neg) or number.is_signed() or not number:
        return False
    if number.adjusted() > _LONGEST:
        return True
    digits = format(number.quantize(1) if number == number.to_integral_value() else number, "f")
    return set(digits) != {"9"} or len(digits) < _NINES
