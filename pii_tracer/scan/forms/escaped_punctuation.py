"""Signs of a value that are written as escapes though nobody has to: the dot of an address, the plus of a phone.

Around such an escape the text is looked at with all escapes undone. Escapes of signs are common, so it counts only
behind the letters that a value has before a sign, and where all else of the value is near.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from ahocorasick_rs import BytesAhoCorasick, MatchKind

from pii_tracer.scan.forms import escape_views, escaped_letters
from pii_tracer.scan.forms.altered_value_anchors import in_order
from pii_tracer.scan.forms.escape_views import View, replaced, undone, windows

_LAYERS = 4
_BEFORE = 4
"""So many letters before a sign are compared, where there are as many."""
_MOST = 64
"""Where more values have the same letters before a sign, each place counts."""

_UNSEEN = tuple(
    lead
    for plain in (
        *(b"&shy;", b"&zwj;", b"&zwnj;", b"&ZeroWidthSpace;", b"&NoBreak;", b"&#173", b"&#xad", b"&#820", b"&#x200"),
        *(b"&amp;shy;", b"&amp;#173", b"&amp;#xad", b"&amp;#820", b"&amp;#x200", b"\\u00ad", b"\\u200", b"\\xad"),
        *(b"%c2%ad", b"%e2%80%8", b"%25c2%25ad", b"%25e2%2580%258", b"\\u{ad}", b"\\u{200"),
    )
    for lead in dict.fromkeys((plain, re.sub(rb"(?<=[%x0{&])[a-f][0-9a-f]|[0-9]e", lambda m: m[0].upper(), plain)))
)
_UNSEEN_LEADS = BytesAhoCorasick(_UNSEEN, matchkind=MatchKind.LeftmostFirst)
_BEGIN = (b"\\", b"%", b"&", b"=", b"[")
"""How every escape of a sign begins."""

_BEHIND_WORD = re.compile(rb"(?<=[A-Za-z0-9])[\\%&=\[]")
_RUN = re.compile(rb"[a-z0-9]+")
_AFTER_RUN = re.compile(rb"[a-z0-9]+(?=[^a-z0-9])")
_PLUS = re.compile(rb"\+")
_CLASS = re.compile(rb"\[([.@+-])\]")
_WORDS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")


class SignEscapes:
    """Finds where a value may stand with signs of it escaped. Holds values: never printed, never stored."""

    def __init__(self, looks: Iterable[bytes]) -> None:
        """looks: the values as they look, folded."""
        values: dict[bytes, list[list[bytes]]] = defaultdict(list)
        self._around = 0
        for text in looks:
            self._around = max(self._around, escape_views.reach(text))
            for before in {run.group()[-_BEFORE:] for run in _AFTER_RUN.finditer(text)}:
                values[before].append(_RUN.findall(text))
        self._leads = BytesAhoCorasick([before + sign for before in values for sign in _BEGIN]) if values else None
        self._runs: list[list[list[bytes]]] = [runs if len(runs) <= _MOST else [[]] for runs in values.values()]

    @property
    def runs(self) -> set[tuple[bytes, ...]]:
        """Of each value the letters and digits, in pieces, that stand in a text in which a sign of it is escaped."""
        return {tuple(runs) for values in self._runs for runs in values}

    def views(self, data: bytes) -> Iterator[tuple[int, View]]:
        """The parts of a text around such escapes, folded and with all escapes undone: where each begins, its look."""
        for low, high in windows(self._places(data), self._around, len(data)):
            window = data[low:high].lower()
            plain = View(window, list(range(len(window) + 1)))
            done = {plain.data}
            for bare in _readings(plain):
                view = escape_views.made_alike(bare)
                if view.data not in done:
                    done.add(view.data)
                    yield low, view

    def _places(self, data: bytes) -> list[tuple[int, int]]:
        if not self._around or not any(sign in data for sign in _BEGIN):
            return []
        unseen = _UNSEEN_LEADS.find_matches_as_indexes(data)
        found = [(start, end) for _, start, end in unseen if start and data[start - 1] in _WORDS]
        folded = data.lower() if self._leads else b""
        for number, start, end in self._leads.find_matches_as_indexes(folded, overlapping=True) if self._leads else ():
            near = folded[max(0, start - self._around) : end + self._around]
            if any(in_order(runs, near) for runs in self._runs[number // len(_BEGIN)]):
                found.append((start, end))
        return sorted(found)


def stand_in(data: bytes) -> bool:
    """Whether one may stand behind a word in a text: many signs look like one."""
    return any(sign in data for sign in _BEGIN) and _BEHIND_WORD.search(data) is not None


def unseen_stand_in(data: bytes) -> bool:
    """Whether an escape of a sign that nobody sees stands in a word: then no word of a value needs to stand there."""
    return any(start and data[start - 1] in _WORDS for _, start, _ in _UNSEEN_LEADS.find_matches_as_indexes(data))


def _readings(plain: View) -> Iterator[View]:
    """As languages read it that do not agree on an escape."""
    bare = undone(plain, _LAYERS)
    yield bare
    if b"+" in bare.data:  # for a blank, in forms of the web
        yield replaced(_PLUS, lambda _: b" ", bare)
    if b"=" in plain.data:
        yield undone(escape_views.printable(plain), _LAYERS)
    if b"\\" in plain.data:
        yield from (undone(view, _LAYERS) for view in escaped_letters.readings(plain))
    if b"[" in plain.data:
        yield replaced(_CLASS, lambda sign: sign.group(1), bare)
