"""What a Spark SQL expression over one text makes of a value, for the functions whose result is certain.

`sha2(lower(email), 256)` is evaluated for the subject's value exactly as Spark 3.5 would
(https://spark.apache.org/docs/3.5.9/api/sql/; every function here is compared with Spark itself by a test). What is
not on the list, or depends on a type, a locale or a version that is not known, is refused: it never becomes a guess.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import cast

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from planners.locate.sql import spark_hash
from planners.locate.sql.column_types import nearest_numbers
from planners.locate.sql.java_regex_and_case import case_is_certain, in_base64, replace_all, sliced
from planners.locate.sql.whole_numbers import (
    NotComputable,
    arithmetic,
    to_decimal,
    to_whole,
    uncut,
    unpadded,
    written_number,
)

INPUT = "x"
"""Name of the one input column in a composed expression."""
ENGINES_DIFFER = ("lower_of_ascii", "upper_of_ascii", "trim_of_letters")


def parse(expression: str) -> exp.Expression:
    """Parse one Spark SQL expression.

    Raises:
        NotComputable: it does not parse.
    """
    try:
        return cast(exp.Expression, sqlglot.parse_one(expression, dialect="spark"))
    except (SqlglotError, RecursionError):
        raise NotComputable("a recorded expression does not parse") from None


def compute(expression: str, value: str) -> str | None:
    """The text that Spark's expression over `x` gives for a value, or None where it gives NULL.

    Raises:
        NotComputable: a function, type, pattern or character whose result is not certain.
    """
    return compiled(expression)(value)


def compiled(expression: str) -> Callable[[str], str | None]:
    """`compute` for one expression and many values: parsed once.

    Raises:
        NotComputable: it does not parse; the function it returns raises as `compute` does.
    """
    tree = parse(expression)
    return lambda value: _value(tree, value)


@lru_cache(maxsize=100_000)
def is_plain(expression: str) -> bool:
    """True when the value is the same text before and after: unchanged, or cast between whole numbers and strings.

    A cast to a number rewrites texts like `007`; whoever derives values from a plain expression has to look at them.
    One that does not parse is another engine's.
    """
    try:
        node = parse(expression)
    except NotComputable:
        return False
    while isinstance(node, exp.Cast | exp.Paren) or is_sized(node):
        if isinstance(node, exp.Cast) and node.to.this not in TEXTS | set(_WHOLE):
            return False
        node = node.expressions[0].this if is_sized(node) else node.this
    return isinstance(node, exp.Column)


def is_sized(node: exp.Expr) -> bool:
    """Whether it is what lineage records for a cast to a text with a size: `uncut(left(x, 9))`."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in _SIZED and isinstance(node.expressions[0], exp.Left)


def _one_number(node: exp.Anonymous, value: str) -> str | None:
    """One of the numbers that engines make of a text, of which there may be several."""
    of, kind, way = node.expressions
    inner = _value(of, value)
    numbers = () if inner is None else nearest_numbers(inner, kind.name)
    return numbers[int(way.name) % len(numbers)] if numbers else None


_WHOLE = {exp.DataType.Type.BIGINT: 64, exp.DataType.Type.INT: 32}
_SIZED = {"uncut": uncut, "unpadded": unpadded}
TEXTS = {exp.DataType.Type.TEXT, exp.DataType.Type.VARCHAR}


def _value(node: exp.Expression, value: str) -> str | None:
    if isinstance(node, exp.Column) and node.name.lower() == INPUT and not node.table:
        return value
    if isinstance(node, exp.Literal):
        return str(node.this)
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Paren):
        return _value(node.this, value)
    if isinstance(node, exp.Anonymous):
        if is_sized(node):
            left = node.expressions[0]
            return _SIZED[node.name.lower()](_value(left.this, value), written_number(left.expression))
        if node.name.lower() == "one_number":
            return _one_number(node, value)
        function = _BY_NAME.get(node.name.lower())
        if function is not None and len(node.expressions) == 1:
            return function(node.expressions[0], value)
        raise NotComputable(f"the function `{node.name.lower()}` has no certain result")
    typed = _FUNCTIONS.get(type(node))  # by exact type: what the parser derives from a function is another function
    if typed is not None:
        return typed(node, value)
    raise NotComputable(f"the function `{node.key}` has no certain result")


def _text(node: exp.Expression | None) -> str:
    if isinstance(node, exp.Literal):
        return str(node.this)
    raise NotComputable("an argument must be a literal")


def _of(function: Callable[[str], str]) -> Callable[[exp.Expression, str], str | None]:
    """A function of one text that gives NULL for NULL."""

    def apply(node: exp.Expression, value: str) -> str | None:
        inner = _value(node.this, value)
        return None if inner is None else function(inner)

    return apply


