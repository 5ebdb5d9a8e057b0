"""The trigger that waits for the approvals of a plan."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from pii_tracer_airflow.approval_state import PlanFiles, approval_state
from pii_tracer_airflow.failures import translated


class ApprovalTrigger(BaseTrigger):
    """Fires when a plan is approved, when no approval can help any more, or at a time.

    The event only wakes the sensor up, which looks for itself. All that is known is in the arguments, so that a
    triggerer that starts again, or another one, goes on with it.

    seconds: between two looks. until: ISO 8601 with a time zone.
    """

    def __init__(
        self,
        *,
        estate_file: str,
        state: str,
        plan_file: str,
        trusted: str,
        policy: str | None,
        seconds: float,
        until: str,
    ) -> None:
        super().__init__()
        self.files = PlanFiles(estate_file, state, plan_file, trusted, policy)
        self.seconds = seconds
        self.until = until

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class and arguments."""
        arguments = {**asdict(self.files), "seconds": self.seconds, "until": self.until}
        return f"{type(self).__module__}.{type(self).__qualname__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look in a thread, so that the triggerer's other triggers are not held up."""
        said, end = "", datetime.fromisoformat(self.until)
        while True:
            found = await asyncio.to_thread(translated, lambda: approval_state(self.files))
            left = (end - datetime.now(timezone.utc)).total_seconds()
            if found.approved or found.hopeless or left <= 0:
                yield TriggerEvent({"plan_id": found.plan_id})
                return
            if found.missing != said:
                said = found.missing
                self.log.warning("%s is not approved yet: %s", found.plan_id, said)
            await asyncio.sleep(min(self.seconds, left))
