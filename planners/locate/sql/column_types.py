"""Types of the leaves that keys stand in, and what columns of numbers hold for a text that is written into them.

Engines cast on writing, and do it in several ways: fractions are cut off or rounded, and a number outside of the range
of its type is refused, NULL, clamped or wrapped around
(https://spark.apache.org/docs/3.5.6/sql-ref-ansi-compliance.html#cast). Every way counts here.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Collection, Iterator, Sequence
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from functools import cache
from itertools import islice, product

from pii_tracer.model.column_paths import elements_of, keys_of, struct_fields
from pii_tracer.model.datasets import Access, ElementAccess, FieldAccess, JsonAccess
from pii_tracer.model.keys_as_text import split
from pii_tracer.model.number_keys import EXACT, without_fraction

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_DECIMAL = re.compile(r"decimal(?:\(\s*(\d+)\s*(?:,\s*(-?\d+)\s*)?\))?\Z")
_BARE = (10, 0)
"""Digits, and those behind the point, of a decimal that names none."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,60}(?:\.[0-9]{0,60})?|\.[0-9]{1,60})(?:[eE][+-]?0*[0-9]{1,2})?")
_BEGIN = re.compile(r"[+-]?[0-9]{1,60}")
_FLOAT = re.compile(rf"({_NUMBER.pattern})[dDfF]?")
_HEX = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]{1,30}\.?[0-9a-fA-F]{0,30}|\.[0-9a-fA-F]{1,30})[pP][+-]?[0-9]{1,3}[dDfF]?")
"""Java reads these as floats (https://docs.oracle.com/en/java/javase/17/docs/api/java.base/java/lang/Double.html)."""

_BLANKS = "".join(map(chr, (*range(0x21), *range(0x7F, 0xA0))))
"""Spark passes over blanks and control characters around a number."""

_ROUNDED = (ROUND_DOWN, ROUND_HALF_UP, ROUND_HALF_EVEN)
_EVERY_DIGIT = Context(prec=400)
_PACKED = {"double": "<d", "float": "<f", "halffloat": "<e"}
_SIGNIFICANT = 17
"""So many digits tell two doubles apart."""


def leaf_type(column_type: str, access: tuple[Access, ...]) -> str:
    """Type of the leaf that an access leads to; JSON members are strings."""
    for step in access:
        if isinstance(step, JsonAccess):
            return "string"
        column_type = _inner_type(column_type, step)
    return column_type


def _inner_type(outer: str, step: FieldAccess | ElementAccess) -> str:
    if isinstance(step, ElementAccess):
        return (elements_of(outer) if step.name == "element" else keys_of(outer)) or "string"
    fields = struct_fields(outer) or ()
    return next((kind for name, kind in fields if name.lower() == step.name.lower()), "string")


def is_number(kind: str) -> bool:
    """Whether a type, by Spark's name, is one of numbers."""
    return kind in _BITS or kind in EXACT or _DECIMAL.match(kind) is not None


def fits(value: str, kind: str) -> bool:
    """Whether a column of a type gives a value back as it is, and nothing else so. Types without numbers do."""
    if not is_number(kind) or _plain(value, _longest(kind)):
        return True
    return stored(value, kind) == {value} and (kind not in EXACT or abs(Decimal(value)) < EXACT[kind])


def stored(text: str, kind: str) -> frozenset[str]:
    """The numbers that a column of numbers may hold for a text, in plain digits; none where it is no number."""
    if _plain(text, _longest(kind)):
        return frozenset((text,))
    number = _number(text.strip(_BLANKS), kind)
    if number is None:
        return frozenset()
    if kind in EXACT:
        return frozenset(_as_float(number, kind))
    if kind in _BITS:
        wholes = map(int, _rounded(number, 0))
        return frozenset(str(held) for whole in wholes for held in _in_range(whole, _BITS[kind]))
    digits, behind = _digits(kind)
    return frozenset(
        _text(held) for held in _rounded(number, behind) if held.copy_abs() < Decimal(10) ** (digits - behind)
    )


