"""What an approval says of itself: which field is wrong, and which file it is about."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pii_tracer.config.estate_file import Policy
from pii_tracer.model.errors import ReviewError
from pii_tracer.review import approval, dsse
from tests.review.plans import NOW
from tests.review.test_review import KEY, LOADED, approved


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"reason": ""}, "reason"), ({"nonce": "short"}, "nonce"), ({"reason": "", "nonce": ""}, "reason")],
)
def test_a_field_that_is_no_field_is_named_and_nothing_is_signed(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(ReviewError) as caught:
        approved(**changes)
    assert caught.value.what == f"the approval has no valid `{field}`"
    assert caught.value.todo == "give it"


def test_the_statement_names_the_plan_file_and_its_digest_as_in_toto_does() -> None:
    statement = dsse.unseal(approved(), [KEY.public_key()]).statement
    assert statement["subject"] == [{"name": LOADED.name, "digest": {"sha256": LOADED.digest.removeprefix("sha256:")}}]
    assert statement["predicate"]["plan_id"] == LOADED.plan.plan_id


@pytest.mark.parametrize(
    ("changes", "signed", "production", "told"),
    [
        ({}, True, True, None),
        ({}, False, False, None),
        ({}, False, True, ("the approval is not signed", "sign it with a key of a trusted approver")),
        (
            {"approver": "as\u200bha"},
            True,
            True,
            (
                "the approver's name holds characters that cannot be seen",
                "write it without them, here and in the file of `--trusted`",
            ),
        ),
        ({"expires": NOW}, True, True, ("the approval would be expired already", "give a later date")),
        ({"expires": NOW + timedelta(seconds=1)}, True, True, None),
        ({"expires": NOW + timedelta(hours=2)}, True, True, None),
        (
            {"expires": NOW + timedelta(hours=2.5)},
            True,
            True,
            (
                "the approval is valid for 2.5 hours, and the policy allows 2 hours at most",
                "approve again, with fewer `--hours`",
            ),
        ),
    ],
)
def test_why_an_approval_counts_for_nothing(
    changes: dict[str, Any], signed: bool, production: bool, told: tuple[str, str] | None
) -> None:
    predicate = approval.ApprovalPredicate.model_validate(dsse.unseal(approved(), []).statement["predicate"])
    one = predicate.model_copy(update={"approved_at": NOW, "expires": NOW + timedelta(hours=1), **changes})
    policy = Policy(version=1, max_approval_hours=2)
    assert approval.unsound(one, policy, signed=signed, production=production) == told
