"""The attestation of a run, checked offline, and proved leaf by leaf."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.app.execution.run_folder import PROOFS, RunFolder, choose_run, evidence_of
from pii_tracer.app.proof.proof_check_inputs import approver_key, attester_key, authority_certificates, file_bytes
from pii_tracer.model.errors import UsageError
from pii_tracer.proof.findings import Check, ProofFinding, Report

if TYPE_CHECKING:
    from pii_tracer.proof.requests_tree.request_proof import RequestProof


def attest_verify(
    attestation: Path,
    keys: Sequence[Path],
    *,
    evidence: Path | None = None,
    approver_keys: Sequence[Path] = (),
    previous: Path | None = None,
    log: Path | None = None,
    stamp: Path | None = None,
    authority: Path | None = None,
    trail: Path | None = None,
    trail_keys: Path | None = None,
    access_logs: Path | None = None,
    requests: Sequence[str] = (),
) -> Report:
    """Check an attestation and its evidence offline: signature, plan, approvals, journal, tree, scope, history, stamp.

    attestation: or the proof of one request, which has its attestation and stamp in it; evidence is checked with it
    only where it is named. requests: ids that it must be about; not compared without any.
    keys: the attester's public keys (PEM). evidence, previous, stamp: those beside the attestation, without one. With a
    trail (and its public keys) or access logs, every deleted object version is also bound to the record of its
    deletion. What does not hold is a finding, and raises nothing.

    Raises:
        UsageError: a file or folder that was named is missing, or a trail without its keys or without evidence.
        ReviewError, ProofError: a key or certificate cannot be read, or a file is too large.
    """
    from pii_tracer.proof.attestation_issuing import stamp_of
    from pii_tracer.proof.attestation_verifier import Given, verify_attestation
    from pii_tracer.proof.requests_tree.request_proof import proof_in

    if (trail is None) != (trail_keys is None):
        raise UsageError("a trail can be checked only with its public keys", todo="give both --trail and --trail-keys")
    for folder in (trail, access_logs):
        if folder is not None and not folder.is_dir():
            raise UsageError("the folder is missing", where=str(folder), todo="name the right one")
    envelope = file_bytes(attestation)
    try:
        of = proof_in(envelope)
    except ValueError:
        return Report((ProofFinding(Check.FORM, "the proof of a request does not have the form that it must have"),))
    if of:
        envelope, stamped = of.envelope, of.time_stamp
    else:
        evidence = evidence or evidence_of(attestation)
        stamped = file_bytes(stamp_of(attestation)) if stamp_of(attestation).exists() else None
    if evidence is None and (trail or access_logs):
        raise UsageError(
            "the deletions are listed in the evidence file, and `--evidence` is missing",
            todo="name the file with `--evidence`",
        )
    previous = previous or _sibling(attestation, envelope)
    given = Given(
        approvers=[approver_key(path) for path in approver_keys] or None,
        previous=file_bytes(previous) if previous else None,
        log=file_bytes(log) if log else None,
        stamp=file_bytes(stamp) if stamp else stamped,
        authority=authority_certificates(authority) if authority else None,
        requests=requests or None,
    )
    report = verify_attestation(envelope, evidence, [attester_key(path) for path in keys], given, of)
    if not report.findings and (fault := _fault_of_log(attestation, evidence)):
        report = replace(report, findings=(ProofFinding(Check.DELETION_LOG, fault),))
    if evidence and (trail or access_logs):
        # only evidence that holds says what was deleted; otherwise its findings come first
        if not report.findings:
            from pii_tracer.proof.cloudtrail.deletion_binding import check_trail

            logs = check_trail(evidence, trail, file_bytes(trail_keys) if trail_keys else b"", access_logs)
            report = replace(report, findings=logs.findings, notes=(*report.notes, *logs.notes))
    else:
        beside = "not checked: deletions on S3 (neither a trail nor access logs were given)"
        report = replace(report, notes=(*report.notes, beside))
    return report


def _fault_of_log(attestation: Path, evidence: Path | None) -> str | None:
    """What is wrong with the deletion log of the state folder in which an attestation lies that holds."""
    from pii_tracer.app.proof.deletion_log_check import log_fault, run_of
    from pii_tracer.review.plan_file import load_plan

    folder = run_of(attestation)
    return log_fault(folder, load_plan(evidence / "plan.json").plan.estate) if folder and evidence else None


def _sibling(attestation: Path, envelope: bytes) -> Path | None:
    """The attestation before this one, where it lies in its own run's folder beside this run's. attestation: the file
    that is checked, also a proof out of it in its run's folder."""
    from pii_tracer.model.plan import digest_of
    from pii_tracer.proof.attestation_verifier import previous_of

    digest, plan = previous_of(envelope) or ("", "")
    if not plan or Path(plan).name != plan or plan in (".", ".."):
        return None
    own = attestation.resolve().parent
    runs = own.parent.parent if own.name == PROOFS else own.parent
    others = [p for p in sorted((runs / plan).glob("attestation*.json")) if p != attestation.resolve()]
    # where none is that one, the run's own is given all the same: then it was changed, and the check says so
    return next((p for p in others if digest_of(file_bytes(p)) == digest), others[0] if others else None)


