"""The sealed manifest: the persons' values, encrypted, apart from the plan that records only its digest.

AES-SIV (RFC 5297) makes the sealed bytes deterministic for the same values and key, so that the same inputs give the
same plan; equality of two manifests shows, nothing else does. Keys for sealing and for references come from one estate
key by HKDF (RFC 5869).
"""

from __future__ import annotations

import hmac
import json
import os
from hashlib import sha256
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from pii_tracer.common.plurals import counted
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.errors import PlanError
from pii_tracer.model.plan import digest_of
from pii_tracer.model.waivers import MarkKey

KEY_BYTES = 64
_LABEL = b"pii-tracer subjects v1"
_REQUEST_LABEL = b"pii-tracer request v1"


class EstateKey:
    """The estate's secret: seals manifests and makes keyed references. Never printed."""

    def __init__(self, secret: bytes) -> None:
        if len(secret) != KEY_BYTES:
            raise PlanError(
                f"the estate key must be {KEY_BYTES} bytes",
                todo="make a new estate key with `pii-tracer init`, and keep it secret",
            )
        self._siv = AESSIV(_derive(secret, b"seal", 64))
        self._ref = _derive(secret, b"reference", 32)
        self._suppress = _derive(secret, b"suppression", 32)
        self.scan_ledger = _derive(secret, b"scan ledger", 32)
        self._intake = _derive(secret, b"request", 32)
        self._found = _derive(secret, b"found since", 32)
        self.marks = MarkKey(_derive(secret, b"waiver", 32))

    def __repr__(self) -> str:
        return "EstateKey(…)"

    def reference(self, kind: str, value: str) -> str:
        """A keyed reference to a person: `subj_` and 16 hex digits of HMAC-SHA256."""
        return "subj_" + hmac.digest(self._ref, f"{kind}\0{value}".encode(), "sha256").hex()[:16]

    def suppression(self, key_set: str, value: str) -> str:
        """A keyed reference to one value of a key set: 32 hex digits of HMAC-SHA256."""
        return hmac.digest(self._suppress, f"{key_set}\0{value}".encode(), "sha256").hex()[:32]

    def requester(self, kind: str, value: str) -> str:
        """A keyed reference by which a person who asks again is recognised: 32 hex digits of HMAC-SHA256."""
        return hmac.digest(self._intake, f"person\0{kind}\0{value}".encode(), "sha256").hex()[:32]

    def found_mark(self, told: bytes) -> str:
        """What shows that this text, about what `verify` found, was written with this key: HMAC-SHA256 in hex."""
        return hmac.digest(self._found, told, "sha256").hex()

    def file_digest(self) -> hmac.HMAC:
        """A keyed digest to feed a list of requests to: a plain one of a short list would tell who is on it."""
        return hmac.new(self._intake, b"file\0", sha256)

    def seal_value(self, value: str, request: str) -> bytes:
        """Encrypt the value that one request is about; under another request's id it does not open."""
        return self._siv.encrypt(value.encode(), [_REQUEST_LABEL, request.encode()])

    def open_value(self, sealed: bytes, request: str) -> str:
        """Decrypt what `seal_value` made for this request.

        Raises:
            PlanError: another key, altered bytes, or another request's.
        """
        try:
            return self._siv.decrypt(sealed, [_REQUEST_LABEL, request.encode()]).decode()
        except InvalidTag:
            raise PlanError(
                "the sealed value of a request does not open with this estate key",
                where=f"request {request}",
                todo="use the estate key with which the request was added; if this is that key, restore the request "
                "store from a backup",
            ) from None

    @property
    def check(self) -> str:
        """Tells this key from another one, and nothing of either: 16 hex digits of HMAC-SHA256."""
        return hmac.new(self._suppress, b"key check", sha256).hexdigest()[:16]

    def seal(self, key_sets: tuple[KeySet, ...]) -> bytes:
        """Encrypt key sets; the same sets give the same bytes."""
        plain = json.dumps([k.model_dump() for k in sorted(key_sets, key=lambda k: k.name)], sort_keys=True)
        return self._siv.encrypt(plain.encode(), [_LABEL])

    def unseal(self, sealed: bytes, where: str) -> tuple[KeySet, ...]:
        """Decrypt.

        Raises:
            PlanError: another key, or altered bytes.
        """
        try:
            plain = self._siv.decrypt(sealed, [_LABEL])
        except InvalidTag:
            raise PlanError(
                "the sealed manifest does not open with this estate key",
                where=where,
                todo="use the key that the plan was made with (PII_TRACER_ESTATE_KEY, or the estate's key file)",
            ) from None
        return tuple(KeySet.model_validate(item) for item in json.loads(plain))


def _derive(secret: bytes, purpose: bytes, length: int) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=None, info=_LABEL + b"/" + purpose).derive(secret)


def load_estate_key(path: Path, *, create: bool = False) -> EstateKey:
    """Read the estate key; with `create`, make it (mode 0600) where it is missing.

    Raises:
        PlanError: missing, wrong length, or readable by others.
    """
    if not path.exists():
        if not create:
            raise PlanError(
                "the estate key is missing",
                where=str(path),
                todo="restore the estate key of the earlier plans, or name its file (PII_TRACER_ESTATE_KEY); for a "
                "new estate, run `pii-tracer init`",
            )
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as stream:
            stream.write(os.urandom(KEY_BYTES))
            stream.flush()
            os.fsync(stream.fileno())
    if path.stat().st_mode & 0o077:
        raise PlanError(
            "other users of this machine can read the estate key", where=str(path), todo=f"chmod 600 {path}"
        )
    return EstateKey(path.read_bytes())


class KeyRing:
    """The key sets of one plan, by name, opened from a sealed manifest whose digest was checked."""

    def __init__(self, key_sets: tuple[KeySet, ...]) -> None:
        self._sets = {k.name: k for k in key_sets}

    def __repr__(self) -> str:
        return f"KeyRing({counted(len(self._sets), 'key set')})"

    @classmethod
    def open(cls, path: Path, digest: str, key: EstateKey) -> KeyRing:
        """Open a sealed manifest for a plan that recorded `digest`.

        Raises:
            PlanError: missing, other bytes than the plan recorded, or another key.
        """
        try:
            sealed = path.read_bytes()
        except OSError as error:
            raise PlanError(
                f"the sealed manifest cannot be read: {error.strerror or type(error).__name__}",
                where=str(path),
                todo="restore the manifest beside the plan, where it is needed until the request is closed; or plan "
                "again",
            ) from None
        if digest_of(sealed) != digest:
            raise PlanError(
                "the sealed manifest does not belong to this plan", where=str(path), todo="make the plan again"
            )
        return cls(key.unseal(sealed, str(path)))

    @property
    def key_sets(self) -> tuple[KeySet, ...]:
        """All sets, sorted by name."""
        return tuple(self._sets[name] for name in sorted(self._sets))

    def key_set(self, name: str) -> KeySet:
        """The set of this name.

        Raises:
            PlanError: the plan names a set that the manifest does not hold.
        """
        try:
            return self._sets[name]
        except KeyError:
            raise PlanError(f"the sealed manifest holds no key set `{name}`", todo="make the plan again") from None
