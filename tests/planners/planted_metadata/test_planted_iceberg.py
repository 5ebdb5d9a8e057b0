"""What verification would find in an Iceberg table's metadata and folder, planning says, or a step takes it away."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kits.planted.iceberg import ICEBERG


def test_places_that_were_passed_over(tmp_path: Path) -> None:
    plants = ICEBERG.every(tmp_path / "template")
    assert ICEBERG.faults(tmp_path, {name: plants[name] for name in ICEBERG.quick}) == ""


@pytest.mark.slow
def test_every_place(tmp_path: Path) -> None:
    assert ICEBERG.faults(tmp_path, ICEBERG.every(tmp_path / "template")) == ""
