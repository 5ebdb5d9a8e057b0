"""The attestation of an erasure: in-toto Statement v1 in a signed DSSE envelope, and the evidence beside it.

It says what was asserted, when, by whom, and that a named scan over an enumerated, hashed set of files found nothing.
It is refused while anything is open or left.

It names no request: whom it is about is a tree, of which it signs the root (`pii_tracer.proof.requests_tree`).

Evidence folder: `plan.json`, `journal.jsonl`, `approvals/NNN.json`, `leaves.jsonl`, `requests.jsonl`, `scope.jsonl`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pii_tracer.common.atomic_files import sweep_temporaries, write_atomic
from pii_tracer.common.plurals import counted
from pii_tracer.model.actions import CONFIRMED, Action
from pii_tracer.model.canonical_json import iso
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.errors import ProofError
from pii_tracer.model.plan import HELD, Copy, ErasurePlan, digest_of
from pii_tracer.proof import merkle_tree
from pii_tracer.proof.attestation_log import History
from pii_tracer.proof.evidence_leaves import (
    Erased,
    Reserved,
    ReservedKind,
    ScopeFile,
    evidence_leaves,
    lines_digest,
    scope_lines,
)
from pii_tracer.proof.findings import PREDICATE_TYPE
from pii_tracer.proof.open_requests import OpenRequest, left_in, said_of_open
from pii_tracer.proof.requests_tree.request_leaves import REQUESTS, request_leaves, said_of
from pii_tracer.proof.store_blind_spots import unlisted
from pii_tracer.review import dsse
from pii_tracer.review.plan_file import LoadedPlan
from pii_tracer.run.journal import Kind, Record, parse
from pii_tracer.scan.hits import Reading
from pii_tracer.verify.verdicts import to_be_seen

_ATTESTS = "run `pii-tracer resume`, which searches the copies and attests the run"
AGAIN = "computed_again"
"""Key of `pii_tracer.verify.verdicts.ComputedAgain` in the facts of a verification."""
READING = "reading"
"""Key of `pii_tracer.scan.hits.Reading` in a step's facts and in the scope."""
LEFT_OUT_CELLS = "cells that equal a key of the person are left out there"
COMPUTED_AGAIN = "computed again by its owner"
"""How the reasons of these exceptions begin: the certificate knows them by it."""
JOURNAL, LEAVES = "journal.jsonl", "leaves.jsonl"
NUMBERED = ("approvals", "confirmations")
"""Folders of the evidence whose files are `000.json` and so on."""
LIMITS = (
    "copies outside the inventory that the plan names by its digest",
    "copies that people or jobs made outside the estate, or after the time of the scan",
    "bytes on media below the storage's interface, and in backups that the estate file does not declare",
)
NO_AUTHORITY = "when it was signed: no time stamp authority was asked, the times are the machine's own"


@dataclass(frozen=True)
class Others:
    """Everybody else's rows, before against after: copies compared, rows lost, copies whose rows differ."""

    compared: int = 0
    rows_lost: int = 0
    changed: int = 0


@dataclass(frozen=True)
class Proven:
    """All that an attestation is made of.

    journal: bytes of the run's journal.
    residue: what the verifier still found. scanned_at: end of its scan. clean: ids of the copies of which this run's
    own verdict says that nothing is left. exceptions: beside those that the plan itself
    holds. confirmations: signed words of persons, kept in the evidence; their digests are in the steps' results.
    authority: URL of the time stamp authority
    that will be asked about the envelope. not_asked: what stores refuse to tell and a named person waived.
    reading: how the files of the scope that were not all decoded came to be searched. still: requests that stay open,
    since something of their persons is left; `clean` is about all others then.
    """

    loaded: LoadedPlan
    journal: bytes
    approvals: Sequence[bytes]
    scope: Sequence[ScopeFile]
    scanned_at: datetime
    clean: Collection[str]
    erased: Sequence[Erased] = ()
    residue: Sequence[str] = ()
    exceptions: Sequence[Reserved] = ()
    tools: Mapping[str, str] = field(default_factory=dict)
    confirmations: Sequence[bytes] = ()
    authority: str | None = None
    others: Others = Others()
    not_asked: Sequence[str] = ()
    reading: Reading = field(default_factory=Reading)
    still: Sequence[OpenRequest] = ()


