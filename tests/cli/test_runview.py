"""Facts of a verdict as the run report shows them."""

from __future__ import annotations

from pii_tracer.app.execution.run_view import _bytes, _copy_note
from pii_tracer.model.datasets import CopyKind, Strategy
from pii_tracer.verify.verdicts import (
    ByteVerdict,
    CopyVerdict,
    HeldValue,
    RunVerdict,
    SameDigits,
)
from reports.run.run_html import render_run_html
from reports.run.run_views import CopyState
from tests.reports.example import example_plan, example_run


def test_same_digits_are_told_by_the_copy_s_name() -> None:
    same = SameDigits(copy_id="c-lake.prod.payments", column="merchant_id", files=6, count=218)
    seen = ByteVerdict(copy_id="c-lake.prod.payments", root="lake", files=(), same_digits=(same,))
    verdict = RunVerdict(copies=(CopyVerdict(copy_id="c-lake.prod.payments", rows=None, bytes=seen),))
    check = _bytes(verdict, {"c-lake.prod.payments": "lake.prod.payments"})
    assert check is not None
    assert check.other_meaning == ("lake.prod.payments, column merchant_id: 218 times in 6 files",)
    page = render_run_html(example_run().model_copy(update={"bytes_checked": check}))
    assert page.count("Same digits, other meaning") == 1
    assert check.other_meaning[0] in page


def test_what_the_numbers_of_a_copy_mean_is_said() -> None:
    copies = example_plan().copies
    rebuilt = next(c for c in copies if c.strategy is Strategy.REBUILD)
    assert _copy_note(rebuilt, CopyState.ERASED, 0) == "rebuilt"
    assert _copy_note(rebuilt, CopyState.NOT_VERIFIED, 0) == ""
    replica = next(c for c in copies if c.kind is CopyKind.REPLICA).model_copy(update={"found": None})
    assert _copy_note(replica, CopyState.ERASED, 15) == "versions"
    assert _copy_note(replica, CopyState.ERASED, 0) == ""


def test_what_a_hold_keeps_in_columns_is_told_apart() -> None:
    fields = {"copy_id": "c-lake.prod.payments", "key_set": "user.pan", "files": 2, "count": 3}
    values = (HeldValue(column="pan", **fields), HeldValue(column=None, **fields))
    seen = ByteVerdict(copy_id="c-lake.prod.payments", root="lake", files=(), held=values)
    verdict = RunVerdict(copies=(CopyVerdict(copy_id="c-lake.prod.payments", bytes=seen),))
    check = _bytes(verdict, {"c-lake.prod.payments": "lake.prod.payments"})
    assert check is not None
    assert check.held == (
        "lake.prod.payments, column pan: user.pan, 3 times in 2 files",
        "lake.prod.payments, where no column is named: user.pan, 3 times in 2 files",
    )
    page = render_run_html(example_run().model_copy(update={"bytes_checked": check}))
    assert "Kept by a hold" in page
    assert check.held[1] in page


def test_a_masked_copy_is_not_counted_as_erased() -> None:
    run = example_run()
    first = next(c for c in run.counted if c.state is CopyState.ERASED and not run.hanging_from(c.id))
    masked = tuple(c.model_copy(update={"state": CopyState.MASKED}) if c is first else c for c in run.copies)
    after = run.model_copy(update={"copies": masked})
    assert (after.erased, after.exempt) == (run.erased - 1, run.exempt + 1)
