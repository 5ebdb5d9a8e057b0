"""Keys as PEM files or SSH keys, and the file that says whose keys are trusted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import yaml
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
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

from pii_tracer.common.atomic_files import read_bounded, write_atomic
from pii_tracer.config.strict_yaml import parse_yaml
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.errors import ConfigError, ReviewError
from pii_tracer.model.timestamps import Moment
from pii_tracer.review.dsse import PublicKey
from pii_tracer.review.policy_rules import person
from pii_tracer.review.ssh_signatures import SshPublicKey, parse_public

MAX_BYTES = 16 * 1024 * 1024


class Approver(Frozen):
    """Somebody whose approvals count.

    public_key: PEM, or the line of an SSH public key. valid_from, valid_until: when the key counts; always where None.
    """

    name: str
    role: str
    public_key: str
    valid_from: Moment | None = None
    valid_until: Moment | None = None

    def key(self) -> PublicKey:
        """The public key. Raises `ReviewError` when it is none that is supported."""
        return approver_key(self.public_key.encode(), f"approver {self.name}")

    def valid_at(self, moment: datetime) -> bool:
        """Whether the key counts at a time."""
        begun = self.valid_from is None or self.valid_from <= moment
        return begun and (self.valid_until is None or moment < self.valid_until)


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
        raise ReviewError("the file already contains a key", where=str(path), todo="name another file")
    key = Ed25519PrivateKey.generate()
    write_atomic(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), mode=0o600)
    write_atomic(path.with_name(path.name + ".pub"), public_pem(key.public_key()))
    return key.public_key()


def public_pem(key: Ed25519PublicKey | EllipticCurvePublicKey) -> bytes:
    """A public key as PEM."""
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def load_private(path: Path) -> Ed25519PrivateKey:
    """A private key from a PEM file.

    Raises:
        ReviewError: missing, readable by others, or no Ed25519 key.
    """
    try:
        if path.stat().st_mode & 0o077:
            raise ReviewError(
                "other users of this machine can read this private key", where=str(path), todo=f"chmod 600 {path}"
            )
        data = path.read_bytes()
    except OSError:
        data = b""
    return private_key(data, str(path))


def private_key(pem: bytes, where: str) -> Ed25519PrivateKey:
    """A private key from PEM. Raises `ReviewError` when it is no Ed25519 key."""
    try:
        key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ReviewError(
            "no private key could be read", where=where, todo="make a key: openssl genpkey -algorithm ed25519"
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ReviewError("this is not an Ed25519 key", where=where, todo="use an Ed25519 key")
    return key


def public_key(pem: bytes, where: str) -> Ed25519PublicKey | EllipticCurvePublicKey:
    """A public key from PEM. Raises `ReviewError` when it is neither Ed25519 nor on P-256."""
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if isinstance(key, Ed25519PublicKey):
        return key
    if isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1):
        return key
    raise ReviewError(
        "this is not an Ed25519 or P-256 public key", where=where, todo="use the `.pub` file as it was made"
    )


def approver_key(data: bytes, where: str) -> PublicKey:
    """A public key from PEM or from an SSH line. Raises `ReviewError` when it is neither."""
    if data.lstrip().startswith(b"-----BEGIN"):
        return public_key(data, where)
    return parse_public(data.decode("utf-8", "replace"), where)


def load_trusted(path: Path) -> tuple[Approver, ...]:
    """The approvers of a trusted approvers file: YAML (`version: 1`, `approvers: [{name, role, public_key}]`), or
    OpenSSH's allowed signers (see `allowed_signers`).

    Raises:
        ReviewError: unreadable, unknown keys, one name or one key for two people.
    """
    from pii_tracer.review.allowed_signers import looks_like_signers, parse_signers

    try:
        text = read_bounded(path, MAX_BYTES).decode("utf-8-sig")
        if looks_like_signers(text):
            trusted = TrustedApprovers(version=1, approvers=parse_signers(text, str(path)))
        else:
            trusted = TrustedApprovers.model_validate(parse_yaml(text, str(path), "trusted approvers"))
    except ConfigError as error:
        raise ReviewError(
            f"the trusted approvers cannot be read: {error.what}", where=error.where, todo=error.todo
        ) from None
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        raise ReviewError(
            f"the trusted approvers cannot be read ({type(error).__name__})",
            where=str(path),
            todo="list `approvers` with name, role and public_key, and `version: 1`; dates as 2027-01-01T00:00:00Z",
        ) from None
    names = [person(a.name) for a in trusted.approvers]
    keys = [_written_alike(a.key()) for a in trusted.approvers]
    if trusted.version != 1 or len(set(names)) != len(names) or len(set(keys)) != len(keys):
        raise ReviewError(
            "the file of trusted approvers must have `version: 1`, and no two people may have the same name or key",
            where=str(path),
            todo="correct `version`, and give each person a different name and key",
        )
    return trusted.approvers


def _written_alike(key: PublicKey) -> bytes:
    """A key whatever it was written as: one that signs as PEM and as an SSH key is still one person's."""
    if isinstance(key, SshPublicKey):
        return key.der
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def trusted_yaml(approvers: Sequence[tuple[str, str, str]]) -> bytes:
    """A trusted approvers file for `load_trusted`, from (name, role, public key as PEM)."""
    listed = [{"name": name, "role": role, "public_key": pem} for name, role, pem in approvers]
    return yaml.safe_dump({"version": 1, "approvers": listed}, sort_keys=False, allow_unicode=True).encode()