@dataclass(frozen=True)
class Attestation:
    """The envelope and the files of the evidence folder (relative path -> bytes)."""

    envelope: bytes
    evidence: Mapping[str, bytes]

    def write_evidence(self, folder: Path) -> None:
        """Write the evidence folder, each file whole or not at all. The envelope comes last, see `proof.publish`.

        What an earlier attestation of the run had beyond that, and what killed writers left, goes.
        """
        for name, data in self.evidence.items():
            write_atomic(folder / name, data)
        for numbered in NUMBERED:
            for path in (folder / numbered).glob("[0-9][0-9][0-9].json"):
                if f"{numbered}/{path.name}" not in self.evidence:
                    path.unlink()
            sweep_temporaries(folder / numbered, 0.0)
        sweep_temporaries(folder, 0.0)


@dataclass(frozen=True)
class Basis:
    """What the attestation of a run says, but for its place in the log."""

    subjects: Sequence[Mapping[str, Any]]
    predicate: Mapping[str, Any]
    evidence: Mapping[str, bytes]

    def sealed(self, history: History, key: dsse.PrivateKey) -> Attestation:
        """The attestation. history: of the estate's log of attestations."""
        predicate = {**self.predicate, "log": history.position()}
        return Attestation(dsse.seal(dsse.statement(PREDICATE_TYPE, self.subjects, predicate), key), self.evidence)


def basis_of(proven: Proven, *, nonce: Callable[[], str], salt: Callable[[str], str]) -> Basis:
    """What the attestation of a finished erasure says.

    nonce: gives at least 128 random bits as text at each call. salt: gives 128 random bits as hex for a request's id.

    Raises:
        ProofError: residue, open steps, an empty scope, no approval, or a journal of another plan.
        JournalError: the journal is broken.
    """
    records, torn = parse(proven.journal)
    _refuse_open(proven, records, torn)
    leaves = evidence_leaves(records, proven.still, proven.erased, nonce)
    hashes = [merkle_tree.leaf_hash(line) for line in leaves]
    scope = scope_lines(proven.scope)
    still = {item.request for item in proven.still}
    answered = (request for request in proven.loaded.plan.requests if request.id not in still)
    requests = [leaf.line() for leaf in request_leaves(answered, salt)]
    predicate = {
        "requests": said_of(requests),
        **said_of_open(proven.still),
        **_predicate(proven, records, merkle_tree.root(hashes), len(leaves), scope),
    }
    first_erased = len(leaves) - len(proven.erased)
    subjects = [_subject(item, hashes[first_erased + i]) for i, item in enumerate(proven.erased)]
    subjects = subjects or [{"name": proven.loaded.name, "digest": {"sha256": _hex(proven.loaded.digest)}}]
    taken = [data for data in proven.confirmations if digest_of(data) in confirmed_by(predicate)]
    evidence = {
        "plan.json": proven.loaded.raw,
        JOURNAL: proven.journal,
        LEAVES: _joined(leaves),
        REQUESTS: _joined(requests),
        "scope.jsonl": _joined(scope),
        **{f"approvals/{i:03}.json": data for i, data in enumerate(proven.approvals)},
        **{f"confirmations/{i:03}.json": data for i, data in enumerate(taken)},
    }
    return Basis(subjects, predicate, evidence)


def confirmed_by(predicate: Mapping[str, Any]) -> dict[str, str]:
    """The words of persons that steps took: digest of the word -> id of its step."""
    results = ((step["result"], step["id"]) for step in predicate["steps"])
    return {result["confirmation"]: step for result, step in results if "confirmation" in result}


def open_steps(plan: ErasurePlan, records: Sequence[Record]) -> tuple[str, ...]:
    """Steps of the plan that no record calls verified."""
    verified = {r.facts.get("step") for r in records if r.kind is Kind.STEP_VERIFIED}
    return tuple(step.id for step in plan.steps if step.id not in verified)


