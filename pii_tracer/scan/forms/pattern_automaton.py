"""The byte patterns of every form of the persons' values, and what finds them all at once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol, TypeVar

from ahocorasick_rs import BytesAhoCorasick

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.forms import (
    escape_free_text,
    escape_views,
    fully_escaped_values,
    national_phone_numbers,
    spaced_numbers,
    transcriptions,
)
from pii_tracer.scan.hits import Form
from pii_tracer.scan.value_encodings import (
    SEALED,
    bare_number,
    base64_alone,
    base64_cores,
    digests,
    html_escaped,
    in_other_addresses,
    json_escaped,
    regrouped,
    scientific,
    spellings,
    turkish,
    url_escaped,
    utf16,
    uuid_of,
)

Term = tuple[str, Form]
"""The name of a key set, and a form."""

_Key = TypeVar("_Key", bytes, str)

SHORT_TEXT = 6
"""A shorter text value would be found in binary by chance: it counts only between word boundaries."""

TINY_DIGITS = 5
"""A weak number of fewer digits counts only as a whole cell: `decimal(12,2)` is full of twelves."""

_SURE = 12
"""A shorter value without its blanks is not met in all encodings in which it is with them."""

_STRONG_DIGITS = 10
"""Fewer digits behind blanks, which a source pads with, mean something else elsewhere, too."""

_PADDED_DIGITS = 7
"""A number that a source pads with zeros is a typed number elsewhere. Fewer digits without them are many things'."""

_INTEGER = re.compile(r"-?(0|[1-9]\d{0,37})\Z")


Table = dict[bytes, "tuple[Term, ...]"]
"""By pattern, what it stands for."""

_CUTS = (12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256)
"""Bytes of a pattern's beginning that an automaton may hold alone."""


class Search(Protocol):
    """Finds patterns. longest: bytes of the longest one."""

    longest: int

    def matches(self, data: bytes) -> Iterator[tuple[tuple[Term, ...], int, int]]:
        """What each match stands for, where it starts and ends, by its end and then its start."""

    def expect(self, texts: Sequence[bytes]) -> None:
        """Look at short texts together, each of which the same thread searches next."""


def is_pattern(search: Search, data: bytes) -> bool:
    """Whether bytes are one of the patterns."""
    return any(end - start == len(data) for _, start, end in search.matches(data))


class Automaton:
    """Byte patterns with the terms each stands for; empty automata find nothing.

    The automaton itself holds the beginning of each pattern that no other one has; the rest is compared where the
    beginning stands. So its states grow with the patterns and not with their bytes.
    """

    def __init__(self, table: Table) -> None:
        self._patterns, self._terms = list(table), list(table.values())
        self._search = BytesAhoCorasick(beginnings(self._patterns)) if table else None
        self.longest = max(map(len, table), default=0)

    def matches(self, data: bytes) -> Iterator[tuple[tuple[Term, ...], int, int]]:
        """What each match stands for, where it starts and ends, by its end and then its start."""
        if self._search is None:
            return
        found = []
        for index, start, _ in self._search.find_matches_as_indexes(data, overlapping=True):
            pattern = self._patterns[index]
            if data.startswith(pattern, start):
                found.append((start + len(pattern), start, index))
        for end, start, index in sorted(found):
            yield self._terms[index], start, end

    def expect(self, texts: Sequence[bytes]) -> None:
        """As `Search.expect`: one search of each text is all there is to do."""


def beginnings(patterns: Sequence[bytes]) -> list[bytes]:
    """Of each of some different patterns a beginning that no other one has, or the whole."""
    ordered = sorted(range(len(patterns)), key=patterns.__getitem__)
    result = [b""] * len(patterns)
    before = b""
    for place, number in enumerate(ordered):
        pattern = patterns[number]
        behind = patterns[ordered[place + 1]] if place + 1 < len(ordered) else b""
        result[number] = next((pattern[:c] for c in _CUTS if _tell(pattern, c, before, behind)), pattern)
        before = pattern
    return result


