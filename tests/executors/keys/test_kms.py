"""A person's own KMS key: pending until KMS has forgotten it, a cancelled deletion is no deletion. Strict stand-in."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from moto.core.exceptions import JsonRESTError
from moto.kms import models

from executors.context import ExecutionContext
from executors.keys.kms.key_deletion import KmsExecutor
from pii_tracer.lake.keys.kms.key_state import kms_key
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import EstateError, RunError
from pii_tracer.model.plan import Step
from pii_tracer.run.executor_protocol import PartlyDone, Progress
from tests.kmssupport import OTHER_REGION, REGION, StrictKms, strict_kms
from tests.review import plans

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=timezone.utc)


@pytest.fixture
def kms() -> Iterator[StrictKms]:
    with strict_kms() as running:
        yield running


def executor(kms: StrictKms) -> KmsExecutor:
    ctx: Any = ExecutionContext(None, Path(), None, lambda: kms.now)  # type: ignore[arg-type]
    return KmsExecutor(ctx)


def step(kms: StrictKms, action: Action, *keys: str) -> Step:
    parameters = {"kms_keys": list(keys), "region": REGION, "endpoint_url": kms.endpoint, "window_days": 7}
    return plans.step(f"c-keys/{action.value}", "c-keys", action=action, executor="kms", parameters=parameters)


def state(kms: StrictKms, key: str) -> str:
    return kms_key(key, REGION, kms.endpoint).state


def test_pending_is_not_done_until_kms_does_not_know_the_key(kms: StrictKms) -> None:
    key, works = kms.key(), executor(kms)
    schedule, wait = (step(kms, a, key) for a in (Action.KMS_SCHEDULE_DELETION, Action.KMS_AWAIT_DELETION))
    works.check(schedule, None)
    assert works.probe(schedule, None) is Progress.NOT_STARTED
    works.run(schedule, None)
    assert works.verify(schedule, None).ok
    assert works.run(schedule, None).facts["scheduled"][0]["was"] == "PendingDeletion"  # again: nothing happens
    assert not works.verify(wait, None).ok
    waiting = works.run(wait, None)
    assert waiting.waiting_until is not None
    assert abs(waiting.waiting_until - (kms.now + timedelta(days=7))) < timedelta(seconds=2)
    kms.advance(days=6)
    assert works.run(wait, None).waiting_until is not None
    kms.advance(days=2)
    assert works.run(wait, None).waiting_until is None
    assert works.verify(wait, None).ok
    assert state(kms, key) == "Deleted"


def test_a_cancelled_deletion_fails_and_is_not_repeated_blindly(kms: StrictKms) -> None:
    key, works = kms.key(), executor(kms)
    wait = step(kms, Action.KMS_AWAIT_DELETION, key)
    works.run(step(kms, Action.KMS_SCHEDULE_DELETION, key), None)
    kms.client().cancel_key_deletion(KeyId=key)
    with pytest.raises(RunError, match="cancelled: the first is Disabled"):
        works.run(wait, None)
    kms.client().enable_key(KeyId=key)
    with pytest.raises(RunError, match="cancelled: the first is Enabled"):
        works.run(wait, None)
    assert not works.verify(wait, None).ok
    assert state(kms, key) == "Enabled"


def test_replicas_go_first_and_the_primary_waits_for_them(kms: StrictKms) -> None:
    key, works = kms.key(MultiRegion=True), executor(kms)
    kms.client().replicate_key(KeyId=key.rsplit("/", 1)[1], ReplicaRegion=OTHER_REGION)
    found = kms_key(key, REGION, kms.endpoint)
    assert kms_key(found.replicas[0].key_id, OTHER_REGION, kms.endpoint) == found  # the same material: all or none
    assert [(r.region, r.state) for r in found.replicas] == [(OTHER_REGION, "Enabled")]
    works.run(step(kms, Action.KMS_SCHEDULE_DELETION, key), None)
    found = kms_key(key, REGION, kms.endpoint)
    assert (found.state, found.replicas[0].state) == ("PendingReplicaDeletion", "PendingDeletion")
    wait = step(kms, Action.KMS_AWAIT_DELETION, key)
    kms.advance(days=8)  # the replica is gone, and only now the primary's own days begin
    assert state(kms, key) == "PendingDeletion"
    assert works.run(wait, None).waiting_until is not None
    kms.advance(days=8)
    assert works.verify(wait, None).ok


def test_a_run_that_died_between_two_keys_goes_on_with_the_rest(kms: StrictKms) -> None:
    first, second = kms.key(), kms.key()
    schedule = step(kms, Action.KMS_SCHEDULE_DELETION, first, second)
    kms.client().schedule_key_deletion(KeyId=first, PendingWindowInDays=7)
    assert executor(kms).probe(schedule, None) is Progress.NOT_STARTED
    was = [told["was"] for told in executor(kms).run(schedule, None).facts["scheduled"]]
    assert was == ["PendingDeletion", "Enabled"]
    assert executor(kms).probe(schedule, None) is Progress.DONE


def test_a_key_that_is_refused_does_not_keep_the_others(kms: StrictKms, monkeypatch: pytest.MonkeyPatch) -> None:
    refused, other = kms.key(), kms.key()
    strict = models.KmsBackend.schedule_key_deletion

    def schedule(self: Any, key_id: str, pending_window_in_days: int) -> Any:
        if refused.endswith(self.any_id_to_key_id(key_id)):
            raise JsonRESTError("AccessDeniedException", "not allowed")
        return strict(self, key_id, pending_window_in_days)

    monkeypatch.setattr(models.KmsBackend, "schedule_key_deletion", schedule)
    with pytest.raises(PartlyDone, match="AccessDenied") as caught:
        executor(kms).run(step(kms, Action.KMS_SCHEDULE_DELETION, refused, other), None)
    assert [told["key"] for told in caught.value.facts["scheduled"]] == [other]
    assert (state(kms, refused), state(kms, other)) == ("Enabled", "PendingDeletion")


def test_grants_are_counted_and_an_unreachable_kms_is_no_answer(kms: StrictKms) -> None:
    key = kms.key()
    kms.client().create_grant(KeyId=key, GranteePrincipal="arn:aws:iam::123456789012:role/job", Operations=["Decrypt"])
    assert kms_key(key, REGION, kms.endpoint).grants == 1
    with pytest.raises(EstateError, match="does not answer"):
        kms_key(key, REGION, "http://127.0.0.1:9")