def _refuse_open(proven: Proven, records: Sequence[Record], torn: int) -> None:
    plan = proven.loaded.plan
    digests = {r.facts.get("plan_digest") for r in records if r.kind is Kind.RUN_STARTED}
    if torn or digests != {proven.loaded.digest}:
        raise ProofError("the journal is damaged, or belongs to a different plan", todo=_ATTESTS)
    if len({request.id for request in plan.requests}) != len(plan.requests):
        raise ProofError(
            "two requests of the plan have the same id", todo="give each request a different id, then plan again"
        )
    still = {item.request for item in proven.still}
    left_of = {item.subject for item in proven.still}
    if proven.residue or all(request.id in still for request in plan.requests):
        raise ProofError(
            f"the person is still in {counted(len(proven.residue), 'place')}",
            todo="make a new plan for the residue that the run's report lists",
        )
    if not left_in(records) <= left_of or any(r.subject in left_of and r.id not in still for r in plan.requests):
        raise ProofError(
            "data is left of a person whose request would be attested",
            todo="make a new plan for the residue that the run's report lists",
        )
    if proven.others.rows_lost or proven.others.changed:
        raise ProofError(
            "rows of other people were lost or changed", todo="restore the rows that the run's report lists"
        )
    left = open_steps(plan, records)
    if left:
        raise ProofError(f"{counted(len(left), 'step is', 'steps are')} open, first {left[0]}", todo=_ATTESTS)
    if records[-1].kind is not Kind.RUN_FINISHED or records[-1].facts.get("state") != "complete":
        raise ProofError("the run has not finished", todo=_ATTESTS)
    blocked = [copy.id for copy in plan.copies if copy.strategy is Strategy.BLOCKED]
    if blocked:
        raise ProofError(
            f"{counted(len(blocked), 'copy is', 'copies are')} blocked, first {blocked[0]}",
            todo="remove the cause for each blocked copy, then plan again",
        )
    unseen = [copy.id for copy in to_be_seen(plan) if copy.id not in proven.clean]
    if unseen:  # whatever the plan's steps were: nobody attests what nobody looked at
        raise ProofError(
            f"{counted(len(unseen), 'copy has', 'copies have')} no clean verdict, first {unseen[0]}",
            todo="make a new plan for the copies that the report calls unverified",
        )
    if not plan.complete:
        raise ProofError(
            "the plan leaves copies out, so it is not a complete erasure",
            todo="make a plan for the copies that were left out",
        )
    if not proven.scope:
        raise ProofError("the scope is empty: nothing was verified", todo=_ATTESTS)
    if not proven.approvals:
        raise ProofError(
            "the run has no approval to attest", todo="restore the run's approvals, then run `pii-tracer resume`"
        )


def _predicate(
    proven: Proven, records: Sequence[Record], root: bytes, size: int, scope: Sequence[bytes]
) -> dict[str, Any]:
    plan = proven.loaded.plan
    at, scope_digest = iso(proven.scanned_at), lines_digest(scope)
    reading = {READING: proven.reading.model_dump(mode="json")} if not proven.reading.is_whole else {}
    return {
        "plan": {"id": plan.plan_id, "digest": proven.loaded.digest, "subjects_digest": plan.subjects_digest},
        "inventory_digest": plan.inventory_digest,
        "approvals": [digest_of(data) for data in proven.approvals],
        "steps": _steps(plan, records),
        "journal": {"head": records[-1].hash, "records": len(records)},
        "merkle": {"root": root.hex(), "leaves": size},
        "scope": {"files": len(scope), "digest": scope_digest, "at": at, **reading},
        "others": asdict(proven.others),
        "tools": dict(proven.tools),
        "exceptions": [item.model_dump(mode="json") for item in (*exceptions_of(plan, records), *proven.exceptions)],
        "statement": f"not found in scope {scope_digest} ({counted(len(scope), 'file')}) at time {at}"
        + _but(proven.still),
        "timestamp": {"authority": proven.authority},
        "not_proved": [
            *LIMITS,
            *keys_by_rows_alone(plan),
            *on_owners_word(plan),
            *unlisted(plan, proven.not_asked),
            *([] if proven.authority else [NO_AUTHORITY]),
        ],
    }


def _but(still: Sequence[OpenRequest]) -> str:
    if not still:
        return ""
    others = counted(len({item.request for item in still}), "other request")
    return f"; the scope may hold values of {others} of the run, still open"


def _steps(plan: ErasurePlan, records: Sequence[Record]) -> list[dict[str, Any]]:
    results = {r.facts["step"]: r for r in records if r.kind is Kind.STEP_RESULT}
    verified = {r.facts["step"]: r for r in records if r.kind is Kind.STEP_VERIFIED}
    return [
        {
            "id": step.id,
            "copy": step.copy_,
            "action": step.action,
            "result": results[step.id].facts.get("facts", {}) if step.id in results else {},
            "seen": verified[step.id].facts.get("facts", {}),
            "verified_at": verified[step.id].time,
            "record": verified[step.id].hash,
        }
        for step in plan.steps
    ]