def _of_ascii(change: Callable[[str], str], *, but: str) -> Callable[[exp.Expression, str], str | None]:
    """Case in an engine that knows no other letters, or those of a locale (Turkish has another i)."""

    def apply(node: exp.Expression, value: str) -> str | None:
        inner = _value(node, value)
        if inner is not None and (but in inner or not inner.isascii()):
            raise NotComputable("the text contains a letter whose upper or lower case differs between engines")
        return None if inner is None else change(inner)

    return apply


def _trim_of_letters(node: exp.Expression, value: str) -> str | None:
    """A text with nothing at its ends that any engine takes for blank."""
    inner = _value(node, value)
    ends = inner[:1] + inner[-1:] if inner is not None else ""
    if not ends.isprintable() or " " in ends:
        raise NotComputable("the text begins or ends with blanks, which engines treat differently")
    return inner


def _cased(text: str) -> str:
    if not case_is_certain(text):
        raise NotComputable("upper or lower case of a letter on which Java's versions differ")
    return text


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _sha2(node: exp.Expression, value: str) -> str | None:
    length = written_number(node.args["length"]) if node.args.get("length") else 256
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
    if target in TEXTS:
        return inner
    if target in _WHOLE:
        return to_whole(inner, _WHOLE[target])
    if target is exp.DataType.Type.DECIMAL:
        return to_decimal(inner, node.args["to"])
    raise NotComputable("a cast to a type whose text form is not certain")


def _arithmetic(node: exp.Expression, value: str) -> str | None:
    return arithmetic(node, lambda part: _value(part, value))


def _concat(node: exp.Expression, value: str) -> str | None:
    parts = [node.this, node.expression] if isinstance(node, exp.DPipe) else node.expressions
    texts = [_value(part, value) for part in parts]
    return None if any(t is None for t in texts) else "".join(str(t) for t in texts)


def _concat_ws(node: exp.Expression, value: str) -> str | None:
    separator, *parts = [_value(part, value) for part in node.expressions]
    return None if separator is None else separator.join(part for part in parts if part is not None)


def _trim(node: exp.Expression, value: str) -> str | None:
    inner = _value(node.this, value)
    characters = _text(node.expression) if node.args.get("expression") is not None else " "
    if inner is None:
        return None
    position = str(node.args.get("position") or "BOTH").upper()
    if position == "LEADING":
        return inner.lstrip(characters)
    return inner.rstrip(characters) if position == "TRAILING" else inner.strip(characters)


def _substring(node: exp.Expression, value: str) -> str | None:
    inner = _value(node.this, value)
    start = written_number(node.args.get("start"))
    length = node.args.get("length")
    return None if inner is None else sliced(inner, start, None if length is None else written_number(length))


def _left(node: exp.Expression, value: str) -> str | None:
    inner, length = _value(node.this, value), written_number(node.expression)
    return None if inner is None else inner[: max(length, 0)]


def _right(node: exp.Expression, value: str) -> str | None:
    inner, length = _value(node.this, value), written_number(node.expression)
    return None if inner is None else inner[-length:] if length > 0 else ""


def _pad(node: exp.Expression, value: str) -> str | None:
    inner, length = _value(node.this, value), written_number(node.expression)
    fill = _text(node.args["fill_pattern"]) if node.args.get("fill_pattern") is not None else " "
    if inner is None:
        return None
    missing = length - len(inner)
    if missing <= 0 or not fill:
        return inner[: max(length, 0)]
    padding = (fill * missing)[:missing]
    return padding + inner if node.args.get("is_left") else inner + padding


def _replace(node: exp.Expression, value: str) -> str | None:
    inner, search = _value(node.this, value), _text(node.expression)
    by = _text(node.args["replacement"]) if node.args.get("replacement") is not None else ""
    if inner is None or not search:
        return inner
    return inner.replace(search, by)


def _translate(node: exp.Expression, value: str) -> str | None:
    inner, old, new = _value(node.this, value), _text(node.args["from_"]), _text(node.args["to"])
    if inner is None:
        return None
    table: dict[str, str] = {}
    for position, letter in enumerate(old):
        table.setdefault(letter, new[position] if position < len(new) else "")
    return "".join(table.get(letter, letter) for letter in inner)


def _regexp_replace(node: exp.Expression, value: str) -> str | None:
    if node.args.get("position") is not None and written_number(node.args["position"]) != 1:
        raise NotComputable("REGEXP_REPLACE that does not start at the first character")
    inner = _value(node.this, value)
    if inner is None:
        return None
    result = replace_all(_text(node.expression), _text(node.args["replacement"]), inner)
    if result is None:
        raise NotComputable("a regular expression in which Java and Python may differ")
    return result


