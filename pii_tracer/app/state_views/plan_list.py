"""The plans of a state folder: verdict, what blocks each, and who says to have approved it."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from pii_tracer.app.execution.approvals import read_approval
from pii_tracer.app.state_views.untrusted_files import Broken, Remembered, key_of
from pii_tracer.model.errors import NotApproved, ReviewError
from pii_tracer.review.approval import ApprovalPredicate
from pii_tracer.review.dsse import strict_json
from pii_tracer.review.plan_file import load_plan
from reports.plan.plan_view import PlanView, Verdict

_PLAN = ".plan.json"
_APPROVAL = re.compile(r"(.+)\.approval-[^/]*\.json", re.DOTALL)
_READ_PLANS = 4
"""Whole plans that stay in memory; of the others only what lists show."""
_WEIGHT = {Verdict.INCOMPLETE: 0, Verdict.LATE: 1, Verdict.NOT_APPLYABLE: 2, Verdict.PARTIAL: 3, Verdict.READY: 4}


@dataclass(frozen=True)
class ApprovalClaim:
    """An approval beside a plan, as it describes itself. Its signature is not checked here: `apply` does that.

    signed: it has a signature, of whomever. wrong: why it cannot count, as far as this can be seen without keys.
    """

    approver: str
    role: str
    expires: datetime | None
    signed: bool
    wrong: str | None


@dataclass(frozen=True)
class PlanSummary:
    """What lists show of a plan. open_gaps: those that nobody waived."""

    key: str
    file: str
    plan_id: str
    estate: str
    created_at: datetime
    deadline: datetime
    verdict: Verdict
    headline: str
    open_gaps: int
    requests: tuple[str, ...]
    digest: str

    @property
    def blocked(self) -> bool:
        """Whether the plan cannot be approved or applied as it is, or comes too late."""
        return self.verdict not in (Verdict.READY, Verdict.PARTIAL)


@dataclass(frozen=True)
class ListedPlan:
    """A plan with its approvals. approved: at least one of them may count."""

    summary: PlanSummary
    approvals: tuple[ApprovalClaim, ...]

    @property
    def approved(self) -> bool:
        """Whether somebody says to have approved it, and nothing that is seen here speaks against it."""
        return any(claim.wrong is None for claim in self.approvals)


@dataclass(frozen=True)
class PlanPage:
    """One plan in full."""

    listed: ListedPlan
    view: PlanView


class PlanFolder:
    """Plan files of some folders, read strictly and anew whenever they change."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)
        self._summaries: Remembered[PlanSummary | Broken] = Remembered(20_000)
        self._views: Remembered[tuple[PlanView, str]] = Remembered(_READ_PLANS)

    def all(self, now: datetime) -> tuple[tuple[ListedPlan, ...], tuple[Broken, ...]]:
        """Every plan, blocked ones first, the newest of each verdict at the beginning; and what cannot be read."""
        plans, broken = [], []
        for path, approvals in self._files():
            found = self._summary(path)
            if isinstance(found, Broken):
                broken.append(found)
            else:
                plans.append(ListedPlan(found, _claims(approvals, found, now)))
        plans.sort(key=lambda p: (_WEIGHT[p.summary.verdict], -p.summary.created_at.timestamp(), p.summary.file))
        return tuple(plans), tuple(broken)

    def one(self, key: str, now: datetime) -> PlanPage | Broken | None:
        """The plan of a key; None where no file has it."""
        for path, approvals in self._files():
            if key_of(str(path)) != key:
                continue
            found = self._summary(path)
            if isinstance(found, Broken):
                return found
            try:
                view, _ = self._views.get(path, partial(_view, path))
            except (OSError, ReviewError):
                return _broken(path)
            return PlanPage(ListedPlan(found, _claims(approvals, found, now)), view)
        return None

    def _files(self) -> list[tuple[Path, list[Path]]]:
        """Each plan file with the approvals beside it."""
        found: list[tuple[Path, list[Path]]] = []
        for folder in self._folders:
            try:
                names = sorted(path.name for path in folder.iterdir())
            except OSError:
                continue
            beside: dict[str, list[Path]] = {}
            for name in names:
                if match := _APPROVAL.fullmatch(name):
                    beside.setdefault(match[1], []).append(folder / name)
            plans = [name for name in names if name.endswith(_PLAN) and not name.startswith(".")]
            found += [(folder / name, beside.get(name.removesuffix(_PLAN), [])) for name in plans]
        return found

    def _summary(self, path: Path) -> PlanSummary | Broken:
        def read() -> PlanSummary | Broken:
            try:
                return _summarise(path, *self._views.get(path, partial(_view, path)))
            except ReviewError:
                return _broken(path)

        try:
            return self._summaries.get(path, read)
        except OSError:
            return _broken(path)


def _view(path: Path) -> tuple[PlanView, str]:
    """The plan as reports show it, and the digest of its file."""
    loaded = load_plan(path)
    return PlanView(loaded.plan), loaded.digest


def _summarise(path: Path, view: PlanView, digest: str) -> PlanSummary:
    plan = view.plan
    return PlanSummary(
        key=key_of(str(path)),
        file=path.name,
        plan_id=plan.plan_id,
        estate=plan.estate,
        created_at=plan.created_at,
        deadline=plan.totals.deadline,
        verdict=view.verdict,
        headline=view.headline,
        open_gaps=len(view.open_gaps),
        requests=tuple(request.id for request in plan.requests),
        digest=digest,
    )


def _broken(path: Path) -> Broken:
    what = "This is not a plan that pii-tracer wrote: the file was cut, edited, or is of another version"
    return Broken(key_of(str(path)), path.name, what, "`pii-tracer show FILE` says where it is wrong; or plan again")


def _claims(files: Sequence[Path], plan: PlanSummary, now: datetime) -> tuple[ApprovalClaim, ...]:
    return tuple(_claim(path, plan, now) for path in files)


def _claim(path: Path, plan: PlanSummary, now: datetime) -> ApprovalClaim:
    try:
        envelope = strict_json(read_approval(path))
        statement = strict_json(base64.b64decode(envelope["payload"], validate=True))
        said = ApprovalPredicate.model_validate(statement["predicate"])
        digests = [subject["digest"]["sha256"] for subject in statement["subject"]]
        signed = bool(envelope["signatures"])
        late = now >= said.expires
    except (NotApproved, ReviewError, ValidationError, ValueError, KeyError, TypeError, RecursionError):
        return ApprovalClaim(path.name, "", None, False, "the file cannot be read as an approval")
    wrong = None
    if digests != [plan.digest.removeprefix("sha256:")] or said.plan_id != plan.plan_id:
        wrong = "it is for other bytes than this plan file"
    elif late:
        wrong = "it has expired"
    return ApprovalClaim(said.approver, said.role, said.expires, signed, wrong)
