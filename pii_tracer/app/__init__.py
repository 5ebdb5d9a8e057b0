"""The use cases, as functions for Python programs (docs/python-api.md); the commands call the same ones.

Each is imported when it is first asked for: `import pii_tracer.app` starts no Spark and loads no engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pii_tracer.app.cost_estimate.estate_estimate import estimate
    from pii_tracer.app.erased_persons.returned_persons import Recheck, recheck
    from pii_tracer.app.estate_readiness.new_reading import readiness
    from pii_tracer.app.execution.run_status import RunStatus, status
    from pii_tracer.app.execution.whole_run import RunOutcome, apply, resume
    from pii_tracer.app.intake.due_requests_plan import DuePlan, plan_due
    from pii_tracer.app.intake.request_lists import Added, add_requests
    from pii_tracer.app.intake.request_states import list_requests
    from pii_tracer.app.lineage.lineage_harvest import harvest
    from pii_tracer.app.model_review.changed_models import ReviewInputs, review_models
    from pii_tracer.app.plan_verification import PlanVerification, verify
    from pii_tracer.app.planning.erasure_plan import WrittenPlan, plan
    from pii_tracer.app.planning.estate_inventory import inventory
    from pii_tracer.app.proof.attestation_checks import attest_verify
    from pii_tracer.app.review.plan_approval import approve
    from pii_tracer.app.review.plan_check import check
    from pii_tracer.app.settings import Settings
    from pii_tracer.readiness.readiness_reading import Readiness

__all__ = [
    "Added",
    "DuePlan",
    "PlanVerification",
    "Readiness",
    "Recheck",
    "ReviewInputs",
    "RunOutcome",
    "RunStatus",
    "Settings",
    "WrittenPlan",
    "add_requests",
    "apply",
    "approve",
    "attest_verify",
    "check",
    "estimate",
    "harvest",
    "inventory",
    "list_requests",
    "plan",
    "plan_due",
    "readiness",
    "recheck",
    "resume",
    "review_models",
    "status",
    "verify",
]

_PLACES = {
    "Added": "intake.request_lists",
    "DuePlan": "intake.due_requests_plan",
    "PlanVerification": "plan_verification",
    "Readiness": "estate_readiness.new_reading",
    "Recheck": "erased_persons.returned_persons",
    "ReviewInputs": "model_review.changed_models",
    "RunOutcome": "execution.whole_run",
    "RunStatus": "execution.run_status",
    "Settings": "settings",
    "WrittenPlan": "planning.erasure_plan",
    "add_requests": "intake.request_lists",
    "apply": "execution.whole_run",
    "approve": "review.plan_approval",
    "attest_verify": "proof.attestation_checks",
    "check": "review.plan_check",
    "estimate": "cost_estimate.estate_estimate",
    "harvest": "lineage.lineage_harvest",
    "inventory": "planning.estate_inventory",
    "list_requests": "intake.request_states",
    "plan": "planning.erasure_plan",
    "plan_due": "intake.due_requests_plan",
    "readiness": "estate_readiness.new_reading",
    "recheck": "erased_persons.returned_persons",
    "resume": "execution.whole_run",
    "review_models": "model_review.changed_models",
    "status": "execution.run_status",
    "verify": "plan_verification",
}
"""The module of each name, below this package."""


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
