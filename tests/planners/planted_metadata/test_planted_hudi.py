"""What verification would find in a Hudi table's timeline and folder, planning says, or a step takes it away."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kits.planted.hudi import HUDI


def test_places_that_were_passed_over(tmp_path: Path) -> None:
    plants = HUDI.every(tmp_path / "template")
    assert HUDI.faults(tmp_path, {name: plants[name] for name in HUDI.quick}) == ""


@pytest.mark.slow
def test_every_place(tmp_path: Path) -> None:
    assert HUDI.faults(tmp_path, HUDI.every(tmp_path / "template")) == ""
