"""What an approval says of itself: which field is wrong, and which file it is about."""

from __future__ import annotations

from typing import Any

import pytest

from pii_tracer.model.errors import ReviewError
from pii_tracer.review import dsse
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
