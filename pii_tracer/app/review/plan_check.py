"""A plan against the policy."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pii_tracer.app.settings import Settings, moment
from pii_tracer.review.policy_check_report import CheckReport


def check(
    settings: Settings, plan_file: Path, *, policy: Path | None = None, trusted: Path | None = None
) -> CheckReport:
    """Everything that the rules look at, and what they say. trusted: the approvals beside the plan are checked too.

    Raises:
        ReviewError, ConfigError: plan, policy, estate or trusted file cannot be read.
        NotApproved: `trusted` is given and an approval beside the plan does not hold.
    """
    from pii_tracer.app.execution.approvals import signers
    from pii_tracer.app.intake.planned_requests import no_values, other_wishes
    from pii_tracer.app.planning.plan_files import key_sets_at_hand, manifest_path
    from pii_tracer.config.estate_file import file_digest
    from pii_tracer.review.plan_file import load_plan
    from pii_tracer.review.policy_check_report import report_of
    from pii_tracer.review.policy_rules import evaluate

    loaded = load_plan(plan_file)
    rules, policy_file = settings.policy(policy)
    estate = settings.estate()
    production = estate.environment == "production"
    files = {
        "policy_digest": policy_file,
        "estate_digest": settings.estate_file,
        "subjects_digest": manifest_path(plan_file),
    }
    digests = {name: file_digest(path) for name, path in files.items() if path.exists()}
    sealed = digests.get("subjects_digest") == loaded.plan.subjects_digest  # of another plan is a finding
    values = partial(key_sets_at_hand, settings, loaded.plan, plan_file) if sealed else no_values
    now = moment(None)
    findings = evaluate(
        loaded.plan,
        rules,
        production=production,
        now=now,
        approvers=signers(loaded, plan_file, trusted, rules, digests["policy_digest"], production, now)
        if trusted
        else None,
        digests=digests,
        holds=estate.holds,
        other_wishes=other_wishes(settings, loaded.plan, values),
    )
    return report_of(loaded, findings, plan_file=str(plan_file), policy_file=str(policy_file))
