"""The operators: plan, apply, verify, recheck, readiness. All through `pii_tracer.app`; none of them approves."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException, TaskDeferred

from pii_tracer_airflow.base import TracerOperator, optional_path
from pii_tracer_airflow.progress import TaskProgress

if TYPE_CHECKING:
    from pii_tracer.app import RunOutcome, WrittenPlan

LONGEST_WAIT = timedelta(days=1)
"""A waiting run is gone on with at its date, and once a day before: a person may have ended the wait."""
SHORTEST_WAIT = timedelta(minutes=1)
"""Each look starts Spark."""


class _Planning(TracerOperator):
    """What both ways to plan have in common; the parameters are those of `pii_tracer.app.plan`."""

    template_fields: Sequence[str] = (*TracerOperator.template_fields, "planner", "reason", "policy", "waivers")

    def __init__(
        self,
        *,
        planner: str,
        retention: str = "retain",
        reason: str = "",
        policy: str | None = None,
        waivers: str | None = None,
        budget: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.planner = planner
        self.retention = retention
        self.reason = reason
        self.policy = policy
        self.waivers = waivers
        self.budget = budget

    def options(self, progress: TaskProgress) -> dict[str, Any]:
        """What `plan` and `plan_due` take alike."""
        return {
            "planner": self.planner,
            "retention": self.retention,
            "reason": self.reason,
            "policy": optional_path(self.policy),
            "waivers": optional_path(self.waivers),
            "budget": self.budget,
            "show": progress,
        }

    def written(self, made: WrittenPlan) -> dict[str, Any]:
        """The plan for the tasks behind this one.

        Raises:
            AirflowFailException: it cannot be applied.
        """
        for line in made.idle_waivers:
            self.log.warning(line)
        if not (made.plan.complete and made.plan.applyable):
            gaps = [gap.id for gap in made.plan.gaps if gap.waiver is None]
            raise AirflowFailException(
                f"{made.plan.plan_id} is incomplete: gaps {', '.join(gaps) or 'none'}; or a copy has no way\n"
                f"  where: {made.path}\n  next:  `pii-tracer show` lists them; close or waive each, then plan again"
            )
        return _facts_of_plan(made.path)


class PlanOperator(_Planning):
    """Makes the plan for request files. A plan with open gaps fails the task, and is not tried again.

    requests: paths of request files. A person's key is nothing for a DAG file: it stands in the request file.
    """

    template_fields: Sequence[str] = (*_Planning.template_fields, "requests")

    def __init__(self, *, requests: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.requests = requests

    def work(self, context: Context, progress: TaskProgress) -> dict[str, Any]:
        """Plan."""
        from pii_tracer.app import plan

        return self.written(plan(self.settings(), [Path(one) for one in self.requests], **self.options(progress)))


class PlanDueOperator(_Planning):
    """Makes one plan for the requests of the request store that are due first; skips where there is none to make.

    The plan file has the name of this task's run. Where an earlier try made it and died, that plan is taken: its
    requests count as planned, and no other plan would have them. No plan file is ever written over.
    """

    def work(self, context: Context, progress: TaskProgress) -> dict[str, Any]:
        """Plan what is due."""
        from pii_tracer.app import list_requests, plan_due

        settings, number = self.settings(), 1
        while (out := self._place(context, number)).exists():
            earlier = _facts_of_plan(out)
            mine = (request for request in list_requests(settings) if request.plan == earlier["plan_id"])
            if any(request.state.value != "received" for request in mine):
                self.log.info("%s was made by an earlier try", earlier["plan_id"])
                return earlier
            number += 1  # its requests were given back since, or it never got as far as to have them
        due = plan_due(settings, out=out, **self.options(progress))
        for request, why in due.set_aside.items():
            self.log.warning("%s is set aside: %s", request, why)
        if due.written is None:
            when = f"; the next batch begins at {due.next_batch.isoformat()}" if due.next_batch else ""
            raise AirflowSkipException(f"no request is to be planned, {len(due.set_aside)} are set aside{when}")
        return self.written(due.written)

    def _place(self, context: Context, number: int) -> Path:
        ti = context["ti"]
        name = "\n".join([ti.dag_id, ti.run_id, ti.task_id, str(ti.map_index)])
        digest = hashlib.sha256(name.encode()).hexdigest()
        return Path(self.state) / "plans" / f"airflow-{digest[:16]}-{number}.plan.json"


class ApplyOperator(TracerOperator):
    """Runs an approved plan, or goes on with its run.

    A run that waits (retention, restore, a confirmation) defers until its date and is gone on with then. One that was
    killed or failed in a step is gone on with by the next try. Residue, drift and what an approval or the policy
    refuses fail the task at once.
    """

    template_fields: Sequence[str] = (*TracerOperator.template_fields, "plan_file", "trusted", "policy")

    def __init__(self, *, plan_file: str, trusted: str, policy: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.plan_file = plan_file
        self.trusted = trusted
        self.policy = policy

    def work(self, context: Context, progress: TaskProgress) -> dict[str, Any]:
        """Begin the run or go on with it; say what it came to."""
        from pii_tracer.model.errors import ExitCode, Waiting

        try:
            outcome = self._run(progress)
        except Waiting as waits:
            self.log.info(str(waits))
            self._wait(waits.until or datetime.now(timezone.utc))
        code, result = outcome.exit_code, outcome.result
        self.log.info("%s: %s, %s", result["plan_id"], result["state"], result["report"])
        if code is ExitCode.DONE:
            return _facts_of_run(result)
        if code is ExitCode.WAITING:
            self._wait(datetime.fromisoformat(result["waiting_until"]))
        words = _open_ends(result) + f"\n  where: {result['report']}\n  exit code: {int(code)}"
        if code is ExitCode.PARTIAL:
            raise AirflowException(f"{words}\n  next:  the next try goes on with the run; see `pii-tracer status`")
        raise AirflowFailException(f"{words}\n  next:  {_TODO[code.name]}")

    def go_on(self, context: Context, event: Any) -> dict[str, Any]:
        """The time that the run waited for has come."""
        return self.perform(context)

    def _run(self, progress: TaskProgress) -> RunOutcome:
        from pii_tracer.app import apply, check, resume, status
        from pii_tracer.model.errors import UsageError

        settings, plan_file, policy = self.settings(), Path(self.plan_file), optional_path(self.policy)
        plan_id = check(settings, plan_file, policy=policy).plan_id
        try:
            run = status(settings.state, plan_id)[0]
        except UsageError:  # there is no such run
            run = None
        if run is None or (run.last is None and run.problem is None):
            return apply(settings, plan_file, policy=policy, trusted=Path(self.trusted), show=progress)
        self.log.info("%s has begun: %d of its steps are done", plan_id, run.done)
        return resume(settings.state, plan_id, show=progress)

    def _wait(self, until: datetime) -> NoReturn:
        from airflow.providers.standard.triggers.temporal import DateTimeTrigger

        now = datetime.now(timezone.utc)
        moment = min(max(until, now + SHORTEST_WAIT), now + LONGEST_WAIT)
        self.log.info("the run waits until %s; it is looked at again at %s", until.isoformat(), moment.isoformat())
        raise TaskDeferred(trigger=DateTimeTrigger(moment=moment), method_name="go_on")


class VerifyOperator(TracerOperator):
    """Looks for the persons of a plan again, in rows and in bytes. Residue fails the task at once."""

    template_fields: Sequence[str] = (*TracerOperator.template_fields, "plan_file")

    def __init__(self, *, plan_file: str, read_all: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.plan_file = plan_file
        self.read_all = read_all

    def work(self, context: Context, progress: TaskProgress) -> dict[str, Any]:
        """Look."""
        from pii_tracer.app import verify
        from pii_tracer.model.errors import ExitCode

        looked = verify(self.settings(), Path(self.plan_file), read_all=self.read_all, show=progress)
        facts = _facts_of_run(looked.as_json())
        if looked.exit_code is ExitCode.DONE:
            return facts
        words = _open_ends(looked.as_json()) + f"\n  exit code: {int(looked.exit_code)}"
        if looked.exit_code is ExitCode.PARTIAL:
            raise AirflowException(f"{words}\n  next:  make the places readable, or let the next try look again")
        raise AirflowFailException(f"{words}\n  next:  {_TODO[looked.exit_code.name]}")


class RecheckOperator(TracerOperator):
    """Looks whether erased persons are back, and which holds have lapsed. Either fails the task at once."""

    def work(self, context: Context, progress: TaskProgress) -> dict[str, Any]:
        """Look."""
        from pii_tracer.app import recheck
        from pii_tracer.model.errors import ExitCode

        found = recheck(self.settings())
        for place in found.not_looked_at:
            self.log.warning("not looked at: %s", place)
        for one in found.back:
            self.log.error("back: %s is in %s again, erased on %s", one.subject, one.source, one.erased_at.date())
        for due in found.due:
            self.log.error("a hold has lapsed: plan again for %s (%s)", ", ".join(due.requests), due.plan_id)
        if found.exit_code is not ExitCode.DONE:
            raise AirflowFailException(
                f"{len(found.back)} erased persons are back, {len(found.due)} holds have lapsed\n"
                f"  exit code: {int(found.exit_code)}\n"
                "  next:  find the job that brought them back, and plan for them again"
            )
        again = found.look_again_on
        return {
            "back": 0,
            "due": 0,
            "not_looked_at": len(found.not_looked_at),
            "look_again_on": again.isoformat() if again else None,
        }


class ReadinessOperator(TracerOperator):
    """Takes a reading: could a request of today be answered? A reading without a yes fails the task at once."""

    def work(self, context: Context, progress: TaskProgress) -> dict[str, Any]:
        """Take it."""
        from pii_tracer.app import readiness
        from pii_tracer.model.errors import ExitCode

        found = readiness(self.settings(), show=progress)
        for finding in found.findings:
            self.log.warning("%s: %s (%s)", finding.kind.value, finding.where, finding.owner)
        if found.exit_code is not ExitCode.DONE:
            no = "a plan made now would be incomplete or late"
            why = no if found.answer.value == "no" else "some places were not searched, and only a plan can tell"
            raise AirflowFailException(
                f"not ready: {why}; score {found.score.points} of 100\n"
                f"  exit code: {int(found.exit_code)}\n  next:  `pii-tracer readiness` says what to do for each finding"
            )
        return {"ready": found.ready, "score": found.score.points, "number": found.number}


_TODO = {
    "RESIDUE": "see the report for the places; treat them, then plan again",
    "DRIFT": "the world is not what was approved: plan again, and have that plan approved",
    "INCOMPLETE": "the plan left copies out: plan for them, too",
}
"""What a person does next, by the name of the exit code of a task that is not tried again."""


def _facts_of_plan(path: Path) -> dict[str, Any]:
    """What tasks behind this one may need of a plan file (docs/plan-format.md)."""
    plan = json.loads(path.read_bytes())
    requests = plan["requests"]
    listed = isinstance(requests, list)
    return {
        "plan_id": plan["plan_id"],
        "plan_file": str(path),
        "requests": [request["id"] for request in requests] if listed else [],  # more than a thousand are packed
        "request_count": len(requests) if listed else requests["count"],
        "copies": len(plan["copies"]),
        "finish": plan["totals"]["finish"],
        "deadline": plan["totals"]["deadline"],
    }


def _facts_of_run(result: Mapping[str, Any]) -> dict[str, Any]:
    """What tasks behind this one may need of a final object. Names of places stay in the report."""
    kept = ("plan_id", "state", "copies_total", "copies_erased", "rows_erased", "bystander_rows_lost")
    counted = ("residue", "unverified")
    files = ("attestation", "report")
    return {
        **{name: result[name] for name in kept},
        **{name: len(result[name]) for name in counted},
        **{name: result[name] for name in files},
    }


def _open_ends(result: Mapping[str, Any]) -> str:
    """What a final object says is not done, in one line."""
    counted = ("residue", "unverified", "failed", "drift", "never_started", "left_out")
    found = [f"{name} {len(result[name])}" for name in counted if result.get(name)]
    steps = [f"{one['step']}: {one['reason']}" for one in result.get("failed", ())]
    return "; ".join([f"{result['plan_id']}: {', '.join(found) or result['state']}", *steps])
