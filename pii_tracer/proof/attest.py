"""The attestation of an erasure: in-toto Statement v1 in a signed DSSE envelope, and the evidence beside it.

It says what was asserted, when, by whom, and that a named scan over an enumerated, hashed set of files found nothing.
It is refused while anything is open or left.

Evidence folder: `plan.json`, `journal.jsonl`, `approvals/NNN.json`, `leaves.jsonl`, `scope.jsonl`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pii_tracer.errors import ProofError
from pii_tracer.files import write_atomic
from pii_tracer.journal import Kind, Record, iso, parse
from pii_tracer.model import Strategy
from pii_tracer.plan import ErasurePlan, digest_of
from pii_tracer.proof import merkle
from pii_tracer.proof.leaves import Erased, ScopeFile, evidence_leaves, lines_digest, scope_lines
from pii_tracer.review import dsse
from pii_tracer.review.planfile import LoadedPlan

PREDICATE_TYPE = "https://pii-tracer.dev/erasure/v1"
LIMITS = (
    "copies outside the inventory that the plan names by its digest",
    "copies that people or jobs made outside the estate, or after the time of the scan",
    "bytes on media below the storage's interface, and in backups that the estate file does not declare",
)


@dataclass(frozen=True)
class Proven:
    """All that an attestation is made of.

    journal: bytes of the run's journal. residue: what the verifier still found. scanned_at: end of its scan.
    exceptions: what stays by right or by waiver, one sentence each, beside those that the plan itself holds.
    """

    loaded: LoadedPlan
    journal: bytes
    approvals: Sequence[bytes]
    scope: Sequence[ScopeFile]
    scanned_at: datetime
    erased: Sequence[Erased] = ()
    residue: Sequence[str] = ()
    exceptions: Sequence[str] = ()
    tools: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Attestation:
    """The envelope and the files of the evidence folder (relative path -> bytes)."""

    envelope: bytes
    evidence: Mapping[str, bytes]

    def write(self, envelope: Path, folder: Path) -> None:
        """Write the evidence first and the attestation last, each whole or not at all."""
        for name, data in self.evidence.items():
            write_atomic(folder / name, data)
        write_atomic(envelope, self.envelope)


def attest(proven: Proven, key: Ed25519PrivateKey, *, nonce: Callable[[], str]) -> Attestation:
    """Attest a finished erasure. nonce: gives at least 128 random bits as text at each call.

    Raises:
        ProofError: residue, open steps, an empty scope, no approval, or a journal of another plan.
        JournalError: the journal is broken.
    """
    records, torn = parse(proven.journal)
    _refuse_open(proven, records, torn)
    leaves = evidence_leaves(records, proven.erased, nonce)
    hashes = [merkle.leaf_hash(line) for line in leaves]
    scope = scope_lines(proven.scope)
    predicate = _predicate(proven, records, merkle.root(hashes), len(leaves), scope)
    first_erased = len(leaves) - len(proven.erased)
    subjects = [_subject(item, hashes[first_erased + i]) for i, item in enumerate(proven.erased)]
    subjects = subjects or [{"name": proven.loaded.name, "digest": {"sha256": _hex(proven.loaded.digest)}}]
    evidence = {
        "plan.json": proven.loaded.raw,
        "journal.jsonl": proven.journal,
        "leaves.jsonl": _joined(leaves),
        "scope.jsonl": _joined(scope),
        **{f"approvals/{i:03}.json": data for i, data in enumerate(proven.approvals)},
    }
    return Attestation(dsse.seal(dsse.statement(PREDICATE_TYPE, subjects, predicate), key), evidence)


def open_steps(plan: ErasurePlan, records: Sequence[Record]) -> tuple[str, ...]:
    """Steps of the plan that no record calls verified."""
    verified = {r.facts.get("step") for r in records if r.kind is Kind.STEP_VERIFIED}
    return tuple(step.id for step in plan.steps if step.id not in verified)


def _refuse_open(proven: Proven, records: Sequence[Record], torn: int) -> None:
    plan = proven.loaded.plan
    digests = {r.facts.get("plan_digest") for r in records if r.kind is Kind.RUN_STARTED}
    if torn or digests != {proven.loaded.digest}:
        raise ProofError("the journal is torn or of another plan", todo="resume the run, then attest")
    if proven.residue:
        raise ProofError(f"the person is still in {len(proven.residue)} place(s)", todo="see the verifier's residue")
    left = open_steps(plan, records)
    if left:
        raise ProofError(f"{len(left)} step(s) are open, first {left[0]}", todo="resume the run, then attest")
    if records[-1].kind is not Kind.RUN_FINISHED or records[-1].facts.get("state") != "complete":
        raise ProofError("the run has not finished", todo="resume the run, then attest")
    blocked = [copy.id for copy in plan.copies if copy.strategy is Strategy.BLOCKED]
    if blocked:
        raise ProofError(f"{len(blocked)} copies are blocked, first {blocked[0]}", todo="plan them again")
    if not proven.scope:
        raise ProofError("the verifier's scope is empty: nothing was looked at", todo="verify, then attest")
    if not proven.approvals:
        raise ProofError("there is no approval to attest", todo="attest with the approvals of the run")


def _predicate(
    proven: Proven, records: Sequence[Record], root: bytes, size: int, scope: Sequence[bytes]
) -> dict[str, Any]:
    plan = proven.loaded.plan
    at, scope_digest = iso(proven.scanned_at), lines_digest(scope)
    return {
        "requests": [{"id": r.id, "subject": r.subject, "law": r.law} for r in plan.requests],
        "plan": {"id": plan.plan_id, "digest": proven.loaded.digest, "subjects_digest": plan.subjects_digest},
        "inventory_digest": plan.inventory_digest,
        "approvals": [digest_of(data) for data in proven.approvals],
        "steps": _steps(plan, records),
        "journal": {"head": records[-1].hash, "records": len(records)},
        "merkle": {"root": root.hex(), "leaves": size},
        "scope": {"files": len(scope), "digest": scope_digest, "at": at},
        "tools": dict(proven.tools),
        "exceptions": [*_exceptions(plan), *proven.exceptions],
        "statement": f"not found in scope {scope_digest} ({len(scope)} files) at time {at}",
        "not_proved": list(LIMITS),
    }


def _steps(plan: ErasurePlan, records: Sequence[Record]) -> list[dict[str, Any]]:
    results = {r.facts["step"]: r for r in records if r.kind is Kind.STEP_RESULT}
    verified = {r.facts["step"]: r for r in records if r.kind is Kind.STEP_VERIFIED}
    return [
        {
            "id": step.id,
            "copy": step.copy_,
            "action": step.action,
            "result": results[step.id].facts.get("facts", {}) if step.id in results else {},
            "verified_at": verified[step.id].time,
            "record": verified[step.id].hash,
        }
        for step in plan.steps
    ]


def _exceptions(plan: ErasurePlan) -> list[str]:
    exempt = [f"copy {c.id} is exempt: {c.reason}" for c in plan.copies if c.strategy is Strategy.EXEMPT]
    waived = [f"gap {g.id} was waived by {g.waiver.who}: {g.waiver.why}" for g in plan.gaps if g.waiver]
    return exempt + waived


def _subject(item: Erased, leaf: bytes) -> dict[str, Any]:
    """Where the bytes' own digest is not known, the subject is bound to its evidence leaf instead, and says so."""
    name = item.uri if item.version_id is None else f"{item.uri}?versionId={item.version_id}"
    return {"name": name, "digest": {"sha256": item.sha256} if item.sha256 else {"evidenceLeafSha256": leaf.hex()}}


def _hex(digest: str) -> str:
    return digest.removeprefix("sha256:")


def _joined(lines: Sequence[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)
