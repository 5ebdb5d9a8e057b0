"""What a check of a proof can find, and the envelope that every check begins with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.errors import ReviewError
from pii_tracer.proof.untrusted_json import json_object
from pii_tracer.review import dsse

PREDICATE_TYPE = "https://pii-tracer.dev/erasure/v1"


class Check(StrEnum):
    """What a finding is about; each kind of failure has its own."""

    SIGNATURE = "signature"
    FOREIGN_KEY = "foreign_key"
    PREDICATE_VERSION = "predicate_version"
    FORM = "form"
    MISSING = "missing_file"
    OVERSIZED = "oversized"
    EXTRA = "extra_file"
    PLAN = "plan"
    APPROVAL = "approval"
    CONFIRMATION = "confirmation"
    JOURNAL = "journal"
    INCLUSION = "inclusion"
    COVERAGE = "coverage"
    OPEN = "open_requests"
    SCOPE = "scope"
    CONSISTENCY = "consistency"
    TIMESTAMP = "timestamp"
    TRAIL_CHAIN = "trail_chain"
    TRAIL_COVERAGE = "trail_coverage"
    UNMATCHED_DELETION = "unmatched_deletion"
    UNEXPLAINED_DELETION = "unexplained_deletion"


@dataclass(frozen=True)
class ProofFinding:
    """One thing that does not hold."""

    check: Check
    message: str


@dataclass(frozen=True)
class Report:
    """What a check came to. notes: what was not looked at, so that nobody believes it was."""

    findings: tuple[ProofFinding, ...]
    notes: tuple[str, ...] = ()


def open_envelope(attestation: bytes, trusted: Sequence[dsse.PublicKey]) -> Mapping[str, Any] | ProofFinding:
    """The statement of an attestation that a trusted key signed, or the one finding that ends the check."""
    try:
        opened = dsse.unseal(attestation, trusted)
    except ReviewError as error:
        return ProofFinding(Check.FORM, error.what)
    if not opened.keyids:
        signers = {s.get("keyid") for s in json_object(attestation)["signatures"]}
        if signers & {dsse.keyid(key) for key in trusted}:
            return ProofFinding(Check.SIGNATURE, "the signature does not hold: the attestation was changed")
        return ProofFinding(Check.FOREIGN_KEY, "the attestation is not signed by a key that was given")
    if opened.statement["predicateType"] != PREDICATE_TYPE:
        return ProofFinding(Check.PREDICATE_VERSION, "this version does not know the attestation's predicate type")
    return opened.statement