def exceptions_of(plan: ErasurePlan, records: Sequence[Record]) -> list[Reserved]:
    """What stays by right, and what a named person answers for."""
    found = []
    holds = {hold.id: hold for hold in plan.holds}
    for copy in plan.copies:
        if copy.strategy is Strategy.DESTROY_KEY:
            why = "the person's ciphertext is kept: the key that opened it was destroyed"
            found.append(Reserved(kind=ReservedKind.SEALED, what=copy.id, why=why))
        if copy.strategy is Strategy.RECOMPUTED:
            found += _recomputed(plan, copy, records)
        if copy.strategy not in HELD:
            continue
        by = [holds[i] for i in copy.exemption.holds if i in holds] if copy.exemption else []
        until = copy.exemption.until if copy.exemption else None
        kind = ReservedKind.HOLD if by else ReservedKind.EXEMPTION
        who = ", ".join(sorted({hold.approver for hold in by})) or None
        found.append(Reserved(kind=kind, what=copy.id, why=copy.reason, who=who, until=iso(until) if until else None))
    words = {r.facts["step"]: r.facts.get("facts", {}) for r in records if r.kind is Kind.STEP_RESULT}
    for step in plan.steps:
        if step.action in CONFIRMED and step.id in words:
            word = words[step.id]
            said = f"confirmed as {word.get('role')} on {word.get('confirmed_at')}"
            is_task = step.action is Action.OWNER_TASK
            why = f"{step.parameters['act']}: {said}" if is_task else f"nobody looked at it: {said}, a person's word"
            who = str(word.get("confirmed_by"))
            found.append(Reserved(kind=ReservedKind.CONFIRMED, what=step.copy_ or step.id, why=why, who=who))
    for gap in plan.gaps:
        if gap.waiver:
            waiver = gap.waiver
            found.append(
                Reserved(kind=ReservedKind.WAIVED, what=gap.id, why=waiver.why, who=waiver.who, until=iso(waiver.until))
            )
    day = plan.created_at.date().isoformat()
    for item in plan.not_keys:
        why = f"{LEFT_OUT_CELLS}, by a person's word of {day}: {item.told}"
        found.append(Reserved(kind=ReservedKind.CONFIRMED, what=item.name, why=why, who=item.owner))
    return found


def recomputed_words(facts: Mapping[str, Any]) -> str:
    """What was verified of a copy that its owner computed again. facts: of its verification."""
    seen = facts.get(AGAIN) or {}
    before, after = (int(seen.get(name, 0)) for name in ("before", "after"))
    now = (
        f"{counted(after, 'file is', 'files are')} there, all from after its job began" if after else "no file is there"
    )
    return (
        f"{COMPUTED_AGAIN}, not erased, and no proof by bytes. When its sources had been erased,"
        f" {counted(before, 'file was', 'files were')} there, and none of these is left. Now {now}. The"
        " counts themselves were not compared, and a file that was merged or compressed out of old ones is not known"
    )


def on_owners_word(plan: ErasurePlan) -> tuple[str, ...]:
    """What nobody but the owners knows of the copies that they computed again."""
    return tuple(
        f"{copy.id}: that the recorded job ran, from the erased sources alone, when its owner says that it began; and"
        " that no run of it from before that wrote later. This is the owner's word"
        for copy in plan.copies
        if copy.strategy is Strategy.RECOMPUTED
    )


def _recomputed(plan: ErasurePlan, copy: Copy, records: Sequence[Record]) -> list[Reserved]:
    """Nothing before it was verified."""
    look = next((s.id for s in plan.steps if s.copy_ == copy.id and s.action is Action.VERIFY_COPY), None)
    seen = [r.facts.get("facts", {}) for r in records if r.kind is Kind.STEP_VERIFIED and r.facts["step"] == look]
    gap = next((gap for gap in plan.gaps if gap.task and gap.dataset == copy.dataset), None)
    who = gap.waiver.who if gap and gap.waiver else None
    kind = ReservedKind.CONFIRMED
    return [Reserved(kind=kind, what=copy.id, why=recomputed_words(facts), who=who) for facts in seen[-1:]]


def keys_by_rows_alone(plan: ErasurePlan) -> tuple[str, ...]:
    """Keys of several columns that copies are erased by: no bytes are searched for them."""
    terms = (term for copy in plan.copies if copy.places for term in copy.places.terms if term.beside)
    return tuple(
        f"the key {key} was compared in rows of tables and not in bytes: each of its columns can equal another"
        " person's. Files were searched for the person's identifiers alone"
        for key in sorted({term.key_set.partition("|")[0] for term in terms})
    )


def _subject(item: Erased, leaf: bytes) -> dict[str, Any]:
    """Where the bytes' own digest is not known, the subject is bound to its evidence leaf instead, and says so."""
    name = item.uri if item.version_id is None else f"{item.uri}?versionId={item.version_id}"
    return {"name": name, "digest": {"sha256": item.sha256} if item.sha256 else {"evidenceLeafSha256": leaf.hex()}}


def _hex(digest: str) -> str:
    return digest.removeprefix("sha256:")


def _joined(lines: Sequence[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)
