"""An attestation about all requests of a plan, as tests make it."""

from __future__ import annotations

from collections.abc import Callable

from pii_tracer.proof.attestation import Attestation, Proven, basis_of
from pii_tracer.proof.attestation_log import History
from pii_tracer.review import dsse


def attest(
    proven: Proven, key: dsse.PrivateKey, *, nonce: Callable[[], str], history: History | None = None
) -> Attestation:
    """history: of the log, empty without one."""
    return basis_of(proven, nonce=nonce).about(None, history or History(()), key)
