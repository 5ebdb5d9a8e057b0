"""The sensor that lets no plan through that is not approved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from typing import Any

from airflow.sdk import BaseSensorOperator, Context
from airflow.sdk.exceptions import AirflowFailException, AirflowSensorTimeout, TaskDeferred

from pii_tracer_airflow.approval_state import PlanFiles, approval_state
from pii_tracer_airflow.failures import translated
from pii_tracer_airflow.triggers import ApprovalTrigger


class ApprovalSensor(BaseSensorOperator):
    """Waits until enough trusted people have signed a plan, by the policy. It always defers: no worker is held.

    trusted: the file of trusted approvers and their keys. policy: `policy.yaml` beside the estate file, if none is
    given. `poke_interval` and `timeout` are those of every sensor. The approvals are the files beside the plan.
    """

    template_fields: Sequence[str] = ("estate_file", "state", "plan_file", "trusted", "policy")
    ui_color = "#fdf3d6"

    def __init__(
        self, *, estate_file: str, state: str, plan_file: str, trusted: str, policy: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.estate_file = estate_file
        self.state = state
        self.plan_file = plan_file
        self.trusted = trusted
        self.policy = policy

    def execute(self, context: Context) -> dict[str, Any]:
        """Look once; wait in a trigger for what is missing."""
        return self._look((datetime.now(timezone.utc) + timedelta(seconds=self.timeout)).isoformat())

    def look_again(self, context: Context, event: dict[str, Any], until: str) -> dict[str, Any]:
        """The trigger woke the task up. What counts is what is there now."""
        return self._look(until)

    def _look(self, until: str) -> dict[str, Any]:
        files = PlanFiles(self.estate_file, self.state, self.plan_file, self.trusted, self.policy or None)
        found = translated(lambda: approval_state(files))
        if found.approved:
            self.log.info("%s is approved", found.plan_id)
            return {"plan_id": found.plan_id, "plan_file": self.plan_file, "approved": True}
        if found.hopeless:
            raise AirflowFailException(f"the policy refuses {found.plan_id}, whoever approves it: {found.missing}")
        if datetime.now(timezone.utc) >= datetime.fromisoformat(until):
            raise AirflowSensorTimeout(f"{found.plan_id} was not approved in time: {found.missing}")
        self.log.info("%s is not approved yet: %s", found.plan_id, found.missing)
        trigger = ApprovalTrigger(**asdict(files), seconds=self.poke_interval, until=until)
        raise TaskDeferred(trigger=trigger, method_name="look_again", kwargs={"until": until})