def prove_one(
    state: Path,
    run: str | None = None,
    *,
    uri: str | None = None,
    step: str | None = None,
    leaf: int | None = None,
    request: str | None = None,
    out: Path | None = None,
) -> Path:
    """Write the proof of one request, object, step or leaf of a run, which needs none of the others, and return its
    path.

    Raises:
        UsageError: not one thing is named, there is no such run or request, or a file of it is missing.
        ProofError: the attestation knows no such leaf, or has other requests than the evidence.
    """
    from pii_tracer.common.atomic_files import write_atomic
    from pii_tracer.proof.inclusion_proof import prove as prove_leaf

    if sum(item is not None for item in (uri, step, leaf, request)) != 1:
        raise UsageError(
            "exactly one thing to prove must be named", todo="use one of --request, --object, --step and --leaf"
        )
    folder = choose_run(state, run, unfinished=False)
    if request is not None:
        path = out or folder.proof_of(request)
        write_atomic(path, proof_of_request(folder, request).to_bytes())
        return path
    leaves = file_bytes(folder.evidence / "leaves.jsonl")
    proof = prove_leaf(file_bytes(folder.attestation), leaves, uri=uri, step=step, index=leaf)
    path = out or folder.path / PROOFS / f"leaf-{proof.index:06}.json"
    write_atomic(path, proof.to_bytes())
    return path


def proof_of_request(folder: RunFolder, request: str) -> RequestProof:
    """The proof of one request of a run, with the run's attestation and time stamp in it.

    Raises:
        UsageError: the attestation is not about this request, or a file of the run is missing.
        ProofError: the requests in the evidence are not those of the attestation.
    """
    from pii_tracer.proof.attestation_issuing import stamp_of
    from pii_tracer.proof.requests_tree.request_leaves import REQUESTS
    from pii_tracer.proof.requests_tree.request_proof import prove_request

    stamp = stamp_of(folder.attestation)
    stamped = file_bytes(stamp) if stamp.exists() else None
    leaves = file_bytes(folder.evidence / REQUESTS)
    proof = prove_request(file_bytes(folder.attestation), stamped, leaves, request)
    if proof is None:
        todo = f"name one of those in {folder.evidence / REQUESTS}"
        raise UsageError(f"the run answered no request `{request}`", where=str(folder.path), todo=todo)
    return proof


def check_object(proof: Path, attestation: Path, keys: Sequence[Path]) -> Report:
    """Check the proof of one object, with the attestation and without any other leaf.

    Raises:
        UsageError: a file is missing.
        ReviewError: a key cannot be read.
    """
    from pii_tracer.proof.inclusion_proof import verify_object

    return Report(verify_object(file_bytes(proof), file_bytes(attestation), [attester_key(path) for path in keys]))
