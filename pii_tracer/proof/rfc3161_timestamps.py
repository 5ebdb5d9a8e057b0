"""RFC 3161 time stamps: an authority says that the attestation existed at a time. Verified offline.

The request is made over the envelope's bytes with SHA-256, so that `openssl ts -verify -data attestation.json` takes it
too. The certificate of the authority comes from the estate file or from the auditor, never from the answer.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from cryptography.x509 import Certificate, load_pem_x509_certificates
from rfc3161_client import HashAlgorithm, TimestampRequestBuilder, VerificationError, VerifierBuilder
from rfc3161_client import decode_timestamp_response as decode

from pii_tracer.common.http import NoAnswer, ask
from pii_tracer.model.errors import ProofError
from pii_tracer.proof.untrusted_json import MAX_SMALL_BYTES, read_limited

_TIMEOUT = 30.0


def load_certificates(path: Path) -> list[Certificate]:
    """The authority's root (and intermediate) certificates from a PEM file.

    Raises:
        ProofError: unreadable, or none in it.
    """
    try:
        return load_pem_x509_certificates(read_limited(path, MAX_SMALL_BYTES))
    except (OSError, ValueError):
        raise ProofError(
            "the time stamp authority's certificate cannot be read",
            where=str(path),
            todo="give the certificate as a PEM file",
        ) from None


def request_stamp(url: str, data: bytes, roots: list[Certificate]) -> bytes:
    """Ask an authority (RFC 3161, section 3.4: over HTTP) and check its answer; the answer's DER bytes.

    Raises:
        ProofError: not reachable, or its answer does not hold.
    """
    asked = TimestampRequestBuilder().data(data).hash_algorithm(HashAlgorithm.SHA256).build()
    headers = {"Content-Type": "application/timestamp-query"}
    try:
        stamp = ask(url, body=asked.as_bytes(), headers=headers, seconds=_TIMEOUT, limit=MAX_SMALL_BYTES)
    except NoAnswer as error:
        todo = (
            "correct the authority's address, or wait until it answers, then run `pii-tracer resume` (nothing was "
            "attested yet)"
        )
        raise ProofError(f"the time stamp authority {error}", where=url, todo=todo) from None
    verify_stamp(stamp, data, roots, nonce=asked.nonce)
    return stamp


def verify_stamp(stamp: bytes, data: bytes, roots: list[Certificate], *, nonce: int | None = None) -> datetime:
    """The time at which an authority saw `data`, in UTC.

    Raises:
        ProofError: the stamp is of other data, not by this authority, or was changed.
    """
    try:
        answer = decode(stamp)
        builder = VerifierBuilder(nonce=nonce, roots=roots)
        builder.build().verify_message(answer, data)
        return answer.tst_info.gen_time
    except (VerificationError, ValueError) as error:
        raise ProofError(
            f"the time stamp is not valid for this file ({type(error).__name__})",
            todo="use the time stamp made for this file, and the certificate of the authority that made it",
        ) from None
