"""Checks an attestation against its evidence folder, offline, and says of each thing what does not hold.

It recomputes everything from the bytes; it believes no digest that it has not made itself.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from cryptography.x509 import Certificate

from pii_tracer.common.plurals import counted
from pii_tracer.model.canonical_json import parse_time
from pii_tracer.model.errors import (
    JournalError,
    PiiTracerError,
    ProofError,
    ReviewError,
)
from pii_tracer.model.plan import STAYS, ErasurePlan, digest_of
from pii_tracer.proof import attestation_log, merkle_tree
from pii_tracer.proof.attestation import confirmed_by, open_steps
from pii_tracer.proof.evidence_leaves import bodies_in, lines_digest
from pii_tracer.proof.findings import About, Check, ProofFinding, Report, about, open_envelope
from pii_tracer.proof.open_requests import wrong_about_open
from pii_tracer.proof.requests_tree.request_leaves import REQUESTS, RequestLeaf, leaves_under
from pii_tracer.proof.requests_tree.request_proof import RequestProof
from pii_tracer.proof.untrusted_json import read_limited, split_lines, whole
from pii_tracer.review import approval, dsse, manual_step_confirmation
from pii_tracer.review.plan_file import parse_plan
from pii_tracer.run.journal import Kind, Record, parse

_CLOCKS_APART = timedelta(minutes=5)
"""How far the machine's clock and the authority's may differ: the result of a scan is never stamped before its end."""


_NAMED = 5
"""Extra files that are named; there may be any number."""


@dataclass(frozen=True)
class Given:
    """What an auditor has beside attestation, evidence and the attester's key; each makes one more check possible.

    approvers: public keys; each approval must then be signed by one of them. previous: the attestation before this one.
    log: the estate's whole log of attestations. stamp: the time stamp. authority: certificates of who made it.
    requests: ids of the requests that it must be about, these and no others.
    """

    approvers: Sequence[dsse.PublicKey] | None = None
    previous: bytes | None = None
    log: bytes | None = None
    stamp: bytes | None = None
    authority: Sequence[Certificate] | None = None
    requests: Collection[str] | None = None


def verify_attestation(
    attestation: bytes,
    evidence: Path | None,
    trusted: Sequence[dsse.PublicKey],
    given: Given | None = None,
    of: RequestProof | None = None,
) -> Report:
    """All findings; none means that everything holds that was looked at. Notes say what was not.

    Args:
        evidence: the folder. Without one nothing is checked but signature, history, stamp and the proof of a request.
        trusted: the attester's public keys; several where the key was changed. One of them must have signed.
        of: the proof of one request, which the attestation must be about; nothing is said of any other.
    """
    given = given or Given()
    opened = open_envelope(attestation, trusted)
    if isinstance(opened, ProofFinding):
        return Report((opened,))
    check = _Check(opened, attestation, evidence, trusted, given, of)
    try:
        check.run()
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError, PiiTracerError):
        check.find(Check.FORM, "the attestation or its evidence does not have a valid form")
    return Report(tuple(check.found), tuple(check.notes), check.about)


def previous_of(attestation: bytes) -> tuple[str, str] | None:
    """Digest and plan of the attestation before this one, as this one says; nothing is checked."""
    try:
        said = dsse.unseal(attestation, ()).statement["predicate"]["log"]["previous"]
        return str(said["attestation"]), str(said["plan"])
    except (ReviewError, KeyError, TypeError):
        return None


class _Check:
    """One pass over the evidence; collects findings."""

    def __init__(
        self,
        statement: Mapping[str, Any],
        envelope: bytes,
        evidence: Path | None,
        trusted: Sequence[dsse.PublicKey],
        given: Given,
        of: RequestProof | None,
    ) -> None:
        self.statement, self.claims = statement, statement["predicate"]
        self.envelope, self.trusted, self.given, self.of = envelope, trusted, given, of
        self.evidence = evidence
        self.found: list[ProofFinding] = []
        self.notes: list[str] = []
        self.about: About | None = None

    @property
    def folder(self) -> Path:
        """The evidence. Raises `LookupError` without any."""
        if self.evidence is None:
            raise LookupError("evidence")
        return self.evidence

    def find(self, check: Check, message: str) -> None:
        self.found.append(ProofFinding(check, message))

    def expect(self, holds: bool, check: Check, otherwise: str) -> None:
        if not holds:
            self.find(check, otherwise)

    def run(self) -> None:
        requests = self._requests()
        self._asked(requests)
        if self.evidence is None:
            self.notes.append("not checked: plan, approvals, journal, leaves and scope (the evidence was not given)")
        else:
            self._rest(requests)
        self._history()
        self._stamp()

    def _rest(self, requests: Sequence[RequestLeaf] | None) -> None:
        """All of the evidence but the requests. requests: None where they do not hold, which is a finding already."""
        plan = self._plan(requests)
        journal = self._read("journal.jsonl")
        records = self._journal(journal, plan) if journal is not None else ()
        leaves = self._read("leaves.jsonl")
        if leaves is not None:
            self._leaves(split_lines(leaves), leaves, plan)
        if leaves is not None and plan and requests is not None:
            ids = [leaf.id for leaf in requests]
            for wrong in wrong_about_open(self.claims, ids, bodies_in(leaves), records, plan):
                self.find(Check.OPEN, wrong)
        scope = self._read("scope.jsonl")
        if scope is not None:
            self._scope(split_lines(scope), scope)
        self._approvals()
        self._confirmations()
        self._extra()

    def _requests(self) -> tuple[RequestLeaf, ...] | None:
        """The requests that it is about, of the evidence; None where that does not hold or was not given."""
        data = self._read(REQUESTS) if self.evidence is not None else None
        if data is None:
            return None
        try:
            return leaves_under(self.claims["requests"], data)
        except ValueError as error:
            self.find(Check.INCLUSION, str(error))
            return None

    def _asked(self, known: Sequence[RequestLeaf] | None) -> None:
        """An attestation that holds is no answer where another request's was asked for."""
        count, requests = int(self.claims["requests"]["count"]), known or ()
        if self.of is not None:
            mine = self.of.is_under(self.claims["requests"])
            self.expect(mine, Check.INCLUSION, "the request of the proof is not among those of the attestation")
            count, requests = 1, (self.of.request,) if mine else ()
        self.about = about(self.statement, requests, count - len(requests))
        if self.given.requests is None:
            self.notes.append("not checked: whether this is the request that you asked about (no request was given)")
            return
        ids = {leaf.id for leaf in requests}
        if ids != set(self.given.requests):
            missing = sorted(set(self.given.requests) - ids)
            said = f"not about {', '.join(missing)}" if missing else "about more requests than you asked about"
            named = f"; it is about {', '.join(sorted(ids)[:_NAMED])}" if ids else ""
            self.find(Check.REQUEST, f"the attestation is {said}{named}")

    def _read(self, name: str) -> bytes | None:
        try:
            return read_limited(self.folder / name)
        except OSError:
            self.find(Check.MISSING, f"the evidence lacks {name}")
        except ProofError as error:
            self.find(Check.OVERSIZED, f"{name}: {error.what}")
        return None

    def _plan(self, requests: Sequence[RequestLeaf] | None) -> ErasurePlan | None:
        data = self._read("plan.json")
        if data is None:
            return None
        if digest_of(data) != self.claims["plan"]["digest"]:
            self.find(Check.PLAN, "the bytes of the plan differ from the attested ones")
            return None
        plan = parse_plan(data, "plan.json").plan
        if requests is not None:
            planned = {(request.id, request.subject, request.law) for request in plan.requests}
            known = bool(requests) and all((leaf.id, leaf.subject, leaf.law) in planned for leaf in requests)
            self.expect(known, Check.PLAN, "the attestation concerns a different request than the plan")
        attested = {step["id"] for step in self.claims["steps"]}
        left = sum(step.id not in attested for step in plan.steps)
        self.expect(
            not left, Check.COVERAGE, f"{counted(left, 'step of the plan is', 'steps of the plan are')} not attested"
        )
        return plan

    def _journal(self, data: bytes, plan: ErasurePlan | None) -> tuple[Record, ...]:
        try:
            records, torn = parse(data)
        except JournalError as error:
            self.find(Check.JOURNAL, f"{error.what} ({error.where})")
            return ()
        head = records[-1].hash if records else ""
        claimed = self.claims["journal"]
        complete = not torn and head == claimed["head"] and len(records) == claimed["records"]
        self.expect(complete, Check.JOURNAL, "the journal does not end at the attested position")
        digests = {r.facts.get("plan_digest") for r in records if r.kind is Kind.RUN_STARTED}
        self.expect(
            digests == {self.claims["plan"]["digest"]}, Check.JOURNAL, "the journal belongs to a different plan"
        )
        verified = {r.hash: r.facts for r in records if r.kind is Kind.STEP_VERIFIED}
        results = {r.facts.get("step"): r.facts for r in records if r.kind is Kind.STEP_RESULT}
        for step in self.claims["steps"]:
            record = verified.get(step["record"], {})
            said = record.get("step") == step["id"]
            self.expect(said, Check.JOURNAL, f"the journal does not show that step {step['id']} was verified")
            told = (record.get("facts", {}), results.get(step["id"], {}).get("facts", {}))
            same = not said or told == (step["seen"], step["result"])
            self.expect(same, Check.JOURNAL, f"the journal shows a different result of step {step['id']}")
        if plan is not None:
            left = open_steps(plan, records)
            self.expect(
                not left,
                Check.JOURNAL,
                f"{counted(len(left), 'step of the plan was', 'steps of the plan were')} never verified",
            )
        return tuple(records)

    def _leaves(self, lines: list[bytes], data: bytes, plan: ErasurePlan | None) -> None:
        claimed = self.claims["merkle"]
        self.expect(whole(data), Check.INCLUSION, "the last leaf is truncated")
        hashes = [merkle_tree.leaf_hash(line) for line in lines]
        self.expect(len(lines) == claimed["leaves"], Check.INCLUSION, "the number of leaves differs")
        self.expect(
            merkle_tree.root(hashes).hex() == claimed["root"], Check.INCLUSION, "the leaves do not match the root"
        )
        bodies = bodies_in(data)
        in_leaves = {(b.get("step"), b.get("record")) for b in bodies if b.get("kind") == "step"}
        for step in self.claims["steps"]:
            included = (step["id"], step["record"]) in in_leaves
            self.expect(included, Check.INCLUSION, f"step {step['id']} is in no leaf")
        by_digest = {h.hex() for h in hashes} | {str(b.get("sha256")) for b in bodies}
        plan_hex = self.claims["plan"]["digest"].removeprefix("sha256:")
        for subject in self.statement["subject"]:
            digests = set(subject["digest"].values())
            included = digests == {plan_hex} or digests <= by_digest
            self.expect(included, Check.INCLUSION, f"subject {subject['name']} is in no leaf")
        gone = {body.get("copy_id") for body in bodies if body.get("kind") == "erased"}
        for copy in plan.copies if plan else ():
            said = any(isinstance(e, dict) and e.get("what") == copy.id for e in self.claims["exceptions"])
            covered = copy.id in gone or (copy.strategy in STAYS and said)
            self.expect(covered, Check.COVERAGE, f"copy {copy.id} of the plan is not attested as erased")

    def _scope(self, lines: list[bytes], data: bytes) -> None:
        claimed = self.claims["scope"]
        same = lines_digest(lines) == claimed["digest"] and whole(data)
        self.expect(same, Check.SCOPE, "the scope differs from the scanned scope")
        self.expect(len(lines) == claimed["files"], Check.SCOPE, "the number of files in scope differs")
        # no byte, and a line end alone, are one empty line
        self.expect(any(lines), Check.SCOPE, "the scope is empty: nothing was verified")

    def _approvals(self) -> None:
        for number, claimed in enumerate(self.claims["approvals"]):
            name = f"approvals/{number:03}.json"
            data = self._read(name)
            if data is not None:
                self._approval(name, data, claimed)
        self.expect(bool(self.claims["approvals"]), Check.APPROVAL, "nobody approved")
        if self.given.approvers is None:
            self.notes.append("not checked: signatures of approvals and confirmations (no approver's key was given)")

    def _approval(self, name: str, data: bytes, claimed: str) -> None:
        if digest_of(data) != claimed:
            self.find(Check.APPROVAL, f"{name} differs from the attested bytes")
            return
        try:
            opened = dsse.unseal(data, self.given.approvers or ())
        except ReviewError:
            self.find(Check.APPROVAL, f"{name} is not an approval")
            return
        digests = [subject["digest"] for subject in opened.statement["subject"]]
        of_plan = digests == [{"sha256": self.claims["plan"]["digest"].removeprefix("sha256:")}]
        is_approval = opened.statement["predicateType"] == approval.PREDICATE_TYPE
        self.expect(of_plan and is_approval, Check.APPROVAL, f"{name} approves a different plan")
        if not opened.claimed:
            self.notes.append(f"{name} is not signed: the estate is local")
        if self.given.approvers is not None:
            self.expect(bool(opened.keyids), Check.APPROVAL, f"{name} is not signed by a known approver")

    def _confirmations(self) -> None:
        """A person's word, where a step has nothing else: the very bytes that the run took, about step and plan."""
        wanted = confirmed_by(self.claims)
        if not wanted:
            return
        there = sorted(path.name for path in (self.folder / "confirmations").glob("*.json"))
        read = [self._read(f"confirmations/{name}") for name in there]
        found = {digest_of(data): data for data in read if data is not None}
        for digest, step in wanted.items():
            if digest in found:
                self._confirmation(step, found[digest])
            elif len(there) < len(wanted):
                self.find(Check.MISSING, f"the evidence lacks the confirmation of step {step}")
            else:
                self.find(Check.CONFIRMATION, f"the confirmation of step {step} differs from the attested bytes")

    def _confirmation(self, step: str, data: bytes) -> None:
        try:
            opened = dsse.unseal(data, self.given.approvers or ())
        except ReviewError:
            self.find(Check.CONFIRMATION, f"the confirmation of step {step} is not valid")
            return
        digests = [subject["digest"] for subject in opened.statement["subject"]]
        of_plan = digests == [{"sha256": self.claims["plan"]["digest"].removeprefix("sha256:")}]
        is_word = opened.statement["predicateType"] == manual_step_confirmation.PREDICATE_TYPE
        of_step = opened.statement["predicate"]["step"] == step
        about = of_plan and is_word and of_step
        self.expect(about, Check.CONFIRMATION, f"the confirmation of step {step} concerns a different step or plan")
        if self.given.approvers is not None:
            known = bool(opened.keyids)
            self.expect(known, Check.CONFIRMATION, f"the confirmation of step {step} is not signed by a known person")

    def _extra(self) -> None:
        """What is no part of the evidence nobody has signed; what a link leads to may be another thing tomorrow."""
        known = {"plan.json", "journal.jsonl", "leaves.jsonl", REQUESTS, "scope.jsonl"}
        known |= {f"approvals/{number:03}.json" for number in range(len(self.claims["approvals"]))}
        known |= {f"confirmations/{number:03}.json" for number in range(len(confirmed_by(self.claims)))}
        own = (self.folder, self.folder / "approvals", self.folder / "confirmations")
        unlisted: list[OSError] = []
        there: list[Path] = []
        for here, folders, names in os.walk(self.folder, onerror=unlisted.append):
            links = [name for name in folders if Path(here, name).is_symlink()]
            empty = not (folders or names) and Path(here) not in own
            there += [Path(here)] if empty else (Path(here, name) for name in (*names, *links))
        seen = {path.relative_to(self.folder).as_posix(): path.is_symlink() for path in there}
        extra = [f"the link {name}" if seen[name] else name for name in sorted(seen) if seen[name] or name not in known]
        if extra:
            first, more = ", ".join(extra[:_NAMED]), len(extra) - _NAMED
            named = first + (f" and {more} more" if more > 0 else "")
            self.find(Check.EXTRA, f"the evidence contains files that the attestation does not list: {named}")
        self.expect(not unlisted, Check.EXTRA, f"{counted(len(unlisted), 'folder')} of the evidence cannot be listed")

    def _history(self) -> None:
        said = self.claims["log"]
        wrong = attestation_log.check_position(said)
        if self.given.log is not None:
            wrong += attestation_log.check_log(said, self.envelope, self.given.log)
        if self.given.previous is not None:
            before = open_envelope(self.given.previous, self.trusted)
            if isinstance(before, ProofFinding):
                wrong.append(f"the previous attestation: {before.message}")
            else:
                wrong += attestation_log.check_previous(said, self.given.previous, before["predicate"]["log"])
        elif said["previous"] is not None:
            self.notes.append(
                f"not checked: the previous attestation, of {said['previous']['plan']} (it was not given)"
            )
        if self.given.log is None:
            self.notes.append("not checked: later attestations (the log of attestations was not given)")
        for message in wrong:
            self.find(Check.CONSISTENCY, message)

    def _stamp(self) -> None:
        authority = self.claims["timestamp"]["authority"]
        if authority is None:
            self.expect(not self.given.authority, Check.TIMESTAMP, "the attestation states that it has no time stamp")
            self.notes.append("not checked: when it was signed (no time stamp authority was asked)")
        elif self.given.stamp is None:
            self.find(Check.MISSING, "the attestation states that it has a time stamp, but the time stamp is missing")
        elif not self.given.authority:
            self.notes.append("not checked: the time stamp (the authority's certificate was not given)")
        else:
            from pii_tracer.proof.rfc3161_timestamps import verify_stamp

            try:
                at = verify_stamp(self.given.stamp, self.envelope, list(self.given.authority))
            except ProofError as error:
                self.find(Check.TIMESTAMP, error.what)
                return
            early = parse_time(self.claims["scope"]["at"]) - at > _CLOCKS_APART
            self.expect(not early, Check.TIMESTAMP, "the time stamp is older than the scan that is attested")
