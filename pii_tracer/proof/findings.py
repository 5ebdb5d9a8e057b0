"""What a check of a proof can find, and the envelope that every check begins with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.errors import ReviewError
from pii_tracer.proof.requests_tree.request_leaves import RequestLeaf
from pii_tracer.proof.untrusted_json import json_object
from pii_tracer.review import dsse

PREDICATE_TYPE = "https://pii-tracer.dev/erasure/v2"


class Check(StrEnum):
    """What a finding is about; each kind of failure has its own."""

    SIGNATURE = "signature"
    FOREIGN_KEY = "foreign_key"
    PREDICATE_VERSION = "predicate_version"
    FORM = "form"
    MISSING = "missing_file"
    OVERSIZED = "oversized"
    EXTRA = "extra_file"
    REQUEST = "request"
    PLAN = "plan"
    APPROVAL = "approval"
    CONFIRMATION = "confirmation"
    JOURNAL = "journal"
    INCLUSION = "inclusion"
    COVERAGE = "coverage"
    OPEN = "open_requests"
    SCOPE = "scope"
    CONSISTENCY = "consistency"
    DELETION_LOG = "deletion_log"
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
class About:
    """What an attestation says that it is about, for whoever has asked for one.

    requests: id, keyed reference of the person, and law of each. unnamed: how many more, which nothing that was given
    and holds names. first, last: when its steps were verified. searched: end of the scan. exceptions: how many of each
    kind.
    """

    requests: tuple[tuple[str, str, str], ...]
    unnamed: int
    plan: str
    first: str | None
    last: str | None
    searched: str
    exceptions: Mapping[str, int]


@dataclass(frozen=True)
class Report:
    """What a check came to. notes: what was not looked at, so that nobody believes it was. about: None where no
    attestation could be opened, or the check was not of a whole one."""

    findings: tuple[ProofFinding, ...]
    notes: tuple[str, ...] = ()
    about: About | None = None


def about(statement: Mapping[str, Any], requests: Iterable[RequestLeaf], unnamed: int = 0) -> About:
    """What a signed statement is about. requests: those of its tree that are known, and the number of all others that
    it is about.

    Raises:
        LookupError, TypeError, AttributeError: it does not have the form that it must have.
    """
    said = statement["predicate"]
    moments = sorted(str(step["verified_at"]) for step in said["steps"])
    return About(
        requests=tuple((leaf.id, leaf.subject, leaf.law) for leaf in requests),
        unnamed=unnamed,
        plan=str(said["plan"]["id"]),
        first=moments[0] if moments else None,
        last=moments[-1] if moments else None,
        searched=str(said["scope"]["at"]),
        exceptions=dict(sorted(Counter(str(one["kind"]) for one in said["exceptions"]).items())),
    )


def open_envelope(attestation: bytes, trusted: Sequence[dsse.PublicKey]) -> Mapping[str, Any] | ProofFinding:
    """The statement of an attestation that a trusted key signed, or the one finding that ends the check."""
    try:
        opened = dsse.unseal(attestation, trusted)
    except ReviewError as error:
        return ProofFinding(Check.FORM, error.what)
    if not opened.keyids:
        signers = {s.get("keyid") for s in json_object(attestation)["signatures"]}
        if signers & {dsse.keyid(key) for key in trusted}:
            return ProofFinding(Check.SIGNATURE, "the signature is not valid: the attestation was changed")
        return ProofFinding(Check.FOREIGN_KEY, "the attestation is not signed with one of the given keys")
    if opened.statement["predicateType"] != PREDICATE_TYPE:
        return ProofFinding(Check.PREDICATE_VERSION, "this version does not know the attestation's predicate type")
    return opened.statement
