"""A value that is both escaped and broken over two lines: in a mail's quoted-printable, in a quoted cell, in a dump."""

from __future__ import annotations

import quopri
from collections.abc import Callable, Iterator

import pytest

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.folder_scan import scan_bytes
from pii_tracer.scan.value_forms import Patterns, build_patterns

VALUES = ("Siobhan O'Ferro", "Zoë O'Neil-Chen", "siobhan.o'ferro@mail.example", "+91 98450 12345", "Jo Rao")
BEFORE = "x" * 60 + " "


def sought(value: str) -> Patterns:
    return build_patterns([KeySet(name="k", origin="t.k", weak=False, values=(("subj_1", value),))])


def cuts(written: str, end: str) -> Iterator[str]:
    """The text broken at each place with two letters that are no escape on both sides."""
    for at in range(3, len(written) - 3):
        if not set("'\\&#;39") & set(written[at - 2 : at + 2]):
            yield f"{BEFORE}{written[:at]}{end}{written[at:]} and more\n"


@pytest.mark.parametrize("value", VALUES[:3])
@pytest.mark.parametrize(
    ("quoted", "end"),
    [
        (lambda value: value.replace("'", "''"), "\n"),
        (lambda value: value.replace("'", "''"), "\r\n"),
        (lambda value: value.replace("'", "\\'"), "\\\n"),
        (lambda value: value.replace("'", "&#39;"), "\n"),
    ],
)
def test_a_quote_before_or_behind_a_break(value: str, quoted: Callable[[str], str], end: str) -> None:
    written = quoted(value)
    for text in cuts(written, end):
        assert scan_bytes("a.txt", text.encode(), sought(value)).strong, text


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("every_sign", [False, True])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_quoted_printable_broken_at_every_place(value: str, every_sign: bool, end: bytes) -> None:
    for before in range(76 - 3 * len(value), 76):
        text = quopri.encodestring(b"x" * before + b" " + value.encode() + b" and more", quotetabs=every_sign)
        if every_sign:
            text = text.replace(b"'", b"=27") if b"=\n27" not in text else text
        mail = b"Content-Transfer-Encoding: quoted-printable\n\n" + text
        assert scan_bytes("a.eml", mail.replace(b"\n", end), sought(value)).strong, text


@pytest.mark.parametrize(
    "before",
    [
        r"\u003c",
        r"\x3c",
        r"\n",
        r"\r",
        r"\t",
        r"\f",
        r"\v",
        r"\074",
        r"\\n",
        r"\\u003c",
        "%3C",
        "%253C",
        "%u003C",
        "=3D",
    ],
)
@pytest.mark.parametrize("name", ["Siobhan Ferro", "Annette"])
def test_a_value_behind_an_escape_is_found_broken_as_well_as_whole(before: str, name: str) -> None:
    for broken in (name, f"{name[:5]}\n{name[5:]}"):
        assert scan_bytes("a.txt", f"{BEFORE}{before}{broken} and more".encode(), sought(name)).strong, broken


@pytest.mark.parametrize(
    "text",
    [
        "Content-Transfer-Encoding: quoted-printable\n\nto Siobh=\nan=20O'Ferrol and more",
        f"{BEFORE}Siobh\nan O''Ferrol",
        f"{BEFORE}nSiobh\nan O'Ferro",
        f"{BEFORE}u003cSiobh\nan O'Ferro",
    ],
)
def test_somebody_else_in_the_same_place_is_none(text: str) -> None:
    assert not scan_bytes("a.txt", text.encode(), sought("Siobhan O'Ferro")).strong
