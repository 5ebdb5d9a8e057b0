"""Where data keys are kept safe: wrapped under a key-encryption key (KEK), in the key table.

One KMS call for each person would allow some hundred people a second. So KMS wraps a KEK (`GenerateDataKey`), the KEK
wraps data keys with AES-256-GCM, and every wrapped key carries the KMS-wrapped KEK in front: whoever reads many keys
asks KMS once for each KEK, and the person's row is all there is of their key. KEKs stay in memory for a bounded time.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.keys.envelope.cells import DATA_KEY
from pii_tracer.model.errors import ShredError

_NONCE = 12
_LABEL = b"pii-tracer wrapped key v1\0"
_HEAD = struct.Struct(">BH")
"""Version 1, and the length of the wrapped KEK that follows."""


class KekSource(Protocol):
    """Gives key-encryption keys."""

    def new(self) -> tuple[bytes, bytes]:
        """A KEK to wrap with, and what opens it again. Raises `ShredError`."""

    def open(self, blob: bytes) -> bytes:
        """The KEK behind `blob`. Raises `ShredError`."""


class Wrapper:
    """Makes, wraps and unwraps data keys. kek_seconds: how long an opened KEK may be used again."""

    def __init__(self, source: KekSource, kek_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._source, self._lifetime, self._clock = source, kek_seconds, clock
        self._opened: dict[bytes, tuple[float, AESGCM]] = {}
        self._current: tuple[float, bytes] | None = None

    def __repr__(self) -> str:
        return "Wrapper(…)"

    def new_key(self, person: str) -> bytes:
        """A new data key for a person, wrapped; the plain one is never returned."""
        return self.wrap(person, os.urandom(DATA_KEY))

    def wrap(self, person: str, data_key: bytes) -> bytes:
        """Wrap a data key, bound to its person.

        Raises:
            ShredError: KMS refuses, or the key file cannot be used.
        """
        if self._current is None or self._clock() - self._current[0] >= self._lifetime:
            kek, blob = self._source.new()
            self._opened[blob] = (self._clock(), AESGCM(kek))
            self._current = (self._clock(), blob)
        blob = self._current[1]
        nonce = os.urandom(_NONCE)
        sealed = self._kek(blob).encrypt(nonce, data_key, _LABEL + person.encode())
        return _HEAD.pack(1, len(blob)) + blob + nonce + sealed

    def unwrap(self, person: str, wrapped: bytes) -> bytes:
        """The data key.

        Raises:
            ShredError: altered bytes, another person's key, or a KEK that does not open any more.
        """
        return self.unwrap_all({person: wrapped})[person]

    def unwrap_all(self, wrapped: Mapping[str, bytes]) -> dict[str, bytes]:
        """The data keys of many persons: what stands in front of the keys is read again only where it differs.

        Raises:
            ShredError: as `unwrap` does.
        """
        opened: dict[str, bytes] = {}
        front, start, end = b"", 0, 0
        kek: AESGCM | None = None
        try:
            for person, key in wrapped.items():
                if kek is None or not key.startswith(front):
                    version, length = _HEAD.unpack_from(key)
                    start, end = _HEAD.size + length, _HEAD.size + length + _NONCE
                    front = bytes(key[:start])
                    if version != 1 or len(front) < start:
                        raise _altered()
                    kek = self._kek(front[_HEAD.size :])
                data_key = kek.decrypt(key[start:end], key[end:], _LABEL + person.encode())
                if len(data_key) != DATA_KEY:
                    raise _altered()
                opened[person] = data_key
        except (struct.error, InvalidTag, ValueError):
            raise _altered() from None
        return opened

    def _kek(self, blob: bytes) -> AESGCM:
        known = self._opened.get(blob)
        if known is not None and self._clock() - known[0] < self._lifetime:
            return known[1]
        self._opened.pop(blob, None)
        kek = AESGCM(self._source.open(blob))
        self._opened[blob] = (self._clock(), kek)
        return kek


def _altered() -> ShredError:
    return ShredError(
        "a wrapped key cannot be decrypted: it was altered, or belongs to a different person",
        todo="restore the key table from its history",
    )


@dataclass(frozen=True)
class LocalFile:
    """A KEK in a file of 32 bytes, mode 0600: for development only, since whoever has the file has every key."""

    path: str

    def new(self) -> tuple[bytes, bytes]:
        """The file's key; nothing is needed to open it again."""
        return self.open(b""), b""

    def open(self, blob: bytes) -> bytes:
        """The file's key.

        Raises:
            ShredError: missing, readable by others, or of another length.
        """
        path = Path(self.path)
        try:
            mode, key = path.stat().st_mode, path.read_bytes()
        except OSError as error:
            raise ShredError(
                f"the key file cannot be read: {error.strerror or type(error).__name__}",
                where=self.path,
                todo="create the key file, or correct its path",
            ) from None
        if mode & 0o077:
            raise ShredError("other users can read the key file", where=self.path, todo=f"chmod 600 {self.path}")
        if len(key) != DATA_KEY or blob:
            raise ShredError(
                f"the key file is not {DATA_KEY} bytes, or the key was wrapped by KMS",
                where=self.path,
                todo="use the wrapping with which the key table was created",
            )
        return key


@dataclass(frozen=True)
class Kms:
    """KEKs from AWS KMS (https://docs.aws.amazon.com/kms/latest/APIReference/API_GenerateDataKey.html).

    key_id: ARN, id or alias. Credentials come from the environment, as boto3 finds them.
    """

    key_id: str
    region: str
    endpoint_url: str | None = None

    def new(self) -> tuple[bytes, bytes]:
        """A new KEK and its ciphertext."""
        answer = self._call("generate_data_key", KeyId=self.key_id, KeySpec="AES_256", EncryptionContext=_CONTEXT)
        return bytes(answer["Plaintext"]), bytes(answer["CiphertextBlob"])

    def open(self, blob: bytes) -> bytes:
        """Decrypt a KEK. The key is named, so that no other key's ciphertext is taken."""
        answer = self._call("decrypt", KeyId=self.key_id, CiphertextBlob=blob, EncryptionContext=_CONTEXT)
        return bytes(answer["Plaintext"])

    def _call(self, act: str, **arguments: Any) -> dict[str, Any]:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            answer: dict[str, Any] = getattr(_client(self.region, self.endpoint_url), act)(**arguments)
        except ClientError as error:
            code = error_code(error)
            raise ShredError(f"KMS refuses {act}: {code}", where=self.key_id, todo=_TODO.get(code, _CHECK)) from None
        except BotoCoreError as error:
            raise ShredError(f"KMS does not answer: {type(error).__name__}", where=self.key_id, todo=_CHECK) from None
        return answer


_CONTEXT = {"purpose": "pii-tracer key table"}
_CHECK = "check the key's region, state and policy"
_TODO = {
    "DisabledException": "enable the key, if the estate uses it",
    "KMSInvalidStateException": "the key is pending deletion or import: run `aws kms describe-key` to see the date",
}


@lru_cache(maxsize=8)
def _client(region: str, endpoint_url: str | None) -> Any:
    import boto3

    return boto3.client("kms", region_name=region, endpoint_url=endpoint_url)
