"""A copy that no step looked at: the run is partial and says which, whatever its steps were."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pii_tracer.app.execution.attesting import attest_run
from pii_tracer.app.execution.plan_run import Ran
from pii_tracer.app.execution.run_view import how_far
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import CopyKind, Strategy
from pii_tracer.run.run_state import State
from pii_tracer.verify.verdicts import (
    NO_COPY,
    SINCE,
    ByteVerdict,
    CopyVerdict,
    RunVerdict,
    to_be_seen,
    with_since,
    with_unseen,
)
from tests.review.plans import copy, plan, step

LOOKED = RunVerdict(copies=(CopyVerdict(copy_id="c1", bytes=ByteVerdict(copy_id="c1", root="/", files=())),))
TAPE = copy("c3", kind=CopyKind.BACKUP, strategy=Strategy.CONFIRM)


def ended(copies: list[Any], steps: list[Any] | None = None, state: State = State.COMPLETE) -> Ran:
    made = plan(steps, copies)
    return cast(Ran, SimpleNamespace(state=SimpleNamespace(state=state), loaded=SimpleNamespace(plan=made)))


def test_a_copy_without_a_verdict_is_unverified_and_the_run_partial() -> None:
    ran = ended([copy("c1"), copy("c2")])
    verdict = with_unseen(LOOKED, to_be_seen(ran.loaded.plan))
    assert verdict.unverified == ("c2: the run has no verdict for it",)
    assert how_far(ran, LOOKED) is how_far(ran, verdict) is State.PARTIAL
    assert attest_run(ran, verdict, ()) is None


@pytest.mark.parametrize(
    ("copies", "steps", "state"),
    [
        ([copy("c1")], None, State.COMPLETE),
        ([copy("c1"), copy("c2", strategy=Strategy.EXEMPT)], None, State.COMPLETE),
        ([copy("c1"), TAPE], [step("c3/1", "c3", action=Action.BACKUP_CONFIRM)], State.COMPLETE),
        ([copy("c1"), TAPE], [], State.PARTIAL),
        ([copy("c1"), copy("c2", strategy=Strategy.BLOCKED)], None, State.PARTIAL),
        ([copy("c2")], None, State.PARTIAL),
    ],
)
def test_only_holds_and_persons_words_stand_for_a_verdict(copies: list[Any], steps: Any, state: State) -> None:
    assert how_far(ended(copies, steps), LOOKED) is state


def test_a_run_that_waits_is_not_called_partial() -> None:
    assert how_far(ended([copy("c2")], state=State.WAITING), LOOKED) is State.WAITING


def test_what_came_since_and_cannot_be_looked_at_makes_a_run_partial() -> None:
    """What was examined at planning and cannot be read is an exception of the attestation; what nobody saw is more."""
    unread = ("the bucket cannot be listed: AccessDenied",)
    since, examined = (
        ByteVerdict(copy_id=f"{name}s3://b/a/", root="s3://b/a/", files=(), unverified=unread)
        for name in (SINCE, NO_COPY)
    )
    ran = ended([copy("c1")])
    assert how_far(ran, with_since(LOOKED, [examined])) is State.COMPLETE
    late = with_since(LOOKED, [examined, since])
    assert late.unverified == (f"{SINCE}s3://b/a/: {unread[0]}",)
    assert how_far(ran, late) is State.PARTIAL
    assert attest_run(ran, late, [examined, since]) is None
