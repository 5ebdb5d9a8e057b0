"""Whether a plan is approved: its signatures and the policy, asked as `apply` will ask them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class PlanFiles:
    """What decides on an approval, as paths. policy: None for `policy.yaml` beside the estate file."""

    estate_file: str
    state: str
    plan_file: str
    trusted: str
    policy: str | None


@dataclass(frozen=True)
class ApprovalState:
    """approved: nothing is missing. hopeless: no approval could help; the plan or its files must change first.

    missing: what is missing, in words that hold no value of a person.
    """

    plan_id: str
    approved: bool
    hopeless: bool
    missing: str


def approval_state(files: PlanFiles) -> ApprovalState:
    """Ask the policy without and with the approvals beside the plan.

    An approval that does not hold (expired, of another policy, by an unknown key) counts for nothing and is waited out:
    its signer can replace it.

    Raises:
        PiiTracerError: plan, estate file, policy or trusted keys cannot be read.
    """
    from pii_tracer.app import Settings, check
    from pii_tracer.model.errors import NotApproved

    settings, plan_file = Settings(Path(files.estate_file), Path(files.state)), Path(files.plan_file)
    policy = Path(files.policy) if files.policy else None
    without = check(settings, plan_file, policy=policy)
    if without.denied:
        denied = [item.finding.message for item in without.denied]
        return ApprovalState(without.plan_id, False, True, "; ".join(denied))
    try:
        found = check(settings, plan_file, policy=policy, trusted=Path(files.trusted))
    except NotApproved as error:
        return ApprovalState(without.plan_id, False, False, str(error))
    denied = [item.finding.message for item in found.denied]
    return ApprovalState(found.plan_id, not denied, False, "; ".join(denied))
