"""The answer to one request, at one time: what was erased, what was not, until when, and who says so; signed.

It is an in-toto Statement v1 in a DSSE envelope like an attestation, about one person alone. It has no value of hers.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from pydantic import AwareDatetime, ValidationError

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.canonical_json import canonical, iso
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.errors import ProofError, ReviewError
from pii_tracer.model.plan import digest_of
from pii_tracer.review import dsse

ANSWER_TYPE = "https://pii-tracer.dev/answer/v1"


class Standing(StrEnum):
    """How one place stands for a person.

    unreadable: the key that opened it is destroyed. partly: erased in some columns, a hold keeps the others. kept: the
    person asked for that, and nothing else keeps it. answered:
    nobody looked, and a named person answers for it. found: something of the person was found after its erasure.
    unconfirmed: steps were done there, and their proof is not whole.
    """

    ERASED = "erased"
    UNREADABLE = "unreadable"
    PARTLY = "partly"
    HELD = "held"
    KEPT = "kept"
    ANSWERED = "answered"
    WAITING = "waiting"
    NOT_ERASED = "not_erased"
    FOUND = "found"
    UNCONFIRMED = "unconfirmed"


ERASING = frozenset({Standing.ERASED, Standing.UNREADABLE, Standing.PARTLY})
"""What says that something is gone."""
DONE = frozenset({Standing.ERASED, Standing.UNREADABLE, Standing.ANSWERED})
"""What a certificate can stand on."""


class Outcome(StrEnum):
    """What an answer comes to. erased: there is a certificate, too."""

    ERASED = "erased"
    ERASED_IN_PART = "erased_in_part"
    NOT_ERASED = "not_erased"


class AnswerItem(Frozen):
    """One place. at: when it was verified. until: when a hold on it ends, what it waits for can be, or an answer for it
    is good; None where nobody knows. why: as plan, hold or waiver says it. who: answers for that."""

    standing: Standing
    what: str
    why: str | None = None
    who: str | None = None
    at: AwareDatetime | None = None
    until: AwareDatetime | None = None


class ToldRecipient(Frozen):
    """Another who got the data. how: `file`, `email` (a text that somebody sends by hand) or `webhook`. told_at: when
    the notice was put there, the text was written, or the server took it; None where it was not. confirm_by: until when
    it has to confirm. confirmed_by: who signed that it did. evidence: SHA-256 of what shows it. problem: why it was not
    informed of this person, or nobody knows whether it was."""

    name: str
    how: str
    told_at: AwareDatetime | None = None
    confirm_by: AwareDatetime | None = None
    confirmed_at: AwareDatetime | None = None
    confirmed_by: str | None = None
    said: str | None = None
    evidence: str | None = None
    problem: str | None = None


class RequestAnswer(Frozen):
    """What is told of one request. subject: keyed reference of the person. at: the time of the answer. plan_id,
    plan_digest: None where no plan has the request.

    doubt: why nothing is said to be erased, where steps were done. attestation: digest of the one that it rests on;
    None where the run has none about this request. journal: hash of the last record that it rests on.
    searched: when the run had searched everything for the last time, by the attestation.
    """

    format_version: Literal[1] = 1
    request: str
    subject: str
    law: str
    received: AwareDatetime
    deadline: AwareDatetime
    plan_id: str | None = None
    plan_digest: str | None = None
    at: AwareDatetime
    outcome: Outcome
    doubt: str | None = None
    items: tuple[AnswerItem, ...]
    recipients: tuple[ToldRecipient, ...] = ()
    attestation: str | None = None
    journal: str | None = None
    searched: AwareDatetime | None = None
    not_proved: tuple[str, ...] = ()

    def of(self, *standings: Standing) -> tuple[AnswerItem, ...]:
        """The places that stand so."""
        return tuple(item for item in self.items if item.standing in standings)


def seal_answer(answer: RequestAnswer, key: dsse.PrivateKey) -> bytes:
    """The signed envelope. It is about the plan; or about the request itself, by a digest of who asked and when."""
    name, digest = answer.plan_id, answer.plan_digest
    if name is None or digest is None:
        asked = {"request": answer.request, "subject": answer.subject, "received": iso(answer.received)}
        name, digest = answer.request, digest_of(canonical(asked))
    subject = {"name": name, "digest": {"sha256": digest.removeprefix("sha256:")}}
    return dsse.seal(dsse.statement(ANSWER_TYPE, [subject], answer.model_dump(mode="json")), key)


def open_answer(envelope: bytes, keys: Iterable[dsse.PublicKey]) -> RequestAnswer:
    """An answer that one of these keys signed.

    Raises:
        ProofError: it is none, it was changed, or another key signed it.
    """
    try:
        opened = dsse.unseal(envelope, keys)
        if opened.statement["predicateType"] != ANSWER_TYPE:
            raise ValueError
        answer = RequestAnswer.model_validate(opened.statement["predicate"])
    except (ReviewError, ValidationError, ValueError):
        raise ProofError(
            "this file is not an answer to a request", todo="name a file written by `pii-tracer attest answer`"
        ) from None
    if not opened.keyids:
        raise ProofError(
            "the answer was changed, or was not signed with one of the given keys",
            todo="ask the sender for the public key, or for a new copy of the answer",
        )
    return answer


def outcome_of(items: Iterable[AnswerItem], *, attested: bool) -> Outcome:
    """What the places come to. attested: an attestation that holds is about the request."""
    standings = {item.standing for item in items}
    if attested and standings <= DONE:
        return Outcome.ERASED
    return Outcome.ERASED_IN_PART if standings & ERASING else Outcome.NOT_ERASED


def latest(times: Iterable[datetime]) -> datetime | None:
    """The last of some times; None without any."""
    return max(times, default=None)
