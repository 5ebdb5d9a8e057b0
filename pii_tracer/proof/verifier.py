"""Checks an attestation against its evidence folder, offline, and says of each thing what does not hold.

It recomputes everything from the bytes; it believes no digest that it has not made itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from pii_tracer.enums import StrEnum
from pii_tracer.errors import JournalError, PiiTracerError, ReviewError
from pii_tracer.journal import Kind, canonical, parse
from pii_tracer.plan import digest_of
from pii_tracer.proof import merkle
from pii_tracer.proof.attest import PREDICATE_TYPE, open_steps
from pii_tracer.proof.leaves import lines_digest
from pii_tracer.review import approval, dsse
from pii_tracer.review.planfile import parse_plan


class Check(StrEnum):
    """What a finding is about."""

    SIGNATURE = "signature"
    PREDICATE = "predicate"
    PLAN = "plan"
    APPROVAL = "approval"
    JOURNAL = "journal"
    MERKLE = "merkle"
    SCOPE = "scope"
    MISSING = "missing_file"


@dataclass(frozen=True)
class ProofFinding:
    """One thing that does not hold."""

    check: Check
    message: str


def verify_attestation(
    attestation: bytes,
    evidence: Path,
    trusted: Ed25519PublicKey,
    approvers: Sequence[Ed25519PublicKey] | None = None,
) -> tuple[ProofFinding, ...]:
    """All findings; none means that everything holds.

    Args:
        trusted: the attester's public key.
        approvers: public keys of approvers; where given, each approval must be signed by one of them.
    """
    try:
        opened = dsse.unseal(attestation, [trusted])
    except ReviewError as error:
        return (ProofFinding(Check.SIGNATURE, error.what),)
    if not opened.keyids:
        return (ProofFinding(Check.SIGNATURE, "the attestation is not signed by the trusted key, or was changed"),)
    if opened.statement["predicateType"] != PREDICATE_TYPE:
        return (ProofFinding(Check.PREDICATE, "this version does not know the attestation's predicate type"),)
    try:
        return _Evidence(opened.statement, evidence, approvers).findings()
    except (KeyError, TypeError, AttributeError, ValueError, PiiTracerError):
        return (ProofFinding(Check.PREDICATE, "the attestation or its evidence does not have the form it must have"),)


class _Evidence:
    """One pass over the evidence; collects findings."""

    def __init__(
        self, statement: Mapping[str, Any], folder: Path, approvers: Sequence[Ed25519PublicKey] | None
    ) -> None:
        self.statement, self.claims = statement, statement["predicate"]
        self.folder, self.approvers = folder, approvers
        self.found: list[ProofFinding] = []

    def findings(self) -> tuple[ProofFinding, ...]:
        plan = self._read("plan.json")
        journal = self._read("journal.jsonl")
        leaves = self._read("leaves.jsonl")
        scope = self._read("scope.jsonl")
        if plan is not None:
            self._expect(digest_of(plan) == self.claims["plan"]["digest"], Check.PLAN, "the plan has other bytes")
        if journal is not None:
            self._journal(journal, plan)
        if leaves is not None:
            self._merkle(_lines(leaves), leaves)
        if scope is not None:
            self._scope(_lines(scope), scope)
        self._approvals()
        return tuple(self.found)

    def _read(self, name: str) -> bytes | None:
        try:
            return (self.folder / name).read_bytes()
        except OSError:
            self.found.append(ProofFinding(Check.MISSING, f"the evidence lacks {name}"))
            return None

    def _expect(self, holds: bool, check: Check, otherwise: str) -> None:
        if not holds:
            self.found.append(ProofFinding(check, otherwise))

    def _journal(self, data: bytes, plan: bytes | None) -> None:
        try:
            records, torn = parse(data)
        except JournalError as error:
            self.found.append(ProofFinding(Check.JOURNAL, f"{error.what} ({error.where})"))
            return
        head = records[-1].hash if records else ""
        claimed = self.claims["journal"]
        whole = not torn and head == claimed["head"] and len(records) == claimed["records"]
        self._expect(whole, Check.JOURNAL, "the journal does not end where the attestation says")
        digests = {r.facts.get("plan_digest") for r in records if r.kind is Kind.RUN_STARTED}
        self._expect(digests == {self.claims["plan"]["digest"]}, Check.JOURNAL, "the journal is of another plan")
        verified = {r.hash: r.facts.get("step") for r in records if r.kind is Kind.STEP_VERIFIED}
        for step in self.claims["steps"]:
            said = verified.get(step["record"]) == step["id"]
            self._expect(said, Check.JOURNAL, f"the journal does not say that step {step['id']} was verified")
        if plan is not None and digest_of(plan) == self.claims["plan"]["digest"]:
            left = open_steps(parse_plan(plan, "plan.json").plan, records)
            self._expect(not left, Check.JOURNAL, f"{len(left)} step(s) of the plan were never verified")

    def _merkle(self, lines: list[bytes], data: bytes) -> None:
        claimed = self.claims["merkle"]
        self._expect(data == b"".join(line + b"\n" for line in lines), Check.MERKLE, "the last leaf is cut off")
        hashes = [merkle.leaf_hash(line) for line in lines]
        self._expect(len(lines) == claimed["leaves"], Check.MERKLE, "the number of leaves is another")
        self._expect(merkle.root(hashes).hex() == claimed["root"], Check.MERKLE, "the leaves do not give the root")
        bodies = [dsse.strict_json(line) for line in lines if _is_json(line)]
        in_leaves = {(b.get("step"), b.get("record")) for b in bodies if b.get("kind") == "step"}
        for step in self.claims["steps"]:
            included = (step["id"], step["record"]) in in_leaves
            self._expect(included, Check.MERKLE, f"step {step['id']} is in no leaf")
        by_digest = {h.hex() for h in hashes} | {str(b.get("sha256")) for b in bodies}
        for subject in self.statement["subject"]:
            if subject["digest"] == {"sha256": self.claims["plan"]["digest"].removeprefix("sha256:")}:
                continue
            included = set(subject["digest"].values()) <= by_digest
            self._expect(included, Check.MERKLE, f"subject {subject['name']} is in no leaf")

    def _scope(self, lines: list[bytes], data: bytes) -> None:
        claimed = self.claims["scope"]
        same = lines_digest(lines) == claimed["digest"] and data == b"".join(line + b"\n" for line in lines)
        self._expect(same, Check.SCOPE, "the scope is not the one that was scanned")
        self._expect(len(lines) == claimed["files"], Check.SCOPE, "the number of files in scope is another")
        self._expect(bool(lines), Check.SCOPE, "the scope is empty: nothing was looked at")

    def _approvals(self) -> None:
        for number, claimed in enumerate(self.claims["approvals"]):
            name = f"approvals/{number:03}.json"
            data = self._read(name)
            if data is not None:
                self._approval(name, data, claimed)
        self._expect(bool(self.claims["approvals"]), Check.APPROVAL, "nobody approved")

    def _approval(self, name: str, data: bytes, claimed: str) -> None:
        if digest_of(data) != claimed:
            self.found.append(ProofFinding(Check.APPROVAL, f"{name} has other bytes than attested"))
            return
        try:
            opened = dsse.unseal(data, self.approvers or ())
        except ReviewError:
            self.found.append(ProofFinding(Check.APPROVAL, f"{name} is no approval"))
            return
        digests = [subject["digest"] for subject in opened.statement["subject"]]
        of_plan = digests == [{"sha256": self.claims["plan"]["digest"].removeprefix("sha256:")}]
        is_approval = opened.statement["predicateType"] == approval.PREDICATE_TYPE
        self._expect(of_plan and is_approval, Check.APPROVAL, f"{name} approves something else")
        if self.approvers is not None:
            self._expect(bool(opened.keyids), Check.APPROVAL, f"{name} is not signed by a known approver")


def _lines(data: bytes) -> list[bytes]:
    return data.split(b"\n")[:-1] if data.endswith(b"\n") else data.split(b"\n")


def _is_json(line: bytes) -> bool:
    try:
        return canonical(dsse.strict_json(line)) == line and line.startswith(b"{")
    except (ValueError, PiiTracerError):
        return False