def _tell(pattern: bytes, cut: int, before: bytes, behind: bytes) -> bool:
    beginning = pattern[:cut]
    return beginning != before[:cut] and beginning != behind[:cut]


def add(table: dict[_Key, tuple[Term, ...]], pattern: _Key, term: Term) -> None:
    """The plainest form of a key set is added first and names the pattern."""
    if pattern not in table:
        table[pattern] = _alone(term)
    elif all(name != term[0] for name, _ in table[pattern]):
        table[pattern] = (*table[pattern], term)


@lru_cache(maxsize=4096)
def _alone(term: Term) -> tuple[Term, ...]:
    """The same object for all patterns that stand for one term: there are hundreds of thousands of them."""
    return (term,)


_UNPARTED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\U0003ffff]{2,}")
"""Scripts that put no blanks between words, or that write particles behind a name: Thai, Burmese, Khmer, Chinese,
Japanese, Korean."""


def is_short(value: str) -> bool:
    """Whether a value would be found by chance in binary, or inside longer words."""
    return len(value) < SHORT_TEXT and not _UNPARTED.fullmatch(value)


def strong_writings(key_set: KeySet, given: str) -> tuple[str, ...]:
    """Of a value, and of it with the blanks that a source pads it with, what is searched anywhere, in all encodings."""
    value = given.strip() or given
    padded = value != given and value.isdigit() and len(value) < _STRONG_DIGITS
    found = () if key_set.weak or padded or is_short(value) else (value,)
    return (*found, given) if value != given and not key_set.weak and len(value) < _SURE else found


def _escaped(value: str) -> Iterator[tuple[Form, bytes]]:
    """A value that is too short to be searched in views, as files escape its signs. A `+` for a blank is no escape: it
    is in many texts.
    """
    found = [(Form.URL, text) for text in url_escaped(value) if "+" in value or "+" not in text]
    if not escape_free_text.are_all(value.encode()):
        found += [(Form.JSON, text) for text in json_escaped(value)]
        found += [(Form.HTML, text) for text in html_escaped(value)]
        found.append((Form.ESCAPED, value.replace('"', '""')))
        found.append((Form.ESCAPED, re.sub(r"[\\\"]", r"\\\g<0>", value)))
        found.append((Form.ESCAPED, re.sub(r"[\\\"']", r"\\\g<0>", value)))
        signs = sorted({sign for sign in value if not (sign.isalnum() or sign.isspace())})
        for escaped in (signs, *({sign, "\\"} for sign in signs)):  # a delimiter, in text of tables
            found.append((Form.ESCAPED, "".join(f"\\{sign}" if sign in escaped else sign for sign in value)))
    for form, text in dict.fromkeys((form, text.lower()) for form, text in found):
        if text != value.lower():
            yield form, text.encode()


def digested_texts(given: str) -> tuple[str, ...]:
    """What of a value is digested: it, without the blanks that pad it, and the digits of a phone, as advertisers do."""
    value = given.strip() or given
    number = bare_number(value)
    return tuple(dict.fromkeys((given, value, *((number, f"+{number}") if number else ()))))


