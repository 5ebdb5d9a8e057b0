"""A phone number as it is dialled in its own country: without the country's code, mostly behind a zero.

Country codes: ITU-T E.164, https://www.itu.int/pub/T-SP-E.164D.
"""

from __future__ import annotations

from collections.abc import Iterator

_ONE = ("1", "7")
_TWO = frozenset(
    (
        *(20, 27, 30, 31, 32, 33, 34, 36, 39, 40, 41, 43, 44, 45, 46, 47, 48, 49, 51, 52, 53, 54, 55, 56, 57, 58),
        *(60, 61, 62, 63, 64, 65, 66, 81, 82, 84, 86, 90, 91, 92, 93, 94, 95, 98),
    )
)
_LEAST = 10
"""Fewer digits are many things' numbers. A zero in front counts: nobody writes it before another number."""
_LEAST_HOME = 9
_MOST = 15


def national(value: str) -> Iterator[str]:
    """The digits of other writings of a phone in international form; nothing for other values.

    `030…` and, of at least ten digits, `30…` for `+49 30…`; `49030…` for what is written `+49 (0)30…`; `8…` in Russia.
    """
    text = value.strip()
    start = next((text[len(sign) :] for sign in ("+", "00") if text.startswith(sign)), None)
    digits = "".join(c for c in start or "" if c.isdigit() and c.isascii())
    if start is None or not _LEAST_HOME < len(digits) <= _MOST:
        return
    code = digits[: 1 if digits.startswith(_ONE) else 2 if int(digits[:2]) in _TWO else 3]
    home = digits[len(code) :].removeprefix("0" if "(0)" in text else "")
    if len(home) + 1 >= _LEAST_HOME and home[:1] != "0":
        yield f"0{home}"
        yield f"{code}0{home}"
        yield f"00{code}{home}"
        if code == "7":
            yield f"8{home}"
    if len(home) >= _LEAST:
        yield home
