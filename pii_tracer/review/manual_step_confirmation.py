"""A person's word that something was done which nobody here can look at: signed like an approval.

It names the plan's bytes, the step, and the SHA-256 of the evidence (a ticket, a listing, a letter). The evidence and
its name stay with whoever confirms: they may hold personal data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import AwareDatetime, Field, ValidationError

from pii_tracer.model.datasets import Frozen
from pii_tracer.model.errors import NotApproved, ReviewError
from pii_tracer.model.plan import digest_of
from pii_tracer.review import dsse
from pii_tracer.review.trusted_keys import Approver

PREDICATE_TYPE = "https://pii-tracer.dev/confirmation/v1"


class Confirmation(Frozen):
    """What a person signs beside the digest of the plan. evidence_sha256: hex. began: of a task by which an owner
    computes tables again, when the job began."""

    plan_id: str
    step: str
    by: str = Field(min_length=1)
    role: str = Field(min_length=1)
    said: str = Field(min_length=1)
    evidence_size: int
    evidence_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    confirmed_at: AwareDatetime
    began: AwareDatetime | None = None


@dataclass(frozen=True)
class Confirmed:
    """A confirmation that holds. digest: of its envelope."""

    said: Confirmation
    digest: str


def confirmation_file(folder: Path, step: str) -> Path:
    """Where the confirmation of a step lies in a run's folder. Ids of steps hold only harmless characters and `/`."""
    return folder / (step.replace("/", "@") + ".json")


def confirm(plan_digest: str, said: Confirmation, key: dsse.PrivateKey) -> bytes:
    """The signed envelope."""
    subject = {"name": said.plan_id, "digest": {"sha256": plan_digest.removeprefix("sha256:")}}
    return dsse.seal(dsse.statement(PREDICATE_TYPE, [subject], said.model_dump(mode="json")), key)


def read_confirmation(
    envelope: bytes, plan_digest: str, step: str, trusted: Sequence[Approver], now: datetime
) -> Confirmed:
    """A confirmation, if it holds for this step of exactly this plan.

    Raises:
        NotApproved: tampered with, not signed by a trusted person under their own name, or about something else.
    """
    by_key = {dsse.keyid(a.key()): a for a in trusted}
    try:
        opened = dsse.unseal(envelope, [a.key() for a in trusted])
        said = Confirmation.model_validate(opened.statement["predicate"])
    except (ReviewError, ValidationError):
        raise _no("a confirmation cannot be read: the file was changed, or is not a confirmation") from None
    signers = [by_key[k] for k in opened.keyids]
    own = [s for s in signers if (s.name, s.role) == (said.by, said.role)]
    if not any(s.valid_at(said.confirmed_at) and s.valid_at(now) for s in own):
        raise _no("the confirmation is not signed by a trusted person with their own name and role")
    digests = [s.get("digest") for s in opened.statement["subject"] if isinstance(s, dict)]
    about = opened.statement["predicateType"] == PREDICATE_TYPE and said.step == step
    if not about or digests != [{"sha256": plan_digest.removeprefix("sha256:")}]:
        raise _no("the confirmation belongs to a different step or a different version of the plan")
    if said.confirmed_at > now:
        raise _no("the confirmation is dated in the future")
    if said.began is not None and said.began > said.confirmed_at:
        raise _no("the confirmation is dated before the job that it confirms began")
    return Confirmed(said, digest_of(envelope))


def _no(what: str) -> NotApproved:
    return NotApproved(what, todo="run `pii-tracer confirm` again, with a key from the file of trusted keys")
