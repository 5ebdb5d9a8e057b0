"""Text of one byte a character: a value's own letters count, whatever else stands in the file."""

from __future__ import annotations

import pytest

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.decode.text import as_single_bytes
from pii_tracer.scan.folder_scan import scan_bytes
from pii_tracer.scan.value_forms import build_patterns

NAME = "Žižek–Œuvre"
PATTERNS = build_patterns([KeySet(name="n", origin="n", weak=False, values=(("p", NAME),))])


@pytest.mark.parametrize("beside", [b"plain", b"one byte that has no character: \x81", "Zoë".encode("cp1252")])
def test_a_name_is_found_beside_any_byte(beside: bytes) -> None:
    data = b"name,x\n" + NAME.encode("cp1252") + b"," + beside + b"\n"
    assert scan_bytes("a.csv", data, PATTERNS).hits
    assert not scan_bytes("a.csv", data.replace("Œ".encode("cp1252"), b"o"), PATTERNS).hits


def test_every_byte_is_a_character_of_its_own() -> None:
    every = bytes([*b"text " * 200, *range(0x80, 0x100)])
    text = as_single_bytes(every)
    assert text is not None
    assert len(set(text[-128:])) == 128
    assert text[-96:] == every[-96:].decode("latin-1")
    assert text[-128] == "€"
