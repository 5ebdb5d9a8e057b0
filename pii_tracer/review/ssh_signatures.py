"""Signatures with SSH keys, in OpenSSH's format SSHSIG: `ssh-keygen -Y sign` and `-Y verify` make and read the same.

Source: PROTOCOL.sshsig of OpenSSH (https://github.com/openssh/openssh-portable/blob/master/PROTOCOL.sshsig); the wire
types string, uint32 and mpint are those of RFC 4251, section 5; ECDSA's signature is that of RFC 5656, section 3.1.2.
Keys: Ed25519, ECDSA on the NIST curves, and RSA of 3072 bits and more; no certificates, no FIDO tokens. Plain key files
are read here; for a key with a passphrase or in an agent OpenSSH's own `ssh-keygen` signs, so that no passphrase ever
comes to us.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256, SHA384, SHA512, HashAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_ssh_private_key,
    load_ssh_public_key,
)

from pii_tracer.model.errors import ReviewError

NAMESPACE = "pii-tracer-approval"
"""What these signatures are for. One made for git or a file is none for us."""

_MAGIC, _VERSION = b"SSHSIG", 1
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_RSA_BITS = 3072
_RSA_HASHES: dict[bytes, HashAlgorithm] = {b"rsa-sha2-256": SHA256(), b"rsa-sha2-512": SHA512()}
_CURVES: dict[str, tuple[bytes, HashAlgorithm]] = {
    "secp256r1": (b"ecdsa-sha2-nistp256", SHA256()),
    "secp384r1": (b"ecdsa-sha2-nistp384", SHA384()),
    "secp521r1": (b"ecdsa-sha2-nistp521", SHA512()),
}
_HASHES = {b"sha256": hashlib.sha256, b"sha512": hashlib.sha512}

_Private = Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
_Public = Ed25519PublicKey | ec.EllipticCurvePublicKey | rsa.RSAPublicKey


class _Broken(ValueError):
    """Bytes that are not what the format says."""


@dataclass(frozen=True)
class SshPublicKey:
    """A public key. blob: as it travels (RFC 4253, section 6.6)."""

    blob: bytes

    @property
    def fingerprint(self) -> str:
        """`SHA256:…`, as ssh-keygen shows it."""
        return "SHA256:" + base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")

    @property
    def der(self) -> bytes:
        """The key itself, as other formats write it, too (SubjectPublicKeyInfo, RFC 5280, section 4.1)."""
        return _loaded(self.blob).public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Whether a signature (raw, without armour) by this key for our namespace is of these bytes."""
        try:
            public, namespace, hash_name, inner = _parts(signature)
            if public != self.blob or namespace != NAMESPACE.encode():
                return False
            _verify(_loaded(self.blob), inner, _to_sign(message, hash_name))
        except (_Broken, InvalidSignature, ReviewError, ValueError):
            return False
        return True


@dataclass(frozen=True, repr=False)
class SshSigner:
    """A private key that signs in this format."""

    private: _Private

    @property
    def public(self) -> SshPublicKey:
        """Its public half."""
        line = self.private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        return SshPublicKey(base64.b64decode(line.split()[1]))

    def sign(self, message: bytes) -> bytes:
        """The raw signature of some bytes."""
        signed = _to_sign(message, b"sha512")
        key = self.private
        if isinstance(key, Ed25519PrivateKey):
            inner = _string(b"ssh-ed25519") + _string(key.sign(signed))
        elif isinstance(key, rsa.RSAPrivateKey):
            inner = _string(b"rsa-sha2-512") + _string(key.sign(signed, padding.PKCS1v15(), SHA512()))
        else:
            kind, hashing = _CURVES[key.curve.name]
            r, s = decode_dss_signature(key.sign(signed, ec.ECDSA(hashing)))
            inner = _string(kind) + _string(_mpint(r) + _mpint(s))
        head = _MAGIC + struct.pack(">I", _VERSION) + _string(self.public.blob)
        return head + _string(NAMESPACE.encode()) + _string(b"") + _string(b"sha512") + _string(inner)


def parse_public(line: str, where: str) -> SshPublicKey:
    """A public key from its line (`ssh-ed25519 AAAA… comment`).

    Raises:
        ReviewError: another kind of key, or a weak one.
    """
    parts = line.split()
    try:
        blob = base64.b64decode(parts[1], validate=True)
        if _string(parts[0].encode()) != blob[: 4 + len(parts[0])]:
            raise _Broken
    except (IndexError, binascii.Error, ValueError):
        raise ReviewError(
            "this is not an SSH public key", where=where, todo="use the line in the `.pub` file"
        ) from None
    _loaded(blob, where)
    return SshPublicKey(blob)


@dataclass(frozen=True)
class KeygenSigner:
    """A key that only OpenSSH can use: `path` has a passphrase, or is the public half of a key in an agent."""

    path: Path
    public: SshPublicKey

    def sign(self, message: bytes) -> bytes:
        """The raw signature of some bytes; ssh-keygen asks for the passphrase on the terminal.

        Raises:
            ReviewError: ssh-keygen is missing or refused, or it signed with another key.
        """
        command = ["ssh-keygen", "-Y", "sign", "-q", "-n", NAMESPACE, "-f", str(self.path)]
        try:
            done = subprocess.run(command, input=message, stdout=subprocess.PIPE, check=False)
        except OSError:
            raise ReviewError("`ssh-keygen` cannot be run", todo="install OpenSSH's client") from None
        if done.returncode:
            raise ReviewError(
                "`ssh-keygen` did not sign",
                where=str(self.path),
                todo="remove the reason that `ssh-keygen` printed above, then sign again",
            )
        signature = unarmoured(done.stdout)
        if not self.public.verifies(signature, message):
            raise ReviewError(
                "`ssh-keygen` signed with another key",
                where=str(self.path),
                todo="check that the `.pub` file belongs to this key",
            )
        return signature


