"""What is said of other people's rows, compared with those from before the run."""

from __future__ import annotations

import pytest

from pii_tracer.verify.row_checks import compare
from pii_tracer.verify.verdicts import Baseline, StateBaseline


def rows(*states: tuple[str, int, str]) -> Baseline:
    return Baseline(
        copy_id="c",
        states=tuple(StateBaseline(state=s, rows_total=n + 1, rows_person=1, checksum=c) for s, n, c in states),
    )


BEFORE = rows(("current", 8, "1:2"), ("tag t", 3, "5:6"))


@pytest.mark.parametrize(
    ("after", "told"),
    [
        pytest.param(BEFORE, None, id="the same"),
        pytest.param(rows(("current", 10, "3:4"), ("tag t", 3, "5:6")), "2 rows of other people more", id="more"),
        pytest.param(
            rows(("current", 8, "3:4"), ("tag t", 3, "5:6")), "0 rows of other people are gone or", id="other"
        ),
        pytest.param(rows(("current", 7, "3:4"), ("tag t", 9, "7:8")), "1 row of other people is gone", id="fewer"),
        pytest.param(rows(("current", 9, "3:4")), "3 rows of other people are gone", id="a tag is gone"),
    ],
)
def test_rows_that_somebody_added_are_not_called_gone(after: Baseline, told: str | None) -> None:
    """Nobody could tell from `0 rows are gone or changed` what had happened, nor what to do about it."""
    seen = compare(BEFORE, after)
    assert (seen.finding is None) is (told is None)
    assert (told or "") in (seen.finding or "")
    assert seen.equal is (told is None)
