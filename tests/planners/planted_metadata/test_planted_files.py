"""What verification would find beside the rows of bare files, planning says, or a step takes it away."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kits.planted.files import planted


@pytest.mark.parametrize("kind", ["orc", "avro"])
def test_places_that_were_passed_over(tmp_path: Path, kind: str) -> None:
    made = planted(kind)
    plants = made.every(tmp_path / "template")
    assert made.faults(tmp_path, {name: plants[name] for name in made.quick}) == ""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "orc", "avro", "csv", "json"])
def test_every_place(tmp_path: Path, kind: str) -> None:
    made = planted(kind)
    assert made.faults(tmp_path, made.every(tmp_path / "template")) == ""