def load_signer(path: Path) -> SshSigner | KeygenSigner:
    """A private key from OpenSSH's file, or from an agent where the public half (`.pub`) is named.

    Raises:
        ReviewError: missing, readable by others, another kind of key, or a weak one.
    """
    if path.suffix == ".pub":
        return KeygenSigner(path, _public_file(path))
    try:
        if path.stat().st_mode & 0o077:
            raise ReviewError(
                "other users of this machine can read this private key", where=str(path), todo=f"chmod 600 {path}"
            )
        key = load_ssh_private_key(path.read_bytes(), None)
    except TypeError:  # it has a passphrase
        return KeygenSigner(path, _public_file(path.with_name(path.name + ".pub")))
    except (OSError, ValueError, UnsupportedAlgorithm):
        raise ReviewError(
            "no SSH private key could be read",
            where=str(path),
            todo="use an Ed25519, ECDSA or RSA key file, or the `.pub` file of a key in your agent",
        ) from None
    if not isinstance(key, Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise ReviewError("this kind of SSH key is not supported", where=str(path), todo="use an Ed25519 key")
    signer = SshSigner(key)
    _loaded(signer.public.blob, str(path))
    return signer


def _public_file(path: Path) -> SshPublicKey:
    try:
        return parse_public(path.read_text(encoding="utf-8-sig"), str(path))
    except (OSError, UnicodeDecodeError):
        raise ReviewError(
            "the public half of the key is missing",
            where=str(path),
            todo="make the file: ssh-keygen -y -f KEY > KEY.pub",
        ) from None


def armoured(signature: bytes) -> bytes:
    """A raw signature as the text file that `ssh-keygen -Y verify -s` reads."""
    text = base64.b64encode(signature).decode()
    lines = [text[i : i + 70] for i in range(0, len(text), 70)]
    return ("\n".join([_BEGIN, *lines, _END]) + "\n").encode()


def unarmoured(text: bytes) -> bytes:
    """The raw signature of such a file. Raises `ReviewError` when it is none."""
    lines = text.decode("ascii", "replace").strip().splitlines()
    try:
        if len(lines) < 3 or lines[0] != _BEGIN or lines[-1] != _END:
            raise _Broken
        return base64.b64decode("".join(lines[1:-1]), validate=True)
    except (binascii.Error, ValueError):
        raise ReviewError("this is not an SSH signature", todo="make a signature with `ssh-keygen -Y sign`") from None


def _to_sign(message: bytes, hash_name: bytes) -> bytes:
    if hash_name not in _HASHES:
        raise _Broken
    digest = _HASHES[hash_name](message).digest()
    return _MAGIC + _string(NAMESPACE.encode()) + _string(b"") + _string(hash_name) + _string(digest)


def _parts(signature: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """Public key, namespace, hash algorithm and inner signature; nothing may follow."""
    head = len(_MAGIC) + 4
    if signature[:head] != _MAGIC + struct.pack(">I", _VERSION):
        raise _Broken
    public, rest = _read(signature[head:])
    namespace, rest = _read(rest)
    _, rest = _read(rest)  # reserved: to be ignored, and not signed
    hash_name, rest = _read(rest)
    inner, rest = _read(rest)
    if rest:
        raise _Broken
    return public, namespace, hash_name, inner


def _loaded(blob: bytes, where: str = "") -> _Public:
    key: object = None
    with suppress(ValueError, UnsupportedAlgorithm):
        key = load_ssh_public_key(_read(blob)[0] + b" " + base64.b64encode(blob))
    if isinstance(key, rsa.RSAPublicKey) and key.key_size < _RSA_BITS:
        raise ReviewError(f"an RSA key of {key.key_size} bits is too weak", where=where, todo="use an Ed25519 key")
    if not isinstance(key, Ed25519PublicKey | ec.EllipticCurvePublicKey | rsa.RSAPublicKey):
        raise ReviewError("this kind of SSH key is not supported", where=where, todo="use an Ed25519 key")
    return key


def _verify(key: _Public, inner: bytes, signed: bytes) -> None:
    """Raise unless the inner signature holds."""
    kind, rest = _read(inner)
    raw, rest = _read(rest)
    if rest:
        raise _Broken
    if isinstance(key, Ed25519PublicKey):
        if kind != b"ssh-ed25519":
            raise _Broken
        key.verify(raw, signed)
    elif isinstance(key, rsa.RSAPublicKey):
        if kind not in _RSA_HASHES:
            raise _Broken
        key.verify(raw, signed, padding.PKCS1v15(), _RSA_HASHES[kind])
    else:
        name, hashing = _CURVES[key.curve.name]
        r, rest = _read(raw)
        s, rest = _read(rest)
        if kind != name or rest:
            raise _Broken
        der = encode_dss_signature(int.from_bytes(r, "big", signed=True), int.from_bytes(s, "big", signed=True))
        key.verify(der, signed, ec.ECDSA(hashing))


def _string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def _mpint(number: int) -> bytes:
    return _string(number.to_bytes(number.bit_length() // 8 + 1, "big"))


def _read(data: bytes) -> tuple[bytes, bytes]:
    """One string, and what follows it."""
    if len(data) < 4:
        raise _Broken
    (length,) = struct.unpack(">I", data[:4])
    if len(data) < 4 + length:
        raise _Broken
    return data[4 : 4 + length], data[4 + length :]
