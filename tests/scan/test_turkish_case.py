"""Case as Turkish changes it: the capital of `i` has a dot, that of `ı` has none."""

from __future__ import annotations

import pytest

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.value_forms import build_patterns
from tests.scan.support import scan


@pytest.mark.parametrize(
    ("value", "written", "twin"),
    [
        ("Ashavini Raovich", "ASHAVİNİ RAOVİCH", "ASHAVİNA RAOVİCH"),
        ("Ashavini Raovich", "ashavi\u0307ni\u0307 raovi\u0307ch", "ashavi\u0307na raovi\u0307ch"),
        ("asha.raovich@example.org", "ASHA.RAOVİCH@EXAMPLE.ORG", "ASHA.RAOVİCK@EXAMPLE.ORG"),
        ("Ali Yıldırım", "ALİ YILDIRIM", "ALİ YILDIRAM"),
        ("İbrahim Çelikoğlu", "I\u0307brahim Çelikoğlu", "I\u0307brahim Çelikoğla"),
        ("İbrahim Çelikoğlu", "İBRAHİM ÇELİKOĞLU", "İBRAHİM ÇELİKOĞLA"),
    ],
)
def test_in_turkish_case(value: str, written: str, twin: str) -> None:
    patterns = build_patterns([KeySet(name="c.n", origin="n", weak=False, values=(("s", value),))])
    assert scan("a.csv", f"n\n{written}\n".encode(), patterns).hits
    assert not scan("a.csv", f"n\n{twin}\n".encode(), patterns).hits
