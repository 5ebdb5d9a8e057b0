"""Files that a proof is checked with: attestations, keys, certificates, time stamps."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.model.errors import UsageError

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

    from pii_tracer.review.dsse import PublicKey


def file_bytes(path: Path) -> bytes:
    """What a file of a proof holds. Raises `UsageError` where it is missing, `ProofError` where it is too large."""
    from pii_tracer.proof.untrusted_json import read_limited

    try:
        return read_limited(path)
    except OSError:
        raise UsageError("the file is missing", where=str(path), todo="name the right one") from None


def attester_key(path: Path) -> PublicKey:
    """The public key of an attester."""
    from pii_tracer.review.trusted_keys import public_key

    return public_key(file_bytes(path), str(path))


def approver_key(path: Path) -> PublicKey:
    """The public key of an approver."""
    from pii_tracer.review import trusted_keys

    return trusted_keys.approver_key(file_bytes(path), str(path))


def authority_certificates(path: Path) -> list[Certificate]:
    """The certificates of a time stamp authority."""
    from pii_tracer.proof.rfc3161_timestamps import load_certificates

    return load_certificates(path)


def stamped_at(stamp: bytes, envelope: bytes, roots: list[Certificate]) -> datetime:
    """When an attestation was stamped, as the authority signed it."""
    from pii_tracer.proof.rfc3161_timestamps import verify_stamp

    return verify_stamp(stamp, envelope, roots)
