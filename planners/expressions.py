"""Recorded expressions over one column: where the column stands inside them, and what they make of a value.

`sha2(lower(email), 256)` is evaluated for the subject's value exactly as Spark would, by a short list of functions
whose behaviour is fixed (https://spark.apache.org/docs/3.5.9/api/sql/). A function that is not on the list makes the
expression unusable as a key; it never becomes a guess.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from pii_tracer.errors import PlanError
from pii_tracer.model import Access, FieldAccess, JsonAccess

INPUT = "x"
"""Name of the one input column in a composed expression."""

_KEEPS_VALUE = (exp.Max, exp.Min, exp.First, exp.Last, exp.AnyValue, exp.FirstValue, exp.LastValue)
"""Aggregates whose result is one of the values they read: an identifier stays an identifier."""


class NotComputable(PlanError):
    """The expression uses a function that is not on the list."""


@dataclass(frozen=True)
class Place:
    """Where a column's value ends up in an expression's result.

    access: the way into the result (struct fields, JSON members).
    expression: what was done to the value on the way, over the column `x`; `x` alone when it is unchanged.
    """

    access: tuple[Access, ...]
    expression: str


def parse(expression: str) -> exp.Expression:
    """Parse one Spark SQL expression.

    Raises:
        NotComputable: it does not parse.
    """
    try:
        return cast(exp.Expression, sqlglot.parse_one(expression, dialect="spark"))
    except SqlglotError:
        raise NotComputable("a recorded expression does not parse") from None


def locate(expression: str, column: str, access: tuple[Access, ...] = ()) -> tuple[Place, ...]:
    """Every place where `column` (at `access` inside it) ends up in the expression's result.

    An empty tuple means: it goes in, but not so that it could be found again by equality (a sum, a concatenation with
    another column, an unknown function of several columns).
    """
    try:
        tree = parse(expression)
    except NotComputable:
        return ()
    return tuple(_places(tree, column.lower(), access))


def _places(node: exp.Expression, column: str, access: tuple[Access, ...]) -> Iterator[Place]:
    read = _reads(node, column, access)
    if read is not None:
        yield Place(read, INPUT)
        return
    if isinstance(node, (exp.Alias, exp.Paren, *_KEEPS_VALUE)):
        yield from _places(node.this, column, access)
    elif isinstance(node, exp.Coalesce | exp.If | exp.Case | exp.Nullif):
        for branch in _branches(node):
            yield from _places(branch, column, access)
    elif isinstance(node, exp.Struct):
        for name, value in _struct_fields(node):
            for place in _places(value, column, access):
                yield Place((FieldAccess(name=name), *place.access), place.expression)
    elif isinstance(node, exp.JSONFormat):
        for place in _places(node.this, column, access):
            yield Place(_as_json(place.access), place.expression)
    else:
        yield from _computed(node, column, access)


def _reads(node: exp.Expression, column: str, access: tuple[Access, ...]) -> tuple[Access, ...] | None:
    """If the node reads the column, or a part of it that leads to the value: the access still left to go."""
    if isinstance(node, exp.Column):
        parts = [part.name.lower() for part in node.parts]
        if parts[-1] == column:
            return access
        fields = parts[parts.index(column) + 1 :] if column in parts else []
        # `payer.id` parses as column `id` of a table `payer`: a struct's field all the same
        leads = [step.name.lower() for step in access[: len(fields)] if isinstance(step, FieldAccess)]
        return access[len(fields) :] if fields and leads == fields else None
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        rest = _reads(node.this, column, access)
        if rest and isinstance(rest[0], FieldAccess) and rest[0].name.lower() == node.expression.name.lower():
            return rest[1:]
    if isinstance(node, exp.JSONExtract | exp.JSONExtractScalar):
        rest = _reads(node.this, column, access)
        path = tuple(part.name for part in node.expression.find_all(exp.JSONPathKey))
        if rest and isinstance(rest[0], JsonAccess) and rest[0].path == path:
            return rest[1:]
    return None


def _branches(node: exp.Expression) -> Iterator[exp.Expression]:
    """The parts of a conditional that can become its value."""
    if isinstance(node, exp.Coalesce):
        yield node.this
        yield from node.expressions
    elif isinstance(node, exp.Nullif):
        yield node.this
    elif isinstance(node, exp.If):
        yield node.args["true"]
        if node.args.get("false"):
            yield node.args["false"]
    else:
        for branch in node.args.get("ifs", []):
            yield branch.args["true"]
        if node.args.get("default"):
            yield node.args["default"]


def _struct_fields(node: exp.Struct) -> Iterator[tuple[str, exp.Expression]]:
    for position, item in enumerate(node.expressions, start=1):
        if isinstance(item, exp.PropertyEQ | exp.Alias):
            yield (
                (item.alias_or_name if isinstance(item, exp.Alias) else item.this.name),
                (item.this if isinstance(item, exp.Alias) else item.expression),
            )
        elif isinstance(item, exp.Column):
            yield item.name, item
        else:
            yield f"col{position}", item


def _as_json(access: tuple[Access, ...]) -> tuple[Access, ...]:
    """`to_json` of a struct turns the field steps into one JSON path."""
    names = []
    for step in access:
        names.extend([step.name] if isinstance(step, FieldAccess) else list(step.path))
    return (JsonAccess(path=tuple(names)),) if names else ()


def _computed(node: exp.Expression, column: str, access: tuple[Access, ...]) -> Iterator[Place]:
    """A function of nothing but the value: replace every read of it by `x`."""
    if node.find(exp.AggFunc) or node.find(exp.Window):
        return
    replaced: list[exp.Expression] = []

    def to_input(part: exp.Expression) -> exp.Expression:
        if _reads(part, column, access) != ():
            return part
        replacement = exp.column(INPUT)
        replaced.append(replacement)
        return replacement

    tree = node.transform(to_input)
    if not replaced or any(not any(c is r for r in replaced) for c in tree.find_all(exp.Column)):
        return
    yield Place((), tree.sql(dialect="spark"))


def compose(inner: str, outer: str) -> str:
    """`outer` with its `x` replaced by `inner`."""
    if outer == INPUT:
        return inner
    replacement = parse(inner)
    tree = parse(outer).transform(lambda n: replacement.copy() if isinstance(n, exp.Column) and n.name == INPUT else n)
    return tree.sql(dialect="spark")


def is_plain(expression: str) -> bool:
    """True when the value is the same text before and after: unchanged, or cast between whole numbers and strings."""
    node = parse(expression)
    while isinstance(node, exp.Cast | exp.Paren):
        if isinstance(node, exp.Cast) and node.to.this not in _TEXT_SAFE:
            return False
        node = node.this
    return isinstance(node, exp.Column)


_WHOLE = {exp.DataType.Type.BIGINT, exp.DataType.Type.INT}
_TEXT = {exp.DataType.Type.TEXT, exp.DataType.Type.VARCHAR}
_TEXT_SAFE = _WHOLE | _TEXT


def compute(expression: str, value: str) -> str | None:
    """The text that Spark's expression over `x` gives for a value, or None where it gives NULL.

    Raises:
        NotComputable: a function, type or pattern that is not on the list. The message holds no value.
    """
    result = _value(parse(expression), value)
    return None if result is None else str(result)


def _literal(node: exp.Expression | None) -> str:
    if isinstance(node, exp.Literal):
        return str(node.this)
    raise NotComputable("an argument that must be a literal is not one")


def _value(node: exp.Expression, value: str) -> str | None:
    if isinstance(node, exp.Column) and node.name == INPUT:
        return value
    if isinstance(node, exp.Literal):
        return str(node.this)
    if isinstance(node, exp.Paren):
        return _value(node.this, value)
    for kind, function in _FUNCTIONS.items():
        if isinstance(node, kind):
            return function(node, value)
    raise NotComputable(f"the function `{node.key}` is not one whose result is known for certain")


def _of(function: Callable[[str], str]) -> Callable[[exp.Expression, str], str | None]:
    """A function of one text that gives NULL for NULL."""

    def apply(node: exp.Expression, value: str) -> str | None:
        inner = _value(node.this, value)
        return None if inner is None else function(inner)

    return apply


def _sha2(node: exp.Expression, value: str) -> str | None:
    length = int(_literal(node.args["length"])) if node.args.get("length") else 256
    algorithm = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}.get(length)
    inner = _value(node.this, value)
    if algorithm is None or inner is None:
        return None
    return hashlib.new(algorithm, inner.encode()).hexdigest()


def _cast(node: exp.Expression, value: str) -> str | None:
    target = node.args["to"].this
    inner = _value(node.this, value)
    if inner is None:
        return None
    if target in _TEXT:
        return inner
    if target in _WHOLE:
        if not re.fullmatch(r"[+-]?\d{1,18}", inner.strip()):
            raise NotComputable("a cast to a number of something that is not a whole number")
        return str(int(inner))
    raise NotComputable("a cast to a type whose text form is not certain")


_SIMPLE_PATTERN = re.compile(r"(?:[\w\s@.+\-]|\\[dDwWs.+\-()]|\[\^?(?:[\w\s@.+-]|\\[dDwWs.+-])+\]|[*+^$])*")


def _regexp_replace(node: exp.Expression, value: str) -> str | None:
    pattern, replacement = _literal(node.expression), _literal(node.args["replacement"])
    if not _SIMPLE_PATTERN.fullmatch(pattern) or "\\" in replacement or "$" in replacement:
        raise NotComputable("a regular expression in which Java and Python may differ")
    inner = _value(node.this, value)
    return None if inner is None else re.sub(pattern, replacement, inner, flags=re.ASCII)


def _concat(node: exp.Expression, value: str) -> str | None:
    parts = [_value(part, value) for part in node.expressions]
    return None if any(part is None for part in parts) else "".join(str(part) for part in parts)


def _trim(node: exp.Expression, value: str) -> str | None:
    if node.expression is not None and node.args.get("expression"):
        raise NotComputable("TRIM with a set of characters")
    inner = _value(node.this, value)
    if inner is None:
        return None
    position = str(node.args.get("position") or "BOTH").upper()
    if position == "LEADING":
        return inner.lstrip(" ")
    return inner.rstrip(" ") if position == "TRAILING" else inner.strip(" ")


def _substring(node: exp.Expression, value: str) -> str | None:
    inner = _value(node.this, value)
    start = int(_literal(node.args.get("start")))
    length = node.args.get("length")
    if inner is None or start < 1:
        raise NotComputable("SUBSTRING that does not count from the first character")
    end = None if length is None else start - 1 + int(_literal(length))
    return inner[start - 1 : end]


_FUNCTIONS: dict[type[exp.Expression], Callable[[exp.Expression, str], str | None]] = {
    exp.Lower: _of(lambda text: text.lower()),
    exp.Upper: _of(lambda text: text.upper()),
    exp.MD5: _of(lambda text: hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()),
    exp.SHA: _of(lambda text: hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()),
    exp.SHA2: _sha2,
    exp.Cast: _cast,
    exp.RegexpReplace: _regexp_replace,
    exp.Concat: _concat,
    exp.Trim: _trim,
    exp.Substring: _substring,
    exp.Coalesce: _of(lambda text: text),
}
