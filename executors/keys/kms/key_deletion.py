"""The executor of persons' own KMS keys: schedules their deletion, and is not done before KMS has forgotten them.

A key that is pending deletion can be given back by anybody with the right to cancel, so pending is never done.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from executors.context import ExecutionContext
from pii_tracer.common.plurals import counted
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.keys.key_facts import KmsKey
from pii_tracer.lake.keys.kms.key_state import (
    GONE,
    PENDING,
    kms_client,
    kms_key,
)
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import EstateError, RunError
from pii_tracer.model.plan import Copy, Step
from pii_tracer.run.executor_protocol import (
    Check,
    Outcome,
    PartlyDone,
    Progress,
)

LOOK_AGAIN = timedelta(hours=1)


class KmsExecutor:
    """Executor `kms`."""

    name = "kms"

    def __init__(self, ctx: ExecutionContext) -> None:
        self._ctx = ctx

    def check(self, step: Step, copy: Copy | None) -> None:
        """Raise `RunError` when KMS does not tell the keys' states."""
        list(self._keys(step))

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        """Schedule the deletions, or see whether they are over."""
        if step.action is Action.KMS_SCHEDULE_DELETION:
            return self._schedule_all(step)
        left = [key for key in self._keys(step) if key.state != GONE]
        cancelled = [key for key in left if key.state not in PENDING]
        if cancelled:
            raise RunError(
                f"the deletion of {counted(len(cancelled), 'key')} was cancelled: the first is {cancelled[0].state}",
                where=cancelled[0].key_id,
                todo="find out who cancelled the deletion, schedule the deletion again, then run `pii-tracer resume`",
            )
        dates = [key.deletion_date for key in left if key.deletion_date is not None]
        until = max([*dates, self._ctx.now() + LOOK_AGAIN]) if left else None
        return Outcome({"states": [f"{key.key_id}: {key.state}" for key in left]}, waiting_until=until)

    def verify(self, step: Step, copy: Copy | None) -> Check:
        """Ask KMS again: scheduled means pending or gone, deleted means that KMS does not know the key."""
        fine = {GONE, *PENDING} if step.action is Action.KMS_SCHEDULE_DELETION else {GONE}
        wrong = tuple(f"{key.key_id} is {key.state}" for key in self._keys(step) if key.state not in fine)
        return Check(not wrong, wrong)

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """Only KMS knows."""
        return Progress.DONE if self.verify(step, copy).ok else Progress.NOT_STARTED

    def _keys(self, step: Step) -> Iterator[KmsKey]:
        """The keys of the step, each after its replicas: a primary is deleted after them."""
        region, endpoint = step.parameters["region"], step.parameters["endpoint_url"]
        for key_id in step.parameters["kms_keys"]:
            try:
                key = kms_key(key_id, region, endpoint)
            except EstateError as error:
                raise RunError(error.what, where=error.where, todo=error.todo) from None
            yield from key.replicas
            yield key

    def _schedule_all(self, step: Step) -> Outcome:
        """Every key by itself: one that is refused does not keep the others."""
        told, refused = [], []
        for key in self._keys(step):
            try:
                told.append(self._schedule(step, key))
            except RunError as error:
                refused.append(error)
        if refused:
            first = refused[0]
            what = f"{counted(len(refused), 'key')} could not be scheduled: {first.what}"
            raise PartlyDone(what, {"scheduled": told}, where=str(first.where), todo=str(first.todo))
        return Outcome({"scheduled": told})

    def _schedule(self, step: Step, key: KmsKey) -> dict[str, Any]:
        from botocore.exceptions import BotoCoreError, ClientError

        told = {"key": key.key_id, "was": key.state}
        if key.state == GONE or key.state in PENDING:
            return told
        days = int(step.parameters["window_days"])
        try:
            client = kms_client(key.region, step.parameters["endpoint_url"])
            answer = client.schedule_key_deletion(KeyId=key.key_id, PendingWindowInDays=days)
        except (ClientError, BotoCoreError) as error:
            raise RunError(
                f"KMS does not schedule the deletion: {error_code(error)}",
                where=key.key_id,
                todo="give the run the permission kms:ScheduleKeyDeletion, then run `pii-tracer resume`",
            ) from None
        date: datetime | None = answer.get("DeletionDate")
        return told | {"deletion_date": date.isoformat() if date else None}
