"""Invented persons and cells, drawn at random: a value in one of its forms, cut, wrapped, escaped, or not there."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import uuid
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from html.entities import codepoint2name
from random import Random
from urllib.parse import quote

import pyarrow as pa

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.value_encodings import digests, html_escaped, json_escaped, scientific, url_escaped, uuid_of
from pii_tracer.scan.value_forms import Patterns

NAMES = ("asha", "ipsita", "Nayak", "rao", "José", "Zoë", "O'Neil", "müller", "Chen", "Δημήτρης")
SIGNS = "ab1@.- \"';é\n\r\\%&=+\t>\0"


def person(draw: Random) -> tuple[str, bool]:
    """A value, and whether its key set is weak."""
    kind = draw.randrange(8)
    first, last, number = draw.choice(NAMES), draw.choice(NAMES), draw.randrange(10 ** draw.randrange(1, 11))
    values = (
        f"{first}.{last}{number % 100}@mail.example",
        str(number),
        f"+91 {number % 10**5:05d} {draw.randrange(10**5):05d}",
        f"{first} {last}",
        str(uuid.UUID(int=draw.getrandbits(128))),
        f"P-{number}",
        f"{first} {last}-{draw.choice(NAMES)} {number}",
        f"{number:06d}  ",
    )
    return values[kind], values[kind].isdigit() and draw.random() < 0.8


def patterns_of(*people: tuple[str, bool]) -> Patterns:
    """What is searched for them, a key set each."""
    return Patterns(
        KeySet(name=f"key{n}", origin=f"people.{n}", weak=weak, values=(("someone", value),))
        for n, (value, weak) in enumerate(people)
    )


def text(draw: Random, value: str) -> str:
    """A cell of text."""
    form = written(draw, value)
    for change in draw.sample((cut, wrapped, escaped, cased, other_signs, pieced), draw.randrange(3)):
        form = change(draw, form)
    if draw.random() < 0.1:
        form = ""
    return noise(draw) + form + noise(draw)


def noise(draw: Random) -> str:
    """What stands around."""
    return draw.choice(("", "", " ", '{"user": "', '"}', "id=", "".join(draw.choices(SIGNS, k=draw.randrange(9)))))


def written(draw: Random, value: str) -> str:
    """One of the forms that are searched, and some that are not."""
    raw = value.encode()
    digest, _ = draw.choice(list(digests(value)))
    forms: tuple[Callable[[], str], ...] = (
        lambda: value,
        lambda: value,
        lambda: value.strip(),
        lambda: draw.choice(sorted(url_escaped(value))),
        lambda: draw.choice(sorted(json_escaped(value))),
        lambda: draw.choice(sorted(html_escaped(value))),
        lambda: json.dumps({"a": json.dumps({"b": value})}),
        lambda: quote(quote(quote(value))),
        lambda: base64.b64encode(b"x" * draw.randrange(3) + raw + b"y" * draw.randrange(3)).decode(),
        lambda: base64.urlsafe_b64encode(raw).decode(),
        raw.hex,
        lambda: raw.hex().upper(),
        lambda: value.encode("utf-16-le").decode("latin-1"),
        digest.hex,
        lambda: base64.b64encode(digest).decode(),
        lambda: hashlib.sha256(raw).hexdigest(),
        lambda: "".join(c for c in value if c.isalnum()),
        lambda: draw.choice(scientific(value)) if value.isdigit() and len(value) > 1 else value,
        lambda: f"{value}.0",
        lambda: ((u := uuid_of(value)) and u.hex) or value[::-1],
    )
    return draw.choice(forms)()


def cut(draw: Random, form: str) -> str:
    """Cut at one end, or with a sign less."""
    at = draw.randrange(len(form) + 1)
    return draw.choice((form[:at], form[at:], form[:at] + form[at + 1 :]))


def wrapped(draw: Random, form: str) -> str:
    """Over ends of lines."""
    for _ in range(draw.randrange(1, 4)):
        at = draw.randrange(len(form) + 1)
        form = form[:at] + draw.choice(("\n", "\r\n", "=\n", "\\\n", "\n  ", "\n> ", "\n\n")) + form[at:]
    return form


ESCAPES: tuple[Callable[[str], str], ...] = (
    lambda c: "".join(f"%{b:02x}" for b in c.encode()),
    lambda c: "".join(f"%25{b:02X}" for b in c.encode()),
    lambda c: f"\\u{ord(c):04x}",
    lambda c: f"%u{ord(c):04x}",
    lambda c: f"\\\\u{ord(c):04x}",
    lambda c: f"\\x{ord(c) % 256:02x}",
    lambda c: f"\\u{{{ord(c):x}}}",
    lambda c: f"\\{ord(c) % 256:03o}",
    lambda c: f"\\{ord(c):04x}",
    lambda c: "".join(f"\\{b:02x}" for b in c.encode()),
    lambda c: f"\\{ord(c):x} ",
    lambda c: f"&#{ord(c)};",
    lambda c: f"&#x{ord(c):X};",
    lambda c: f"&amp;#{ord(c)};",
    lambda c: f"&{codepoint2name.get(ord(c), 'shy')};",
    lambda c: f"={ord(c) % 256:02X}",
    lambda c: "".join(f"={b:02X}" for b in c.encode()),
    lambda c: f"\\{c}",
    lambda c: f"[{c}]",
    lambda c: f"{c}=\n",
    lambda c: f"{c}\u00ad",
    lambda c: f"{c}&shy;",
    lambda c: f"{c}%E2%80%8B",
)
"""How programs write a sign down that they do not leave as it is, or hide one beside it."""


def escaped(draw: Random, form: str) -> str:
    """With escapes of some signs."""
    way, share = draw.choice(ESCAPES), draw.choice((0.1, 1.0))
    return "".join(
        way(c) if (not c.isalnum() and draw.random() < 2 * share) or draw.random() < share / 10 else c for c in form
    )


def cased(draw: Random, form: str) -> str:
    """In another case."""
    return draw.choice((form.upper(), form.lower(), form.title(), form.casefold(), form.swapcase()))


def other_signs(draw: Random, form: str) -> str:
    """With other blanks, dashes and quotes."""
    blank, dash, sign = draw.choice((" ", "\u00a0", "  ", "\t", "&nbsp;")), draw.choice("-‐–−"), draw.choice("'’`\"")
    return form.replace(" ", blank).replace("-", dash).replace("'", sign)


def pieced(draw: Random, form: str) -> str:
    """With signs between its letters that nobody sees, or with other signs between its digits."""
    if draw.random() < 0.5:
        sign, share = draw.choice(("\u200b", "\u00ad", "\u2060", "\ufeff")), draw.random()
        return "".join(c + (sign if draw.random() < share else "") for c in form)
    groups = draw.choice((2, 3, 4, 5))
    digits = "".join(c for c in form if c.isdigit())
    return draw.choice((" ", "-", ".", ",", ") ")).join(
        digits[at : at + groups] for at in range(0, len(digits), groups)
    )


def packed(draw: Random, value: str) -> bytes:
    """A cell of bytes, which may be the value as a number, or its text."""
    digits = "".join(c for c in value if c.isdecimal() and c.isascii()) or "7"
    n, order = int(digits) % 10**18, draw.choice(("big", "little"))
    cell = n.to_bytes(draw.choice((8, 8, max(1, (n.bit_length() + 7) // 8))), order)
    double = struct.pack(draw.choice((">d", "<d")), n)
    return draw.choice((cell, cell, double, cell[1:], cell + b"\1", value.encode()[: draw.randrange(9)]))


def number(draw: Random, value: str) -> pa.Array:
    """A column of numbers, days or instants, which may hold the value."""
    digits = "".join(c for c in value if c.isdecimal() and c.isascii()) or "7"
    n = (int(digits) % 10**18) * draw.choice((1, 1, 1, -1)) + draw.choice((0, 0, 0, 1))
    others = [draw.randrange(-(10**12), 10**12) for _ in range(3)]
    kinds: tuple[Callable[[], pa.Array], ...] = (
        lambda: pa.array([n, *others], pa.int64()),
        lambda: pa.array([n % 2**31, 5, None], pa.int32()),
        lambda: pa.array([abs(n), 2**64 - 1, *map(abs, others)], pa.uint64()),
        lambda: pa.array([n % 2**15, 1], pa.int16()),
        lambda: pa.array([float(n), n + 0.5, float("nan"), float("inf"), 1e300], pa.float64()),
        lambda: pa.array([float(n % 10**6), 0.25, None], pa.float32()),
        lambda: pa.array([Decimal(n), None, Decimal("1.5")], pa.decimal128(38, 2)),
        lambda: pa.array([Decimal(n % 10**9), Decimal("0.001")], pa.decimal128(18, 4)),
        lambda: pa.array([Decimal(10**30 + n), Decimal(n)], pa.decimal128(38, 0)),
        lambda: pa.array([date.fromordinal(1 + abs(n) % 3_000_000), date(1990, 5, 17)], pa.date32()),
        lambda: pa.array([n, *others], pa.timestamp("us")),
    )
    return draw.choice(kinds)()
