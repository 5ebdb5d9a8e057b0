"""Who agreed to exactly this: an approval is a signed statement over the digest of the plan file's bytes.

It expires, it names its approver and reason, and a run folder consumes it: a plan is applied once, by one run, which
may be resumed. Unsigned approvals count in estates of environment `local` only.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field, ValidationError

from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.common.plurals import counted
from pii_tracer.config.estate_file import Policy
from pii_tracer.model.datasets import Frozen, is_said
from pii_tracer.model.errors import NotApproved, ReviewError
from pii_tracer.model.plan import digest_of
from pii_tracer.review import dsse
from pii_tracer.review.plan_file import LoadedPlan
from pii_tracer.review.policy_rules import has_invisible, person
from pii_tracer.review.trusted_keys import Approver

PREDICATE_TYPE = "https://pii-tracer.dev/approval/v1"


class ApprovalPredicate(Frozen):
    """What an approver signs beside the digest. policy_digest: of the policy that was looked at."""

    plan_id: str
    approver: str
    role: str
    reason: str = Field(min_length=1)
    approved_at: datetime
    expires: datetime
    policy_digest: str
    nonce: str = Field(min_length=16)

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True)
class Approval:
    """An approval that holds. digest: of the envelope. signed: by a trusted key."""

    predicate: ApprovalPredicate
    digest: str
    signed: bool


def approve(
    loaded: LoadedPlan,
    key: dsse.PrivateKey | None,
    *,
    approver: str,
    role: str,
    reason: str,
    expires: datetime,
    policy: Policy,
    policy_digest: str,
    production: bool,
    now: datetime,
    nonce: str,
) -> bytes:
    """The envelope of an approval for exactly the bytes of a plan file.

    policy, production: as `verify_approvals` will ask them.

    Raises:
        ReviewError: a field is empty or cannot be read, or `apply` would not take it (`unsound`).
    """
    for name, text in (("approver", approver), ("role", role), ("reason", reason)):
        if not is_said(text):
            raise _invalid(name)
    try:
        predicate = ApprovalPredicate(
            plan_id=loaded.plan.plan_id,
            approver=approver,
            role=role,
            reason=reason,
            approved_at=now,
            expires=expires,
            policy_digest=policy_digest,
            nonce=nonce,
        )
    except ValidationError as error:
        raise _invalid(error.errors(include_input=False)[0]["loc"][0]) from None
    wrong = unsound(predicate, policy, signed=key is not None, production=production)
    if wrong is not None:
        raise ReviewError(wrong[0], todo=wrong[1])
    subject = {"name": loaded.name, "digest": {"sha256": loaded.digest.removeprefix("sha256:")}}
    return dsse.seal(dsse.statement(PREDICATE_TYPE, [subject], predicate.model_dump(mode="json")), key)


def _invalid(field: int | str) -> ReviewError:
    return ReviewError(f"the approval has no valid `{field}`", todo="give it")


def unsound(predicate: ApprovalPredicate, policy: Policy, *, signed: bool, production: bool) -> tuple[str, str] | None:
    """Why an approval counts for nothing, whenever it is asked, and what to do; None where nothing speaks against it.

    Asked when it is signed and each time it is used: whoever signs has another program, or another policy, at hand.
    """
    if has_invisible(predicate.approver):
        words = "the approver's name holds characters that cannot be seen"
        return words, "write it without them, here and in the file of `--trusted`"
    if not signed and production:
        return "the approval is not signed", "sign it with a key of a trusted approver"
    lives = predicate.expires - predicate.approved_at
    if lives <= timedelta(0):
        return "the approval would be expired already", "give a later date"
    if lives > timedelta(hours=policy.max_approval_hours):
        words = f"the approval is valid for {lives.total_seconds() / 3600:g} hours, and the policy allows"
        return f"{words} {counted(policy.max_approval_hours, 'hour')} at most", "approve again, with fewer `--hours`"
    return None


def verify_approvals(
    loaded: LoadedPlan,
    envelopes: Sequence[bytes],
    trusted: Sequence[Approver],
    policy: Policy,
    *,
    policy_digest: str,
    production: bool,
    planner: str | None,
    now: datetime,
    consumed: str | None,
    run: str,
    begun: Collection[str] = (),
) -> tuple[Approval, ...]:
    """The approvals of a plan, or the precise reason why it is not approved. One bad envelope refuses all.

    Args:
        policy_digest: of the policy file as it is now; an approval that saw another policy does not count.
        production: needs signatures, the policy's number of distinct approvers, one of them not the planner.
        planner: who made the plan.
        consumed: name of the run that consumed this plan's approval, from `consumed_by`.
        run: name of the run that asks.
        begun: digests of the approvals with which it began, by its journal: it goes on by them after their expiry, too.

    Raises:
        NotApproved: otherwise.
    """
    if consumed is not None and consumed != run:
        raise _no(
            f"the approval was consumed by the run {consumed}", "plan again, because a plan can be applied only once"
        )
    if not envelopes:
        raise _no("there is no approval", "run `pii-tracer approve`")
    found = tuple(
        _one(loaded, one, trusted, policy, policy_digest, production, None if digest_of(one) in begun else now)
        for one in envelopes
    )
    people = {person(a.predicate.approver) for a in found}
    needed = policy.production_approvers if production else 1
    if production and planner is not None and people == {person(planner)}:
        raise _no("the person who made the plan is its only approver", "ask a second person to approve")
    if len(people) < needed:
        raise _no(f"{len(people)} of {needed} approvers have approved", "ask another approver")
    missing = sorted(set(policy.required_roles) - {a.predicate.role for a in found})
    if production and missing:
        raise _no(f"no approver has the role `{missing[0]}`", "ask a person with that role to approve")
    return found


def holding(
    loaded: LoadedPlan,
    envelopes: Sequence[bytes],
    trusted: Sequence[Approver],
    policy: Policy,
    *,
    policy_digest: str,
    production: bool,
    now: datetime,
) -> tuple[Approval, ...]:
    """Each approval by itself: signature, signer, bytes, policy, time. How many there must be is not asked here.

    Raises:
        NotApproved: one of them does not hold.
    """
    return tuple(_one(loaded, e, trusted, policy, policy_digest, production, now) for e in envelopes)


def _one(
    loaded: LoadedPlan,
    envelope: bytes,
    trusted: Sequence[Approver],
    policy: Policy,
    policy_digest: str,
    production: bool,
    now: datetime | None,
) -> Approval:
    by_key = {dsse.keyid(a.key()): a for a in trusted}
    try:
        opened = dsse.unseal(envelope, [a.key() for a in trusted])
        predicate = ApprovalPredicate.model_validate(opened.statement["predicate"])
    except (ReviewError, ValidationError):
        raise _no("an approval cannot be read: the file was changed, or is not an approval", "approve again") from None
    _signed_by(opened, by_key, predicate, now)
    _about(opened.statement, loaded, predicate)
    wrong = unsound(predicate, policy, signed=bool(opened.keyids), production=production)
    if wrong is not None:
        raise _no(*wrong)
    if predicate.policy_digest != policy_digest:
        raise _no("the policy was changed after the approval", "approve again with the current policy")
    if now is not None:
        _in_time(predicate, now)
    return Approval(predicate, digest_of(envelope), bool(opened.keyids))


def _signed_by(
    opened: dsse.Opened,
    by_key: Mapping[str, Approver],
    predicate: ApprovalPredicate,
    now: datetime | None,
) -> None:
    if not opened.keyids:
        if opened.claimed:
            raise _no(
                "the approval's signature was not made with a trusted key, or the approval was changed", _WHO_IS_TRUSTED
            )
        return
    signers = [by_key[k] for k in opened.keyids]
    own = [s for s in signers if s.name == predicate.approver and s.role == predicate.role]
    if not own:
        raise _no(
            "the approval names a person or role that differs from its signer", "approve with your own name and role"
        )
    # at both times, so that dating an approval back does not bring a withdrawn key to life
    if not any(s.valid_at(predicate.approved_at) and (now is None or s.valid_at(now)) for s in own):
        raise _no("the signer's key is not valid at this time", "approve with a key that is valid now")


def _about(statement: Mapping[str, Any], loaded: LoadedPlan, predicate: ApprovalPredicate) -> None:
    if statement["predicateType"] != PREDICATE_TYPE:
        raise _no("this statement is not an approval of a plan", "run `pii-tracer approve`")
    digests = [s.get("digest", {}) for s in statement["subject"] if isinstance(s, dict)]
    if digests != [{"sha256": loaded.digest.removeprefix("sha256:")}] or predicate.plan_id != loaded.plan.plan_id:
        raise _no("the approval belongs to a different version of this plan file", "review and approve this plan file")


def _in_time(predicate: ApprovalPredicate, now: datetime) -> None:
    if now >= predicate.expires:
        raise _no(
            "the approval has expired", "review and approve again; for a run that stopped before it began, plan again"
        )
    if now < predicate.approved_at:
        raise _no("the approval is dated in the future", "correct the clock of this machine, then approve again")


_WHO_IS_TRUSTED = "name the trusted approvers' public keys with `--trusted FILE`, or let one of them approve again"


def _no(what: str, todo: str) -> NotApproved:
    return NotApproved(what, todo=todo)


def consumed_by(registry: Path, digest: str) -> str | None:
    """Name of the run that consumed the approvals of these plan bytes, or None."""
    try:
        return _mark(registry, digest).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None


def consume(registry: Path, digest: str, run: str) -> None:
    """Mark the approvals of these plan bytes as consumed by a run. The same run may say so again.

    Raises:
        NotApproved: another run was first.
    """
    registry.mkdir(parents=True, exist_ok=True)
    temporary = registry / f".{os.getpid()}.{_mark(registry, digest).name}.tmp"
    write_atomic(temporary, (run + "\n").encode(), mode=0o600)
    try:
        os.link(temporary, _mark(registry, digest))  # whole and only if nobody was first
    except FileExistsError:
        first = consumed_by(registry, digest)
        if first != run:
            raise _no(
                f"the approval was consumed by the run {first}", "plan again, because a plan can be applied only once"
            ) from None
    finally:
        temporary.unlink()


def _mark(registry: Path, digest: str) -> Path:
    return registry / digest.removeprefix("sha256:")
