"""Names of files and objects that tell whom they are about."""

from __future__ import annotations

import pytest

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.folder_scan import name_tells
from pii_tracer.scan.value_forms import build_patterns

STRONG = KeySet(name="u.email", origin="email", weak=False, values=(("r", "Asha.Rao@clinic.example"),))
WEAK = KeySet(name="u.uid", origin="uid", weak=True, values=(("r", "8841302"),))


@pytest.mark.parametrize(
    ("name", "tells"),
    [
        ("exports/asha.rao@clinic.example/1.parquet", True),
        ("exports/Asha.Rao%40clinic.example.json", True),
        ("exports/user_id=8841302/part-0.parquet", True),
        ("exports/8841302/part-0.parquet", True),
        ("exports/part-8841302-c000.parquet", False),  # file names are full of numbers
        ("exports/2026-11-20.parquet", False),
    ],
)
def test_a_name_tells_or_does_not(name: str, tells: bool) -> None:
    assert name_tells(name, build_patterns((STRONG, WEAK))) is tells