@dataclass
class Tables:
    """Patterns by how they are searched.

    folded: in any case; exact; bounded: between boundaries; tiny: as whole cells; looks: as text looks in a view, near
    one of the anchors; digests: in hex; spaced: digits that other signs
    part; signed: how strong values look of which a sign may be escaped. ints: whole numbers; cells: whole cells.
    """

    folded: Table = field(default_factory=dict)
    exact: Table = field(default_factory=dict)
    bounded: Table = field(default_factory=dict)
    tiny: Table = field(default_factory=dict)
    looks: Table = field(default_factory=dict)
    signed: set[bytes] = field(default_factory=set)
    anchors: dict[bytes, set[bytes]] = field(default_factory=dict)
    digests: Table = field(default_factory=dict)
    spaced: dict[str, tuple[Term, ...]] = field(default_factory=dict)
    ints: dict[int, list[str]] = field(default_factory=dict)
    cells: dict[str, list[str]] = field(default_factory=dict)

    def add(self, key_set: KeySet, given: str) -> None:
        """Every form of one value. One that the source pads with blanks stands elsewhere without them."""
        self.plain(key_set, given)
        self.digested(key_set, given)
        self.written(key_set, given)

    def plain(self, key_set: KeySet, given: str) -> None:
        """The value as it is, in any case and in pieces, between boundaries, as a cell and as a number."""
        name, value = key_set.name, given.strip() or given
        for text in dict.fromkeys((given, value)):
            if name not in self.cells.setdefault(text, []):
                self.cells[text].append(name)
        number = bare_number(value)
        plain = value.lstrip("0") if value.isdigit() else ""
        for digits in (value, number or "", plain if len(plain) >= _PADDED_DIGITS else ""):
            if _INTEGER.match(digits) and name not in self.ints.setdefault(int(digits), []):
                self.ints[int(digits)].append(name)
        digits = number or plain
        if not key_set.weak and len(digits) >= spaced_numbers.LEAST:
            add(self.spaced, digits, (name, Form.NUMBER))
        strong = strong_writings(key_set, given)
        if value not in strong:
            self._bounded(name, value)
        for text in (*strong, *(regrouped(value) if strong else ())):
            self._plain_text(name, text)
        for text in in_other_addresses(value) if strong else ():
            add(self.folded, text.encode().lower(), (name, Form.ESCAPED))
        self._phone(name, value)
        if number is not None:
            for text in (number, *scientific(number)):
                add(self.bounded, text.encode(), (name, Form.NUMBER))

    def digested(self, key_set: KeySet, given: str) -> None:
        """Digests of the value: in hex, as bytes and in base64."""
        name, value = key_set.name, given.strip() or given
        for text in digested_texts(given):
            for digest, form in digests(text):
                add(self.digests, digest.hex().encode(), (name, form))
                if form in SEALED and text in (given, value):
                    for pattern in (digest, *base64_alone(digest)):
                        add(self.exact, pattern, (name, form))
                    for shown in transcriptions.digest_in_pieces(digest):
                        add(self.folded, shown.encode(), (name, form))

    def show_digests(self) -> None:
        """Let digests in hex be searched in any case, behind all others."""
        for digest, terms in self.digests.items():
            for term in terms:
                add(self.folded, digest, term)

    def written(self, key_set: KeySet, given: str) -> None:
        """The value in all encodings and escapes."""
        for text in strong_writings(key_set, given):
            self._strong(key_set.name, text)
        self.of_its_kind(key_set, given)

    def of_its_kind(self, key_set: KeySet, given: str) -> None:
        """A UUID as bytes, and a number that is written with signs in other digits."""
        for text in strong_writings(key_set, given):
            self._uuid(key_set.name, text)
        number = bare_number(given.strip() or given)
        for text in fully_escaped_values.in_other_digits(number) if number is not None else ():
            add(self.folded, text.encode(), (key_set.name, Form.ESCAPED))

    def _plain_text(self, name: str, value: str) -> None:
        written = spellings(value)
        for spelling in written:
            add(self.folded, spelling.encode().lower(), (name, Form.TEXT))
        for spelling in written:
            self._as_it_looks(name, spelling.encode().lower())
        for spelling in turkish(value):
            add(self.folded, spelling.encode().lower(), (name, Form.TEXT))
        if _INTEGER.match(value) and len(value) > 1:
            for shown in scientific(value):
                add(self.bounded, shown.encode(), (name, Form.NUMBER))

    def _phone(self, name: str, value: str) -> None:
        """A phone as its own country writes it, in one piece and in pieces, and as an integer."""
        for digits in national_phone_numbers.national(value):
            add(self.bounded, digits.encode(), (name, Form.NUMBER))
            if len(digits) >= spaced_numbers.LEAST:
                add(self.spaced, digits, (name, Form.NUMBER))
            if digits[0] != "0" and name not in self.ints.setdefault(int(digits), []):
                self.ints[int(digits)].append(name)

    def _bounded(self, name: str, value: str) -> None:
        table = self.bounded if len(value) >= TINY_DIGITS or not value.isdigit() else self.tiny
        for spelling in spellings(value):
            text = spelling.encode().lower()
            add(table, text, (name, Form.TEXT))
            for written in escape_views.written(text):
                add(table, written, (name, Form.ESCAPED))
            for form, escaped in _escaped(spelling):
                add(table, escaped, (name, form))
        if _INTEGER.match(value) and len(value) > 1:
            for shown in scientific(value):
                add(table, shown.encode(), (name, Form.NUMBER))

    def _strong(self, name: str, value: str) -> None:
        for spelling in spellings(value):
            for escaped in url_escaped(spelling):
                add(self.folded, escaped.encode().lower(), (name, Form.URL))
            for escaped in json_escaped(spelling):
                add(self.folded, escaped.encode().lower(), (name, Form.JSON))
            for escaped in html_escaped(spelling):
                add(self.folded, escaped.encode().lower(), (name, Form.HTML))
            for wide in utf16(spelling):
                add(self.folded, wide.lower(), (name, Form.UTF16))
            for escaped in fully_escaped_values.escaped(spelling):
                add(self.folded, escaped.encode().lower(), (name, Form.ESCAPED))
            for page in fully_escaped_values.in_code_pages(spelling) | fully_escaped_values.misread(spelling):
                add(self.folded, page.lower(), (name, Form.TEXT))
            for header in fully_escaped_values.in_old_headers(spelling):
                add(self.folded, header.lower(), (name, Form.ESCAPED))
            for text in transcriptions.of_text(spelling):
                add(self.folded, text.encode().lower(), (name, Form.ENCODED))
            add(self.folded, transcriptions.wide(spelling).lower(), (name, Form.UTF32))
            for data in transcriptions.of_bytes(spelling):
                add(self.exact, data, (name, Form.ENCODED))
            for cased in dict.fromkeys((spelling, spelling.lower(), spelling.upper())):
                add(self.folded, cased.encode().hex().encode(), (name, Form.HEX))
                for core in (*base64_cores(cased.encode()), *transcriptions.base64_of_base64(cased)):
                    add(self.exact, core, (name, Form.BASE64))
            for encoded, is_base64 in (
                *fully_escaped_values.wide_encoded(spelling),
                *fully_escaped_values.old_encoded(spelling),
            ):
                table = self.exact if is_base64 else self.folded
                add(table, encoded, (name, Form.BASE64 if is_base64 else Form.HEX))

    def _uuid(self, name: str, value: str) -> None:
        if (number := uuid_of(value)) is not None:
            for text in (str(number), number.hex):
                add(self.folded, text.encode(), (name, Form.UUID))
            for data in (number.bytes, number.bytes_le):  # the latter as .NET and SQL Server write it
                add(self.exact, data, (name, Form.UUID))
                for core in base64_cores(data):
                    add(self.exact, core, (name, Form.UUID))

    def _as_it_looks(self, name: str, text: bytes) -> None:
        looks = escape_views.alike(text)
        self.signed.add(looks)
        if not escape_views.is_altered(looks) or len(looks) < SHORT_TEXT:
            return
        add(self.folded, looks, (name, Form.ESCAPED))
        add(self.looks, looks, (name, Form.ESCAPED))
        anchors = escape_views.anchors(looks)
        for anchor in anchors:
            self.anchors.setdefault(anchor, set()).add(looks)
        for written in () if anchors else escape_views.written(looks):
            add(self.folded, written, (name, Form.ESCAPED))