def nearest_numbers(text: str, kind: str) -> tuple[str, ...]:
    """`stored`, in one order; of a text that only begins with a number that one, as MySQL reads it; and the greatest
    number of a decimal for what has no room in it.
    """
    begin = _BEGIN.match(text := text.strip(_BLANKS))
    text = begin[0] if begin and _number(text, kind) is None else text
    number = _number(text, kind)
    if number is not None and _DECIMAL.match(kind) and not stored(text, kind):
        digits, behind = _digits(kind)
        most = (Decimal(10) ** digits - 1).scaleb(-behind)
        return (_text(most.copy_sign(number)),)
    return tuple(sorted(stored(text, kind)))


def stored_alike(mine: Collection[str], everybody: frozenset[str], kinds: Sequence[str]) -> frozenset[str]:
    """Others' keys that columns of these types may hold as they hold the persons'.

    Keys of the persons that do not fit are left out: the rows with what is stored for them stay.
    """
    alone = len(kinds) == 1

    def held(key: str) -> Iterator[tuple[str, ...]]:
        parts = (key,) if alone else split(key)
        return product(*(stored(p, kind) if is_number(kind) else (p,) for p, kind in zip(parts, kinds, strict=True)))

    whole = (tuple(map(without_fraction, (key,) if alone else split(key))) for key in mine)
    numbers = {parts for parts in whole if all(map(fits, parts, kinds))}
    if not numbers:
        return frozenset()
    same, odd = frozenset[str](), everybody
    if alone:  # most keys of a source with millions are numbers as they are: none of these is looked at by itself
        longest = _longest(kinds[0])
        same = everybody & {number for (number,) in numbers}
        odd = frozenset(key for key in everybody if not _plain(key, longest))
    return (same | {key for key in odd if not numbers.isdisjoint(held(key))}).difference(mine)


def _plain(text: str, longest: int) -> bool:
    """Whether a text is a whole number that a column holds as it is: most keys are, so this is fast."""
    return text.isdigit() and text.isascii() and len(text) <= longest and text[0] != "0"


@cache
def _longest(kind: str) -> int:
    """Whole numbers of so many digits are all held as they are."""
    if kind in EXACT:
        return len(str(EXACT[kind])) - 1
    if kind in _BITS:
        return len(str(2 ** (_BITS[kind] - 1))) - 1
    digits, behind = _digits(kind)
    return digits - behind if behind >= 0 else 0


def _digits(kind: str) -> tuple[int, int]:
    match = _DECIMAL.match(kind)
    return (int(match[1]), int(match[2] or 0)) if match and match[1] else _BARE


def _rounded(number: Decimal, behind: int) -> set[Decimal]:
    unit = Decimal(1).scaleb(-behind)
    return {number.quantize(unit, rounding=way, context=_EVERY_DIGIT) for way in _ROUNDED}


def _in_range(whole: int, bits: int) -> set[int]:
    half = 1 << (bits - 1)
    return {(whole + half) % (2 * half) - half, min(max(whole, -half), half - 1)}


def _number(text: str, kind: str) -> Decimal | None:
    if kind not in EXACT:
        return Decimal(text) if _NUMBER.fullmatch(text) else None
    if match := _FLOAT.fullmatch(text):
        return Decimal(match[1])
    try:
        return Decimal(float.fromhex(text.rstrip("dDfF"))) if _HEX.fullmatch(text) else None
    except OverflowError:
        return None


def _as_float(number: Decimal, kind: str) -> Iterator[str]:
    """The number that a float is, with as few digits as name it; none beyond its range."""
    packed = _packed(float(number), kind)
    if packed is None:
        return
    value = struct.unpack(_PACKED[kind], packed)[0]
    texts = (f"{value:.{digits}g}" for digits in range(1, _SIGNIFICANT + 1))
    yield from (_text(Decimal(text)) for text in islice((t for t in texts if _packed(float(t), kind) == packed), 1))


def _packed(value: float, kind: str) -> bytes | None:
    try:
        return struct.pack(_PACKED[kind], value)
    except OverflowError:
        return None


def _text(number: Decimal) -> str:
    text = format(number, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text
