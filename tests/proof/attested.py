"""An attestation about all requests of a plan, as tests make it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pii_tracer.proof.attestation import Attestation, Proven, basis_of
from pii_tracer.proof.attestation_log import History
from pii_tracer.proof.requests_tree.request_leaves import REQUESTS, leaves_under
from pii_tracer.review import dsse


def attest(
    proven: Proven, key: dsse.PrivateKey, *, nonce: Callable[[], str], history: History | None = None
) -> Attestation:
    """history: of the log, empty without one."""
    return basis_of(proven, nonce=nonce, salt=lambda _: nonce()).sealed(history or History(()), key)


def requests_of(attestation: Path) -> tuple[str, ...]:
    """Ids of the requests that a run's attestation is about, by its evidence."""
    said = dsse.unseal(attestation.read_bytes(), ()).statement["predicate"]["requests"]
    return tuple(leaf.id for leaf in leaves_under(said, (attestation.parent / "evidence" / REQUESTS).read_bytes()))