def _coalesce(node: exp.Expression, value: str) -> str | None:
    for part in (node.this, *node.expressions):
        found = _value(part, value)
        if found is not None:
            return found
    return None


def _nullif(node: exp.Expression, value: str) -> str | None:
    inner = _value(node.this, value)
    return None if inner == _text(node.expression) else inner


def _hex(node: exp.Expression, value: str) -> str | None:
    inner = _value(node.this, value)
    kind = _kind(node.this)
    if inner is None:
        return None
    if kind == "string":
        return inner.encode().hex().upper()
    return f"{int(inner) % 2**64:X}"


def _lower_hex(node: exp.Expression, value: str) -> str | None:
    upper = _hex(node, value)
    return None if upper is None else upper.lower()


def _xxhash64(node: exp.Expression, value: str) -> str | None:
    inner = _value(node, value)
    return str(spark_hash.xxhash64(_bytes(node, inner)) if inner is not None else spark_hash.SEED)


def _murmur3(node: exp.Expression, value: str) -> str | None:
    inner = _value(node, value)
    return str(spark_hash.murmur3(_bytes(node, inner)) if inner is not None else spark_hash.SEED)


def _bytes(node: exp.Expression, inner: str) -> bytes:
    """The bytes that Spark hashes: text as UTF-8, numbers in their width."""
    width = {"string": 0, "int": 4, "bigint": 8}[_kind(node)]
    return int(inner).to_bytes(width, "little", signed=True) if width else inner.encode()


def _crc32(node: exp.Expression, value: str) -> str | None:
    inner = _value(node, value)
    return None if inner is None else str(zlib.crc32(inner.encode()))


def _kind(node: exp.Expression) -> str:
    """The type of a result, where functions differ by type.

    Raises:
        NotComputable: the type is that of the column itself, which the expression does not tell.
    """
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Cast) and (node.to.this in TEXTS or node.to.this in _WHOLE):
        return "string" if node.to.this in TEXTS else {64: "bigint", 32: "int"}[_WHOLE[node.to.this]]
    if isinstance(node, _GIVES_TEXT) or (isinstance(node, exp.Literal) and node.is_string):
        return "string"
    raise NotComputable("a function whose result depends on the column's type, which the expression does not show")


_GIVES_TEXT = (
    exp.Lower, exp.Upper, exp.MD5, exp.SHA, exp.SHA2, exp.RegexpReplace, exp.Concat, exp.DPipe, exp.ConcatWs,
    exp.Trim, exp.Substring, exp.Left, exp.Right, exp.Pad, exp.Replace, exp.Translate, exp.ToBase64, exp.Hex,
)  # fmt: skip

_FUNCTIONS: dict[type[exp.Expression], Callable[[exp.Expression, str], str | None]] = {
    exp.Lower: _of(lambda text: _cased(text).lower()),
    exp.Upper: _of(lambda text: _cased(text).upper()),
    exp.MD5: _of(_md5),
    exp.SHA: _of(lambda text: hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()),
    exp.SHA2: _sha2,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.RegexpReplace: _regexp_replace,
    exp.Concat: _concat,
    exp.DPipe: _concat,
    exp.ConcatWs: _concat_ws,
    exp.Trim: _trim,
    exp.Substring: _substring,
    exp.Left: _left,
    exp.Right: _right,
    exp.Reverse: _of(lambda text: text[::-1]),
    exp.Pad: _pad,
    exp.Replace: _replace,
    exp.Translate: _translate,
    exp.ToBase64: _of(in_base64),
    exp.Hex: _hex,
    exp.Neg: _arithmetic,
    exp.Add: _arithmetic,
    exp.Sub: _arithmetic,
    exp.Mul: _arithmetic,
    exp.LowerHex: _lower_hex,
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
}

_BY_NAME: dict[str, Callable[[exp.Expression, str], str | None]] = {
    "crc32": _crc32,
    "xxhash64": _xxhash64,
    "hash": _murmur3,
    "bigint": lambda node, value: _cast(exp.cast(node.copy(), "BIGINT"), value),
    # what lineage records for `lower`, `upper` and `trim` of other engines (ENGINES_DIFFER)
    "lower_of_ascii": _of_ascii(str.lower, but="I"),
    "upper_of_ascii": _of_ascii(str.upper, but="i"),
    "trim_of_letters": _trim_of_letters,
    "btrim": lambda node, value: None if (inner := _value(node, value)) is None else inner.strip(" "),
}
