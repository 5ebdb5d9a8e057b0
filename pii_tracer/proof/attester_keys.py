"""The attester's key: in a file, in a secret of the environment, or in AWS KMS, which never gives it away.

KMS signs attestations with ECDSA on P-256 over their SHA-256: its Ed25519 keys take messages of 4,096 bytes at most
(https://docs.aws.amazon.com/kms/latest/APIReference/API_Sign.html), and an attestation is longer.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key

from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.config.proof import AttestationKey, KmsKey
from pii_tracer.lake.keys.kms.key_state import kms_client
from pii_tracer.model.errors import ProofError
from pii_tracer.proof.aws_refusals import asked
from pii_tracer.review.trusted_keys import (
    generate,
    load_private,
    private_key,
    public_pem,
)

_ALGORITHM = "ECDSA_SHA_256"


@dataclass(frozen=True)
class KmsSigner:
    """A key in AWS KMS. public: as KMS gave it when the signer was made."""

    key_id: str
    public: EllipticCurvePublicKey
    _client: Any = field(repr=False)

    def sign(self, message: bytes) -> bytes:
        """The DER-encoded signature, checked with `public`: an alias can be moved to another key at any time.

        Raises:
            ProofError: refused, or signed by another key.
        """
        digest = hashlib.sha256(message).digest()
        answer = _asked(
            lambda: self._client.sign(
                KeyId=self.key_id, Message=digest, MessageType="DIGEST", SigningAlgorithm=_ALGORITHM
            ),
            self.key_id,
        )
        signature = bytes(answer["Signature"])
        try:
            self.public.verify(signature, message, ECDSA(SHA256()))
        except InvalidSignature:
            raise ProofError(
                "AWS KMS signed with a key that differs from the public key that it returned",
                where=self.key_id,
                todo="run `pii-tracer resume`",
            ) from None
        return signature


def attester(settings: AttestationKey | None, base: Path, state: Path, *, local: bool) -> Ed25519PrivateKey | KmsSigner:
    """The key that the estate file names; `keys/attest.pem` in the state folder where it names none.

    The public half is kept beside that file's place, so that commands find it. On a local estate a missing key of a
    file is made.

    Raises:
        ProofError, ReviewError: there is none, or it cannot sign.
    """
    key: Ed25519PrivateKey | KmsSigner
    if settings is not None and settings.kms is not None:
        key = _kms(settings.kms)
        _publish(state, key.public)
    elif settings is not None and settings.environment is not None:
        key = _from_environment(settings.environment)
        _publish(state, key.public_key())
    else:
        path = base / settings.file if settings is not None and settings.file else state / "keys" / "attest.pem"
        key = _from_file(path, local)
        _publish(state, key.public_key())
    return key


def public_file(state: Path) -> Path:
    """Where the public half of the key lies that signed last."""
    return state / "keys" / "attest.pem.pub"


def public_files(state: Path) -> list[Path]:
    """The public halves of all keys that signed, the last one first."""
    return [public_file(state), *sorted((state / "keys").glob("attest-*.pem.pub"))]


def _publish(state: Path, public: Any) -> None:
    """An older key stays under its own name: what it signed is still to be checked."""
    path, pem = public_file(state), public_pem(public)
    if path.exists() and path.read_bytes() == pem:
        return
    if path.exists():
        before = path.read_bytes()
        write_atomic(path.with_name(f"attest-{hashlib.sha256(before).hexdigest()[:12]}.pem.pub"), before)
    write_atomic(path, pem)


def _from_file(path: Path, local: bool) -> Ed25519PrivateKey:
    if not path.exists():
        if not local:
            raise ProofError(
                "the estate has no key for attestations",
                where=str(path),
                todo="put the estate's Ed25519 key into this file",
            )
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        generate(path)
    return load_private(path)


def _from_environment(name: str) -> Ed25519PrivateKey:
    secret = os.environ.get(name)
    if not secret:
        raise ProofError(
            "the environment variable with the attester's key is not set",
            where=name,
            todo="set it to the key in PEM form",
        )
    return private_key(secret.encode(), f"the variable {name}")


def _kms(settings: KmsKey) -> KmsSigner:
    client = kms_client(settings.region, None)
    answer = _asked(lambda: client.get_public_key(KeyId=settings.key_id), settings.key_id)
    public = load_der_public_key(bytes(answer["PublicKey"]))
    usable = _ALGORITHM in answer.get("SigningAlgorithms", ())
    if not usable or not isinstance(public, EllipticCurvePublicKey) or not isinstance(public.curve, SECP256R1):
        raise ProofError(
            "the key in AWS KMS cannot sign attestations",
            where=settings.key_id,
            todo="use a key of type ECC_NIST_P256 for SIGN_VERIFY",
        )
    # by its own ARN from now on: an alias may be moved in between
    return KmsSigner(str(answer.get("KeyId") or settings.key_id), public, client)


def _asked(call: Callable[[], Any], key_id: str) -> Any:
    todo = (
        "grant kms:GetPublicKey and kms:Sign, enable the key; then run `pii-tracer resume` (nothing was attested yet)"
    )
    return asked(call, "AWS KMS", where=key_id, todo=todo)
