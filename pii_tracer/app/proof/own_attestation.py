"""Whether the attestation of a run in this state folder holds: asked before anything is destroyed because of it."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from pathlib import Path

from pii_tracer.app.execution.run_folder import RunFolder
from pii_tracer.app.proof.proof_check_inputs import attester_key, file_bytes
from pii_tracer.model.errors import PiiTracerError
from pii_tracer.proof.attestation_issuing import stamp_of
from pii_tracer.proof.attestation_log import LOG_NAME
from pii_tracer.proof.attestation_verifier import Given, verify_attestation
from pii_tracer.proof.attester_keys import public_files
from pii_tracer.proof.requests_tree.request_leaves import REQUESTS, read_leaves


def attestation_findings(folder: RunFolder, *, with_log: bool = False) -> tuple[str, ...] | None:
    """What does not hold of it: its signature by a key of this state folder, its plan, every file of its evidence, and
    that it has the time stamp that it names. Empty where all holds; None where the run has no attestation.

    with_log: also that it is in the estate's log of attestations, and that its run was not attested again.
    """
    if not folder.attestation.exists():
        return None
    stamp, log = stamp_of(folder.attestation), folder.state / LOG_NAME
    try:
        given = Given(
            stamp=file_bytes(stamp) if stamp.exists() else None,
            log=file_bytes(log) if with_log else None,
        )
        keys = [attester_key(path) for path in public_files(folder.state)]
        report = verify_attestation(file_bytes(folder.attestation), folder.evidence, keys, given)
    except PiiTracerError as error:
        return (str(error),)
    return tuple(finding.message for finding in report.findings)


def attested_persons(folder: RunFolder) -> frozenset[str]:
    """Keyed references of the persons whom the run's attestation is about; nobody where it does not hold."""
    files = (folder.attestation, folder.state / LOG_NAME, *public_files(folder.state), *folder.evidence.rglob("*"))
    return _persons(folder, frozenset(map(_seen, files)))


def _seen(path: Path) -> tuple[str, int, int]:
    try:
        status = path.stat()
    except OSError:
        return (str(path), 0, 0)
    return (str(path), status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=1024)
def _persons(folder: RunFolder, files: Hashable) -> frozenset[str]:
    """files: what was there. A run is checked once, as long as nothing of it changes."""
    if attestation_findings(folder, with_log=True) != ():
        return frozenset()
    return frozenset(leaf.subject for leaf in read_leaves(file_bytes(folder.evidence / REQUESTS)))
