"""Facts of a verdict as the run report shows them."""

from __future__ import annotations

from pii_tracer.cli.runview import _bytes, _copy_note
from pii_tracer.model import CopyKind, Strategy
from pii_tracer.verify.verdict import ByteVerdict, CopyVerdict, RunVerdict, SameDigits
from reports.run_html import render_run_html
from reports.views import CopyState
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
