"""RFC 3161 time stamps: an authority says that the attestation existed at a time. Verified offline.

The request is made over the envelope's bytes with SHA-256, so that `openssl ts -verify -data attestation.json` takes it
too. The certificate of the authority comes from the estate file or from the auditor, never from the answer.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from cryptography.x509 import Certificate, load_pem_x509_certificates
from rfc3161_client import HashAlgorithm, TimestampRequestBuilder, VerificationError, VerifierBuilder
from rfc3161_client import decode_timestamp_response as decode

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
            "the time stamp authority's certificate cannot be read", where=str(path), todo="give it as PEM"
        ) from None


def request_stamp(url: str, data: bytes, roots: list[Certificate]) -> bytes:
    """Ask an authority (RFC 3161, section 3.4: over HTTP) and check its answer; the answer's DER bytes.

    Raises:
        ProofError: not reachable, or its answer does not hold.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise ProofError("a time stamp authority is reached by http or https", where=url, todo="mend the estate file")
    asked = TimestampRequestBuilder().data(data).hash_algorithm(HashAlgorithm.SHA256).build()
    request = urllib.request.Request(  # noqa: S310 (the scheme was checked)
        url, data=asked.as_bytes(), headers={"Content-Type": "application/timestamp-query"}
    )
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310
            stamp: bytes = answer.read(MAX_SMALL_BYTES)
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise ProofError(
            f"the time stamp authority does not answer: {type(error).__name__}",
            where=url,
            todo="nothing was attested yet: `pii-tracer resume` when it does",
        ) from None
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
            f"the time stamp does not hold ({type(error).__name__})",
            todo="get the stamp that belongs to these bytes, or the certificate of the authority that made it",
        ) from None
