"""Where Java and Python make the same of a text: regular expressions of a small grammar, and parts and case of texts.

Everything else is refused. Java's `\\d \\w \\s` are ASCII unless told otherwise; `.` and `$` know more line ends than
Python's; `x*+` is possessive in Java and an error, or possessive too, in Python. Which letters have a case depends on
the Unicode version of the JVM. Sources:
https://docs.oracle.com/en/java/javase/17/docs/api/java.base/java/util/regex/Pattern.html,
https://docs.python.org/3/library/re.html and https://www.unicode.org/policies/stability_policy.html.
"""

from __future__ import annotations

import base64
import re
import unicodedata

from planners.locate.sql.whole_numbers import NotComputable

_ESCAPED = r"\\[dDwWsS.+*?()\[\]{}|^$/\\-]"
_RANGE = r"(?:0-9|[0-9]-[0-9]|a-z|A-Z)"
_LITERAL = r"[A-Za-z0-9 _@#/:,;=!~%'\"<>-]"
_CLASS = rf"\[\^?-?(?:{_RANGE}|{_ESCAPED}|[A-Za-z0-9 _@#/:,;=!~%'\"<>.+*?(){{}}|$])+-?\]"
_QUANTIFIER = r"(?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})?"
_GRAMMAR = re.compile(rf"\^?(?:(?:{_ESCAPED}|{_CLASS}|{_LITERAL}|\.){_QUANTIFIER})*\$?")

_LINE_ENDS = re.compile("[\r\x85\u2028\u2029]")


def replace_all(pattern: str, replacement: str, text: str) -> str | None:
    """The text with every match replaced, or None where Java and Python may differ."""
    if not _GRAMMAR.fullmatch(pattern) or "\\" in replacement or "$" in replacement:
        return None
    if _LINE_ENDS.search(text) and ("." in pattern or "$" in pattern):
        return None
    try:
        compiled = re.compile(pattern, re.ASCII)
    except (re.error, RecursionError, OverflowError):
        return None
    if compiled.match("") and any(ord(letter) > 0xFFFF for letter in text):
        return None  # an empty match can stand inside what Java keeps as two characters
    return compiled.sub(replacement, text)


_UNICODE_3 = unicodedata.ucd_3_2_0
_LAST_OLD_LETTER = 0x052F
_CASED = frozenset({"Ll", "Lu", "Lt"})
_BY_POSITION = frozenset("Σİ")
"""Letters whose lower case depends on what stands around them, or on the locale."""


def case_is_certain(text: str) -> bool:
    """Whether upper and lower case of every letter are the same in every version of Java and Python, and locale."""
    return text.isascii() or all(letter.isascii() or _is_old(letter) for letter in text)


def _is_old(letter: str) -> bool:
    caseless, category = letter == letter.lower() == letter.upper(), _UNICODE_3.category(letter)
    if caseless and category in _CASED:
        return False  # it can be given its other case later, as `ƛ` was by Unicode 16, which Spark 4.1 goes by
    known = ord(letter) <= _LAST_OLD_LETTER or caseless
    return known and letter not in _BY_POSITION and category != "Cn"


def sliced(text: str, start: int, length: int | None) -> str:
    """UTF8String.substringSQL: counts from 1, negative numbers from the end, and 0 is 1."""
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    end = len(text) if length is None else first + length
    return text[max(first, 0) : max(end, 0)]


def in_base64(text: str) -> str:
    result = base64.b64encode(text.encode()).decode()
    if len(result) > 76:
        raise NotComputable("BASE64 of a long text has line breaks in some versions of Spark and none in others")
    return result
