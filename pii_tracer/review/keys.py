"""Ed25519 keys as PEM files, and the file that says whose keys are trusted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from pydantic import ValidationError

from pii_tracer.errors import ReviewError
from pii_tracer.files import write_atomic
from pii_tracer.model import Frozen
from pii_tracer.review.dsse import keyid


class Approver(Frozen):
    """Somebody whose approvals count. public_key: PEM."""

    name: str
    role: str
    public_key: str

    def key(self) -> Ed25519PublicKey:
        """The public key. Raises `ReviewError` when it is no Ed25519 key."""
        return public_key(self.public_key.encode(), f"approver {self.name}")


class TrustedApprovers(Frozen):
    """The trusted approvers file."""

    version: int
    approvers: tuple[Approver, ...]


def generate(path: Path) -> Ed25519PublicKey:
    """Make a key pair: `path` (0600) holds the private key, `path` + `.pub` the public one.

    Raises:
        ReviewError: the file exists already; a key is never overwritten.
    """
    if path.exists():
        raise ReviewError("a key stands there already", where=str(path), todo="name another file")
    key = Ed25519PrivateKey.generate()
    write_atomic(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), mode=0o600)
    write_atomic(path.with_name(path.name + ".pub"), public_pem(key.public_key()))
    return key.public_key()


def public_pem(key: Ed25519PublicKey) -> bytes:
    """A public key as PEM."""
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def load_private(path: Path) -> Ed25519PrivateKey:
    """A private key from PEM.

    Raises:
        ReviewError: missing, readable by others, or no Ed25519 key.
    """
    try:
        if path.stat().st_mode & 0o077:
            raise ReviewError("other people can read this private key", where=str(path), todo=f"chmod 600 {path}")
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm):
        raise ReviewError(
            "no private key could be read", where=str(path), todo="make one: openssl genpkey -algorithm ed25519"
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ReviewError("this is no Ed25519 key", where=str(path), todo="use an Ed25519 key")
    return key


def public_key(pem: bytes, where: str) -> Ed25519PublicKey:
    """A public key from PEM. Raises `ReviewError` when it is no Ed25519 key."""
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise ReviewError("this is no Ed25519 public key", where=where, todo="use the `.pub` file as it was made")
    return key


def load_trusted(path: Path) -> tuple[Approver, ...]:
    """The approvers of a trusted approvers file (YAML: `version: 1`, `approvers: [{name, role, public_key}]`).

    Raises:
        ReviewError: unreadable, unknown keys, one name or one key for two people.
    """
    try:
        trusted = TrustedApprovers.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValidationError) as error:
        raise ReviewError(
            f"the trusted approvers cannot be read ({type(error).__name__})",
            where=str(path),
            todo="list `approvers` with name, role and public_key, and `version: 1`",
        ) from None
    names = [a.name for a in trusted.approvers]
    keys = [keyid(a.key()) for a in trusted.approvers]
    if trusted.version != 1 or len(set(names)) != len(names) or len(set(keys)) != len(keys):
        raise ReviewError(
            "the trusted approvers file has another version than 1, or one name or key stands for two people",
            where=str(path),
            todo="give everyone a name and a key of their own",
        )
    return trusted.approvers


def trusted_yaml(approvers: Sequence[tuple[str, str, str]]) -> bytes:
    """A trusted approvers file for `load_trusted`, from (name, role, public key as PEM)."""
    listed = [{"name": name, "role": role, "public_key": pem} for name, role, pem in approvers]
    return yaml.safe_dump({"version": 1, "approvers": listed}, sort_keys=False, allow_unicode=True).encode()
