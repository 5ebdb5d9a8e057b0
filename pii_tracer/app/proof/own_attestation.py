"""Whether the attestation of a run in this state folder holds: asked before anything is destroyed because of it."""

from __future__ import annotations

from pii_tracer.app.execution.run_folder import RunFolder
from pii_tracer.app.proof.proof_files import attester_key, file_bytes
from pii_tracer.model.errors import PiiTracerError
from pii_tracer.proof.attestation_verifier import verify_attestation
from pii_tracer.proof.attester_keys import public_files
from pii_tracer.proof.requests_tree.request_leaves import REQUESTS, read_leaves


def attestation_findings(folder: RunFolder) -> tuple[str, ...] | None:
    """What does not hold of it: its signature by a key of this state folder, its plan, and every file of its evidence.
    Empty where all holds; None where the run has no attestation."""
    if not folder.attestation.exists():
        return None
    try:
        keys = [attester_key(path) for path in public_files(folder.state)]
        report = verify_attestation(file_bytes(folder.attestation), folder.evidence, keys)
    except PiiTracerError as error:
        return (str(error),)
    return tuple(finding.message for finding in report.findings)


def attested_persons(folder: RunFolder) -> frozenset[str]:
    """Keyed references of the persons whom the run's attestation is about; nobody where it does not hold."""
    if attestation_findings(folder) != ():
        return frozenset()
    return frozenset(leaf.subject for leaf in read_leaves(file_bytes(folder.evidence / REQUESTS)))
