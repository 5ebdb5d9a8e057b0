"""What verification would find in a Delta table's log and folder, planning says, or a step takes it away."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kits.planted.delta import DELTA


def test_places_that_were_passed_over(tmp_path: Path) -> None:
    plants = DELTA.every(tmp_path / "template")
    assert DELTA.faults(tmp_path, {name: plants[name] for name in DELTA.quick}) == ""


@pytest.mark.slow
def test_every_place(tmp_path: Path) -> None:
    assert DELTA.faults(tmp_path, DELTA.every(tmp_path / "template")) == ""
