"""Signs of ordinary addresses, phones and names as escapes that no writer needs, alone and mixed."""

from __future__ import annotations

import itertools
import random
import re

import pytest

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.value_forms import build_patterns
from tests.scan.support import scan

VALUES = (
    "asha.raovich@example.org",
    "a.rao@gmail.com",
    "asha_rao-iyer+x@mail.example",
    "+91 98450 12345",
    "Ashavini Raovich",
)
TWINS = (
    "asha.raovick@example.org",
    "a.rai@gmail.com",
    "asha_rao-iyer+y@mail.example",
    "+91 98450 12354",
    "Ashavina Raovich",
)
ESCAPES = {
    "backslash": lambda c: "\\" + c,
    "two backslashes": lambda c: "\\\\" + c,
    "percent": lambda c: f"%{ord(c):02X}",
    "percent, small": lambda c: f"%{ord(c):02x}",
    "percent twice": lambda c: f"%25{ord(c):02X}",
    "units": lambda c: f"\\u{ord(c):04x}",
    "hex": lambda c: f"\\x{ord(c):02x}",
    "octal": lambda c: f"\\{ord(c):03o}",
    "css": lambda c: f"\\{ord(c):x} ",
    "number": lambda c: f"&#{ord(c)};",
    "hex number": lambda c: f"&#x{ord(c):x};",
    "quoted-printable": lambda c: f"={ord(c):02X}",
}  # fmt: skip
PATTERNS = {
    value: build_patterns([KeySet(name="c.v", origin="v", weak=False, values=(("s", value),))]) for value in VALUES
}


def found(value: str, text: str) -> bool:
    return bool(scan("a.txt", f"x {text} y\n".encode(), PATTERNS[value]).hits)


def signs(value: str) -> list[int]:
    return [at for at, sign in enumerate(value) if not sign.isalnum()]


@pytest.mark.parametrize("escape", ESCAPES)
def test_any_signs_of_any_value(escape: str) -> None:
    """Each choice of its signs is escaped, the others are left; a twin's value is nobody's here."""
    for value, twin in zip(VALUES, TWINS, strict=True):
        for size in range(1, len(signs(value)) + 1):
            for chosen in itertools.combinations(signs(value), size):
                text = "".join(ESCAPES[escape](c) if at in chosen else c for at, c in enumerate(value))
                assert found(value, text), text
                assert not found(value, "".join(ESCAPES[escape](c) if at in chosen else c for at, c in enumerate(twin)))


def test_in_any_mixture() -> None:
    """Of escapes that one reader undoes: quoted-printable and CSS are languages of their own."""
    mixed = [made for name, made in ESCAPES.items() if name not in ("css", "quoted-printable")]
    drawn = random.Random(7)
    for value in VALUES:
        for _ in range(60):
            text = "".join(c if c.isalnum() or drawn.random() < 0.3 else drawn.choice(mixed)(c) for c in value)
            assert found(value, text), text


@pytest.mark.parametrize(
    "text",
    [
        re.escape(VALUES[0]),
        "asha[.]raovich@example[.]org",
        "asha&period;raovich&commat;example&period;org",
        *(
            f"asha.rao{unseen}vich@example.org"
            for unseen in ("&shy;", "&#8203;", "&#173;", "&#xAD;", "\\u200b", "%C2%AD")
        ),
        "select concat('asha.raovich','@','example.org')",
        "select 'asha.raovich'||chr(64)||'example.org'",
        "asha.\x1b[31mraovich\x1b[0m@example.org",
        '"asha.raovich"&amp;"@example.org"',
    ],
)
def test_writings_of_programs(text: str) -> None:
    assert found(VALUES[0], text)
    assert not found(VALUES[0], text.replace("vich", "vick"))


@pytest.mark.parametrize("text", ["x\\-y asha\\.raovich\\@mail.example", "x\\-y asha\\.raovich\\@example\\.net"])
def test_longer_and_other_addresses(text: str) -> None:
    assert not found(VALUES[0], text)
