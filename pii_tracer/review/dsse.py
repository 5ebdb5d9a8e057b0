"""Signed statements: in-toto Statement v1 in a DSSE envelope, signed with Ed25519.

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
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from pii_tracer.errors import ReviewError
from pii_tracer.journal import canonical

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"


@dataclass(frozen=True)
class Opened:
    """A parsed envelope. keyids: of the signatures that verified."""

    statement: Mapping[str, Any]
    payload: bytes
    keyids: tuple[str, ...]


def keyid(key: Ed25519PublicKey) -> str:
    """SHA-256 of the raw public key, in hex."""
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


def seal(payload: bytes, key: Ed25519PrivateKey | None) -> bytes:
    """The envelope, signed; without a key it carries no signature (local estates only)."""
    signatures = []
    if key is not None:
        signature = key.sign(pae(PAYLOAD_TYPE, payload))
        signatures.append({"keyid": keyid(key.public_key()), "sig": base64.b64encode(signature).decode()})
    envelope = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": signatures,
    }
    return (json.dumps(envelope, sort_keys=True, indent=2) + "\n").encode()


def unseal(envelope: bytes, trusted: Iterable[Ed25519PublicKey]) -> Opened:
    """Parse an envelope and tell which trusted keys signed it. An unknown or wrong signature counts as none.

    Raises:
        ReviewError: not an envelope, or its payload is no in-toto statement.
    """
    try:
        raw = strict_json(envelope)
        payload = base64.b64decode(raw["payload"], validate=True)
        signatures = [(s["keyid"], base64.b64decode(s["sig"], validate=True)) for s in raw["signatures"]]
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
    return Opened(body, payload, tuple(sorted(good)))


def _verifies(key: Ed25519PublicKey, signature: bytes, payload: bytes) -> bool:
    try:
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
        raise ValueError(f"the key `{twice}` stands twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
