"""The whole of a run: approvals, lease, baseline, steps, verification, deletion log, attestation, report, result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pii_tracer.cli.doctor import foreign_packages
from pii_tracer.cli.runs import RunFolder, RunInfo, folder_of
from pii_tracer.cli.settings import Settings
from pii_tracer.config import file_digest
from pii_tracer.errors import Drift, NotApproved, PlanIncomplete, Refused
from pii_tracer.review.approval import Approval, consumed_by, verify_approvals
from pii_tracer.review.keys import load_trusted
from pii_tracer.review.planfile import LoadedPlan, load_plan
from pii_tracer.review.policy import enforce, evaluate


def now() -> datetime:
    """The clock of real runs, in UTC."""
    return datetime.now(timezone.utc)


def start_run(
    settings: Settings,
    plan_file: Path,
    policy: Path | None,
    approvals: Sequence[Path],
    trusted: Path | None,
    **more: Any,
) -> RunFolder:
    """Check everything that can be checked before anything is touched, and make the run's folder.

    Raises:
        PlanIncomplete, PolicyDenied, NotApproved, Drift, Refused: nothing was started.
    """
    loaded = load_plan(plan_file)
    if not loaded.plan.complete or not loaded.plan.applyable:
        raise PlanIncomplete(
            "the plan is not complete: it has gaps that nobody waived, or copies without a way",
            where=str(plan_file),
            todo="`pii-tracer show` lists them; close or waive each, then plan again",
        )
    _, policy_file = settings.policy(policy)
    found = list(approvals) or sorted(
        plan_file.parent.glob(plan_file.name.removesuffix(".plan.json") + ".approval-*.json")
    )
    info = RunInfo(
        plan_id=loaded.plan.plan_id,
        plan_digest=loaded.digest,
        plan_file=str(plan_file.resolve()),
        estate_file=str(settings.estate_file.resolve()),
        policy_file=str(policy_file.resolve()),
        approvals=tuple(str(p.resolve()) for p in found),
        trusted=str(trusted.resolve()) if trusted else None,
        state=str(settings.state.resolve()),
        **more,
    )
    folder = folder_of(settings.state, loaded.plan.plan_id)
    gate(folder, info, loaded)
    folder.write_info(info)
    return folder


@dataclass(frozen=True)
class Gate:
    """What let a run through."""

    loaded: LoadedPlan
    approvals: tuple[Approval, ...]


def gate(folder: RunFolder, info: RunInfo, loaded: LoadedPlan) -> Gate:
    """Installation, policy, approvals, digests: asked at the start and again at every resume."""
    foreign = foreign_packages()
    if foreign:
        raise Refused(
            f"the packages {', '.join(foreign)} belong to another distribution",
            todo="install pii-tracer in an environment of its own; `pii-tracer doctor` shows it",
        )
    settings = Settings(Path(info.estate_file), Path(info.state))
    if loaded.digest != info.plan_digest:
        raise NotApproved("the plan file is not the one this run began with", where=info.plan_file, todo="put it back")
    if file_digest(settings.estate_file) != loaded.plan.estate_digest:
        raise Drift(
            "the estate file has changed since the plan was made", where=str(settings.estate_file), todo="plan again"
        )
    policy, policy_file = settings.policy(Path(info.policy_file))
    production = settings.estate().environment == "production"
    enforce(evaluate(loaded.plan, policy, production=production, now=now()))
    registry = settings.state / "consumed"
    approvals = verify_approvals(
        loaded,
        [_read(Path(p)) for p in info.approvals],
        load_trusted(Path(info.trusted)) if info.trusted else (),
        policy,
        policy_digest=file_digest(policy_file),
        production=production,
        planner=loaded.plan.planned_by or None,
        now=now(),
        consumed=consumed_by(registry, loaded.digest),
        run=folder.path.name,
    )
    return Gate(loaded, approvals)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise NotApproved(
            f"an approval cannot be read: {error.strerror}", where=str(path), todo="name the right file"
        ) from None
