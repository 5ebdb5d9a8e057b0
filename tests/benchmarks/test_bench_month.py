"""The benchmark of a month goes through the store as it is, and fails where a deadline is missed that could be kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.bench_month import lived, most_kept


@pytest.mark.parametrize(("capacity", "late"), [(30, False), (5, True)])
def test_a_small_month_keeps_every_deadline_that_can_be_kept(tmp_path: Path, capacity: int, late: bool) -> None:
    month = lived(20, 12, capacity, tmp_path)
    assert len(month.asked) == len(month.planned) == 240
    assert len(month.asked) - len(month.late) == most_kept(month, capacity)
    assert (bool(month.late), month.late - month.named) == (late, set())
