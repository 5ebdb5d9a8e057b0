"""Signed statements: in-toto Statement v1 in a DSSE envelope, signed with Ed25519, ECDSA P-256 or an SSH key.

A signature by an SSH key is one of OpenSSH's (`sshsig`) over the same bytes, and its keyid the key's fingerprint. One
by P-256 is over their SHA-256, DER-encoded, as AWS KMS and securesystemslib (`ecdsa-sha2-nistp256`) have it.

Sources: https://github.com/secure-systems-lab/dsse (envelope.md, protocol.md) and
https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from pii_tracer.model.canonical_json import canonical
from pii_tracer.model.errors import ReviewError
from pii_tracer.review.ssh_signatures import KeygenSigner, SshPublicKey, SshSigner

PublicKey = Ed25519PublicKey | EllipticCurvePublicKey | SshPublicKey
PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"


class RemoteSigner(Protocol):
    """A key that signs where it is kept, and never leaves it."""

    @property
    def public(self) -> EllipticCurvePublicKey:
        """Its public half, on P-256."""

    def sign(self, message: bytes) -> bytes:
        """The DER-encoded signature of the message's SHA-256."""


PrivateKey = Ed25519PrivateKey | SshSigner | KeygenSigner | RemoteSigner


@dataclass(frozen=True)
class Opened:
    """A parsed envelope. keyids: of the signatures that verified. claimed: whether it carries any signature."""

    statement: Mapping[str, Any]
    payload: bytes
    keyids: tuple[str, ...]
    claimed: bool


def keyid(key: PublicKey) -> str:
    """SHA-256 of the raw public key, in hex (P-256: of its DER form); an SSH key's fingerprint."""
    if isinstance(key, SshPublicKey):
        return key.fingerprint
    if isinstance(key, EllipticCurvePublicKey):
        return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()


def pae(payload_type: str, payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding: what is really signed."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def statement(predicate_type: str, subjects: Iterable[Mapping[str, Any]], predicate: Mapping[str, Any]) -> bytes:
    """An in-toto Statement v1 as canonical JSON."""
    return canonical(
        {
            "_type": STATEMENT_TYPE,
            "subject": list(subjects),
            "predicateType": predicate_type,
            "predicate": predicate,
        }
    )


def seal(payload: bytes, key: PrivateKey | None) -> bytes:
    """The envelope, signed; without a key it carries no signature (local estates only)."""
    signatures = []
    if key is not None:
        signature = key.sign(pae(PAYLOAD_TYPE, payload))
        public = key.public_key() if isinstance(key, Ed25519PrivateKey) else key.public
        signatures.append({"keyid": keyid(public), "sig": base64.b64encode(signature).decode()})
    envelope = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": signatures,
    }
    return (json.dumps(envelope, sort_keys=True, indent=2) + "\n").encode()


def unseal(envelope: bytes, trusted: Iterable[PublicKey]) -> Opened:
    """Parse an envelope and tell which trusted keys signed it. An unknown or wrong signature counts as none.

    Raises:
        ReviewError: not an envelope, or its payload is no in-toto statement.
    """
    try:
        raw = strict_json(envelope)
        payload = _decoded(raw["payload"])
        signatures = [(s["keyid"], _decoded(s["sig"])) for s in raw["signatures"]]
        if raw["payloadType"] != PAYLOAD_TYPE or set(raw) != {"payload", "payloadType", "signatures"}:
            raise ValueError
        body = strict_json(payload)
        if body["_type"] != STATEMENT_TYPE or not isinstance(body["predicate"], dict):
            raise ValueError
        if set(body) != {"_type", "subject", "predicateType", "predicate"}:
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error, RecursionError):
        raise ReviewError("this is not a DSSE envelope with an in-toto statement", todo="sign it again") from None
    keys = {keyid(key): key for key in trusted}
    good = {name for name, sig in signatures if name in keys and _verifies(keys[name], sig, payload)}
    return Opened(body, payload, tuple(sorted(good)), bool(signatures))


def _decoded(text: str) -> bytes:
    """Base64 in the one way that it is written: other bits in its padding would be other bytes of the same envelope.

    Raises:
        ValueError: it is not (RFC 4648, section 3.5).
    """
    data = base64.b64decode(text, validate=True)
    if base64.b64encode(data).decode() != text:
        raise ValueError
    return data


def _verifies(key: PublicKey, signature: bytes, payload: bytes) -> bool:
    if isinstance(key, SshPublicKey):
        return key.verifies(signature, pae(PAYLOAD_TYPE, payload))
    try:
        if isinstance(key, EllipticCurvePublicKey):
            key.verify(signature, pae(PAYLOAD_TYPE, payload), ECDSA(SHA256()))
        else:
            key.verify(signature, pae(PAYLOAD_TYPE, payload))
    except InvalidSignature:
        return False
    return True


def strict_json(data: bytes) -> Any:
    """JSON without duplicate keys, NaN or Infinity.

    Raises:
        ValueError: otherwise.
    """
    return json.loads(data.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field `{twice}` appears twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
