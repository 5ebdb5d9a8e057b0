"""Whole numbers, in whatever type and text they are kept: a number key is the same one as 4711, 4711.0 and '4711.0'.

Pandas and Spark make doubles of whole numbers where a column has gaps, and texts of these later.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal, InvalidOperation
from itertools import product
from typing import TYPE_CHECKING, Any

from pii_tracer.model.datasets import WHOLE_NUMBER, KeySet
from pii_tracer.model.keys_as_text import joined, split

if TYPE_CHECKING:
    import pyarrow as pa

EXACT = {"double": 2**53, "float": 2**24, "halffloat": 2**11}
"""By Spark's names, and Arrow's where Spark has none.

Below these every whole number is itself in the type (IEEE 754: so many bits of significand).
"""

_WIDTHS = {64: "double", 32: "float", 16: "halffloat"}

WEAK_DIGITS = 10
"""A number of fewer digits than this is likely to mean something else elsewhere (an id of another table)."""

FEW = 5
"""A number of fewer digits stands everywhere by chance: only in a column that is named as the key is the key."""

_WHOLE = re.compile(WHOLE_NUMBER)
_LONGEST = 40
"""No key that is a number has more digits: Spark's decimals have 38."""

_SIGNS = re.compile(r"[^0-9a-z]")
_PARTS = re.compile(r"[.\[\]()$]+")
_WITHIN_JSON = re.compile(r"[^\s{}\[\]\",:]+")
_DIGITS = re.compile(r"-?(?:0|[1-9][0-9]*)\Z")
_FRACTIONS = (".0", ".00")


def bare(name: str) -> str:
    """A column's name in lower case and without signs, as names are compared."""
    return _SIGNS.sub("", name.lower())


def bare_parts(label: str) -> frozenset[str]:
    """What a column and each field on the way to a value are called (`bare`), of a label as `Hit.column`."""
    return frozenset(map(bare, _PARTS.split(label)))


def is_short_number(value: str) -> bool:
    """Whether a value is a weak one (see `KeySet.weak`)."""
    return value.isdigit() and len(value) < WEAK_DIGITS


def plain(value: Any) -> str:
    """A value as text, numbers that are whole without a fraction, but floats too large to be exact as they are."""
    if isinstance(value, (float, Decimal)):
        number = Decimal(value)
        exact = isinstance(value, Decimal) or abs(value) < EXACT["double"]
        # 1e999999999 would be a number of a gigabyte
        if exact and number.is_finite() and number.adjusted() < _LONGEST and number == number.to_integral_value():
            return str(int(number))
    return str(value)


def without_fraction(text: str) -> str:
    """`4711` of `4711.0`; other texts as they are."""
    return _WHOLE.sub(r"\1", text) if "." in text else text


def can_be_one(constant: str, keys: Collection[str]) -> bool:
    """Whether a constant of a statement is one of some keys, or an engine makes one of it: `01`, `1e0`, `1.7`, `true`.

    Engines cut fractions off or round them, and leave blanks and noughts out. Of packed JSON any value may be one.
    """
    text = constant.strip()
    if text[:1] in ("{", "["):
        return any(can_be_one(part, keys) for part in _WITHIN_JSON.findall(text))
    if text in keys or without_fraction(text) in keys:
        return True
    try:
        number = Decimal({"true": "1", "false": "0"}.get(text.lower(), text))
    except InvalidOperation:
        return False
    if not number.is_finite() or number.adjusted() > _LONGEST:
        return False
    whole = (number.to_integral_value(how) for how in (ROUND_DOWN, ROUND_HALF_UP, ROUND_HALF_EVEN))
    return any(str(int(one)) in keys for one in whole)


def spellings(values: Iterable[str]) -> frozenset[str]:
    """The values, and those that are whole numbers also as texts may have them: `4711.0`, `4711.00`."""
    found = set(values)
    numbers = [value for value in found if _DIGITS.match(value)]
    return frozenset(found.union(*([number + fraction for number in numbers] for fraction in _FRACTIONS)))


def same_numbers(mine: Iterable[str], others: Collection[str]) -> frozenset[str]:
    """Of some values those that others have, too, or have as another text of the same whole number."""
    with_fraction = (other for other in others if other.endswith("0") and "." in other)
    plain = {number for other in with_fraction if (number := without_fraction(other)) != other}
    return frozenset(v for v in mine if v in others or (number := without_fraction(v)) in plain or number in others)


def writings(value: str, *, several: bool = False) -> frozenset[str]:
    """A key, and the other texts of the same whole number; of several columns each column's with each other's."""
    if not several:
        return spellings((value, without_fraction(value)))
    ways = product(*(writings(part) for part in split(value)))
    return frozenset(text for parts in ways if (text := joined(parts)) is not None)


def spelled(found: KeySet) -> frozenset[str]:
    """The values of a key set in all spellings."""
    values = {value for _, value in found.values}
    if not found.columns:
        return spellings(values | {without_fraction(value) for value in values})
    return frozenset[str]().union(*(writings(value, several=True) for value in values))


def plain_texts(array: pa.Array) -> pa.Array | None:
    """Text, dates and numbers as Spark casts them to text, but numbers that are whole without a fraction.

    Other floats, and those too large to be exact, are NULL. None for other types.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if pa.types.is_floating(kind):
        array = array.cast(pa.float64()) if pa.types.is_float16(kind) else array
        exact = pc.and_(pc.equal(array, pc.floor(array)), pc.less(pc.abs(array), EXACT[_WIDTHS[kind.bit_width]]))
        return pc.if_else(exact, array, None).cast(pa.int64()).cast(pa.string())
    if pa.types.is_decimal(kind):
        return pc.replace_substring_regex(array.cast(pa.string()), WHOLE_NUMBER, r"\1")
    known = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)
    if any(test(kind) for test in (*known, pa.types.is_integer, pa.types.is_date)):
        return array.cast(pa.string())
    return pa.nulls(len(array), pa.string()) if array.null_count == len(array) else None
