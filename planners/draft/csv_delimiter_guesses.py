"""How the cells of CSV files are separated where no comma does it, by the files' first lines."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from planners.draft.column_guesses import category_of, key_strength, may_be_record_key, may_tell_of_person, words_of

_SEPARATORS = (";", "\t", "|")
_NAME = re.compile(r"[^\W\d][\w .()/-]{0,63}")
"""What a column may be called. A mail, a number and a date are none."""

_SOMEBODY = re.compile(r"[^\W\d_a-z]\w*([ -][^\W\d_a-z]\w*)+")
"""What names of persons look like."""
_DIGITS = re.compile(r"\d{3}")
_NOTHING = frozenset(
    {
        "",
        "null",
        "na",
        "n/a",
        "n.a.",
        "none",
        "nan",
        "nil",
        "unknown",
        "undefined",
        "missing",
        "empty",
        "no",
        "-",
        "\\n",
    }
)
"""What stands in a cell without a value, in small letters."""
_COLUMNS = frozenset(
    {"amount", "total", "sum", "price", "count", "quantity", "score", "age", "date", "time", "timestamp", "day", "year"}
)
"""Words of which columns of numbers and dates are called."""

_WORDS_BEYOND = re.compile(
    r"[A-Za-z]*[^\W\d_A-Za-z][A-Za-z\u0080-\uffff]*|[A-Za-z]+[\u0080-\uffff][A-Za-z\u0080-\uffff]*"
)
"""Words with a letter, or a sign behind a letter, that is not ASCII."""
_MARKS = frozenset("\u2019\u2018\u2013\u2014\u00a0\u00ad\u00b4\u00b7\u00aa\u00ba")
"""Signs inside of words."""
_RARE = frozenset("\u00d0\u00f0\u00dd\u00fd\u00de\u00fe")
"""Letters of Icelandic alone, which text of Turkish and of Central Europe seems to have if it is read so."""
_NEARLY_ALL = 0.9


@dataclass(frozen=True)
class TextGuess:
    """separator: of cells. header: whether the first line of each file has the names. columns: these, or `_c0`, `_c1`
    and so on, as Spark calls them. multi_line: whether a cell in quotes goes over the end of a line.
    """

    separator: str
    header: bool
    columns: tuple[str, ...]
    multi_line: bool


def guess_text(heads: Sequence[str]) -> TextGuess | None:
    """What the first lines of the files of a folder tell. None where a comma separates cells, or nobody can tell.

    Every line has the same number of cells by the right sign. A first line of names counts as a header only if a column
    has something else than names below it: otherwise it may be somebody's row, whose values no estate file may have.
    """
    comma = _split(heads, ",")
    widths = {sign: len(files[0][0]) for sign in _SEPARATORS if (files := _split(heads, sign))}
    if comma and _is_header(comma) is not False:
        return None
    best = Counter(widths).most_common(2)
    if not best or (len(best) > 1 and best[0][1] == best[1][1]) or (comma and best[0][1] <= len(comma[0][0])):
        return None
    separator, width = best[0]
    files = _split(heads, separator)
    header = _is_header(files)
    if header is None or (header and len({tuple(rows[0]) for rows in files}) > 1):
        return None
    names = tuple(files[0][0]) if header else tuple(f"_c{place}" for place in range(width))
    longer = any("\n" in cell or "\r" in cell for rows in files for row in rows for cell in row)
    return TextGuess(separator, header, names, longer)


def is_western(text: str) -> bool:
    """Whether text that was read as Windows-1252 is in languages that are written so, as far as letters tell it: nearly
    all that are not ASCII stand in words with others that are. Words of Cyrillic or Greek, read so, have none.
    """
    good, odd = 0, 0
    for word in _WORDS_BEYOND.findall(text):
        if len(word) == 1:
            continue
        inside = any(char.isascii() for char in word)
        for place, char in enumerate(word):
            if char.isascii() or ((char in _MARKS or not 0 < place < len(word) - 1) and not char.isalpha()):
                continue
            if inside and char.isalpha() and char not in _RARE:
                good += 1
            else:
                odd += 1
    return good > 0 and good >= _NEARLY_ALL * (good + odd)


def _split(heads: Sequence[str], separator: str) -> list[list[list[str]]]:
    """The rows of each file, if all have the same number of cells, and more than one; none otherwise."""
    files = [[row for row in csv.reader(head.splitlines(keepends=True), delimiter=separator) if row] for head in heads]
    files = [rows for rows in files if rows]
    even = len({len(row) for rows in files for row in rows}) == 1
    return files if even and len(files[0][0]) > 1 and max(map(len, files)) > 1 else []


def _is_header(files: Sequence[Sequence[Sequence[str]]]) -> bool | None:
    """Whether the first lines have the names of columns; None where they look like names, and so does all below, or
    a name may be a value of somebody. One column that tells has to be called as columns are: in words of any language,
    the first person's row may say that nothing is known.
    """
    first = files[0][0]
    alike = all(_NAME.fullmatch(cell) for rows in files for cell in rows[0])
    if not alike or len({cell.lower() for cell in first}) < len(first):
        return False
    if any(_is_nothing(cell) or _DIGITS.search(cell) or may_tell_of_person(cell) for cell in first):
        return None
    below = [row for rows in files for row in rows[1:]]
    telling = []
    for name, cells in zip(first, zip(*below, strict=True), strict=True):
        told = [cell for cell in cells if not _is_nothing(cell)]
        if told and not any(_NAME.fullmatch(cell) for cell in told):
            telling.append(name)
        elif told and "name" not in words_of(name).split() and all(map(_SOMEBODY.fullmatch, (name, *told))):
            return None
    return True if any(map(_is_known, telling)) else None


def _is_nothing(cell: str) -> bool:
    return cell.strip().lower() in _NOTHING


def _is_known(name: str) -> bool:
    words = words_of(name).split()
    known = not _COLUMNS.isdisjoint(words) or category_of(name, "string") or key_strength(name, "string")
    return bool(known or may_be_record_key(name, "string"))
