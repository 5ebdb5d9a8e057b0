"""Somebody else's e-mail address, told from a value that is a part of it, in decoded text."""

from __future__ import annotations

import re

HEAD = 64
"""A longer local part has at most so many characters in all (RFC 5321, 4.5.3.1.1)."""

RUN = frozenset(b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+")
_LOCAL = RUN | frozenset(b"._%-")
_ENDS = frozenset(b"\x01\t\n\r\"'(),/:;<=>[]{|}&")
"""What parts whole values: quotes, brackets, separators."""

QUOTED_PRINTABLE = re.compile(rb"=[0-9a-f]{2}", re.IGNORECASE)
_HEAD = re.compile(rb"(?:[a-z0-9]+[._+-])*[a-z]+\.?", re.IGNORECASE)
_ADDRESS = re.compile(rb".+(?:@|%40)[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z0-9-]*[a-z0-9]", re.IGNORECASE | re.DOTALL)

_GENERIC = b"com|net|org|edu|gov|mil|int|info|biz"
_SECOND = b"ac|co|com|ed|edu|go|gob|gouv|gov|gv|ind|info|mil|ne|net|nom|or|org|web"
"""Under which many countries give out domains."""
_COUNTRIES = b"""ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs bt bw by
bz ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es et eu fi fj fk fm fo fr ga
gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir is it je jm jo jp ke kg kh
ki km kn kp kr kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx my
mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se sg
sh si sk sl sm sn so sr ss st sv sx sy sz tc td tf tg th tj tk tl tm tn to tr tt tv tw tz ua ug uk us uy uz va vc ve vg
vi vn vu wf ws ye yt za zm zw""".split()
"""Country-code domains (https://www.iana.org/domains/root/db)."""
_FILES = frozenset(b"ac ai bz cc gs in io la md mk ml mm mo ms pm ps py sc sh so st tf vi ws".split())
"""Of these the ones in which names of files end, too: `rao@x.example.md` may be a file about her."""

_TAIL = re.compile(
    rb"\.(?:" + _GENERIC + rb"|" + b"|".join(c for c in _COUNTRIES if c not in _FILES) + rb"|"
    rb"(?:" + _SECOND + rb")\.(?:" + b"|".join(_COUNTRIES) + rb"))(?![a-zA-Z0-9._%+@-])"
)


def of_another(data: bytes, start: int, end: int, *, cut: bool = False) -> bool:
    """Whether the match is only a part of another's e-mail address: its end (`asha.rao@x.example` for `rao@x.example`)
    or its beginning, where the domain goes on (`rao@x.example.br`, `rao@x.example.com.au`).

    Told of whole values only: a cell, or what quotes, brackets or separators part from the rest; in a sentence, the
    dot may be its end. Never told where the value may have been joined to something: behind `-`, `_`, `+` or a digit (a
    composite key, a numbered list), or behind an escape, whose letters are no text (`\\nrao@…`, `%3Crao@…`). What goes
    on behind the value must be the end of a domain that is known as one: a country's, with or without what stands
    before it in many (`.co.uk`), or a generic one; not in a path's own names, which have endings.

    cut: the text is a bound that may end where its value goes on.
    """
    if not any(at in data[start + 1 : end] for at in (b"@", b"%40")):
        return False
    first, behind = _begin(data, start), end
    tail = _TAIL.match(data, end)
    if tail and not (cut and tail.end() == len(data)) and _ADDRESS.fullmatch(data, start, end):
        behind = tail.end()
    if first is None or (first == start and behind == end):
        return False
    left, right = first, behind
    while left and data[left - 1] == 32:
        left -= 1
    while right < len(data) and data[right] == 32:
        right += 1
    if left and (data[left - 1] not in _ENDS or QUOTED_PRINTABLE.match(data, left - 1, start)):
        return False
    while right < len(data) and data[right] == 92:  # packed JSON escapes its quotes; before a letter it is an escape
        right += 1
    if right < len(data) and data[right] not in _ENDS:
        return False
    return behind == end or _closed(data[left - 1 : left] if left else b"", data[right : right + 1])


def _begin(data: bytes, start: int) -> int | None:
    """Where the address begins of which the match is a part; None where the match may be joined to what precedes it."""
    if data[start] not in RUN:
        return start if not start or data[start - 1] in _ENDS | {32} else None
    first = start
    while first and start - first <= HEAD and data[first - 1] in _LOCAL:
        first -= 1
    if first == start:
        return start
    return first if start - first <= HEAD and _HEAD.fullmatch(data, first, start) else None


def _closed(before: bytes, behind: bytes) -> bool:
    """Whether what stands around an address that goes on leaves no doubt of its end: not `=`, which may be a soft line
    break (quoted-printable), nor the name of a file or object.
    """
    return before != b"/" and behind != b"=" and (behind != b"/" or before == b"=")
