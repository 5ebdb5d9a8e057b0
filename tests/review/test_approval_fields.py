"""What an approval says of itself: which field is wrong, and which file it is about."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pii_tracer.config.estate_file import Policy
from pii_tracer.model.errors import NotApproved, ReviewError
from pii_tracer.model.plan import digest_of
from pii_tracer.review import approval, dsse
from tests.review.plans import DIGEST, NOW
from tests.review.test_review import ASHA, KEY, LOADED, approved, check


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"approver": ""}, "approver"),
        ({"role": ""}, "role"),
        ({"reason": ""}, "reason"),
        ({"nonce": "short"}, "nonce"),
        ({"reason": "", "nonce": ""}, "reason"),
    ],
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


def test_a_key_that_was_withdrawn_since_signs_for_no_new_run_and_a_run_that_began_goes_on() -> None:
    withdrawn = ASHA.model_copy(update={"valid_until": NOW + timedelta(minutes=30)})
    envelope = approved()
    assert len(check([envelope], trusted=[withdrawn], now=NOW + timedelta(minutes=29))) == 1
    with pytest.raises(NotApproved, match="the signer's key is not valid at this time"):
        check([envelope], trusted=[withdrawn])
    (one,) = check([envelope], trusted=[withdrawn], begun=[digest_of(envelope)])
    assert one.digest == digest_of(envelope)
    late = ASHA.model_copy(update={"valid_from": NOW + timedelta(minutes=30)})
    with pytest.raises(NotApproved, match="the signer's key is not valid at this time"):
        check([envelope], trusted=[late])


def test_what_is_no_approval_is_refused_as_such() -> None:
    with pytest.raises(NotApproved) as caught:
        check([b"{}"])
    assert caught.value.what == "an approval cannot be read: the file was changed, or is not an approval"
    assert caught.value.todo == "approve again"


def held(envelope: bytes, **changes: Any) -> tuple[approval.Approval, ...]:
    fields = {"policy_digest": DIGEST, "production": True, "now": NOW + timedelta(hours=1), **changes}
    return approval.holding(LOADED, [envelope], [ASHA], Policy(version=1, production_approvers=2), **fields)


def test_an_approval_holds_by_itself_however_many_there_must_be() -> None:
    (one,) = held(approved())
    assert (one.predicate.approver, one.signed) == ("asha", True)
    for envelope, changes, words in (
        (approved(), {"now": NOW + timedelta(hours=24)}, "has expired"),
        (approved(), {"policy_digest": "sha256:other"}, "the policy was changed"),
        (approved(key=None), {}, "is not signed"),
    ):
        with pytest.raises(NotApproved, match=words):
            held(envelope, **changes)
    assert len(held(approved(key=None), production=False)) == 1


def test_outside_production_one_approver_suffices() -> None:
    policy = Policy(version=1, production_approvers=2)
    assert len(check([approved(key=None)], policy=policy, production=False)) == 1
