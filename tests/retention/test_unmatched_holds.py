"""A hold that names nothing: what it means to keep may be what is about to go, so that nothing is touched."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.retention.hoard import Hoard, hold


@pytest.fixture
def hoard(tmp_path: Path) -> Hoard:
    made = Hoard(tmp_path, "lake")
    made.write()
    write_deltalake(tmp_path / "delta" / "t", pa.table({"uid": [1]}))
    return made


@pytest.mark.parametrize("command", ["sweep", "enforce"])
def test_nothing_is_touched_while_a_hold_names_nothing(
    hoard: Hoard, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hoard.write(holds=[hold("delta/typo")])
    assert hoard.command(command, "--apply") == 1
    told = capsys.readouterr().err
    assert "the hold h1 names delta/typo" in told
    assert "next:" in told
    assert not (hoard.base / "state" / "sweeps").exists()
    assert hoard.command(command, "--dry-run") in (0, 4)
    assert "the hold h1 names delta/typo" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["sweep", "enforce"])
def test_a_hold_on_something_else_of_the_estate_stops_nothing(hoard: Hoard, command: str) -> None:
    hoard.write(holds=[hold("delta/t")])
    assert hoard.command(command, "--apply") in (0, 4)
