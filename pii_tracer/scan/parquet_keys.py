"""Keys of Parquet modular encryption, so that encrypted files are decoded and searched like any other.

Only the master keys are ours to find: key material lies in the files, wrapped by a KMS
(https://arrow.apache.org/docs/python/parquet.html#parquet-modular-encryption-columnar-encryption). Two wrappings are
known: that of parquet-mr's `KeyToolkit.encryptKeyLocally` under a master key (base64 of nonce, ciphertext and tag, with
the master key's name as associated data), and base64 of what AWS KMS encrypted.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pii_tracer.config.keys import KmsMasterKeys, LocalMasterKeys
from pii_tracer.model.errors import ScanError

if TYPE_CHECKING:
    from pyarrow.parquet.encryption import CryptoFactory, DecryptionProperties, KmsClient

_NONCE = 12
Unwrap = Callable[[str, str], bytes]
"""(wrapped key, name of the master key) -> key. Raises `ScanError`."""


class FileKeys:
    """Opens encrypted Parquet files. Never printed."""

    def __init__(self, unwrap: Unwrap) -> None:
        self.unwrap = unwrap
        self._factory: CryptoFactory | None = None

    def __repr__(self) -> str:
        return "FileKeys(…)"

    def properties(self) -> DecryptionProperties:
        """What a reader needs for one file; whether the keys open it shows when it is read."""
        from pyarrow.parquet import encryption

        if self._factory is None:  # kept: properties ask their factory for keys, and do not keep it alive
            self._factory = encryption.CryptoFactory(_client(self.unwrap))
        return self._factory.file_decryption_properties(
            encryption.KmsConnectionConfig(), encryption.DecryptionConfiguration()
        )


def _client(unwrap: Unwrap) -> type[KmsClient]:
    from pyarrow.parquet import encryption

    class Client(encryption.KmsClient):  # type: ignore[misc]
        def __init__(self, config: Any) -> None:
            encryption.KmsClient.__init__(self)

        def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
            raise ScanError("the scanner writes no encrypted files", todo="use the writer's own client")

        def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
            return unwrap(wrapped_key, master_key_identifier)

    return Client


def file_keys(declared: LocalMasterKeys | KmsMasterKeys | None, base: Path) -> FileKeys | None:
    """The keys that an estate declares for its encrypted Parquet files. base: folder of the estate file."""
    if declared is None:
        return None
    if isinstance(declared, LocalMasterKeys):
        return FileKeys(_local({name: base / path for name, path in declared.master_keys.items()}))
    return FileKeys(_kms(declared))


def _local(paths: Mapping[str, Path]) -> Unwrap:
    def unwrap(wrapped: str, name: str) -> bytes:
        try:
            path = paths[name]
            mode, master = path.stat().st_mode, path.read_bytes()
        except (KeyError, OSError):
            raise ScanError(f"there is no master key `{name}`", todo="declare its file in the estate file") from None
        if mode & 0o077:
            raise ScanError("a master key can be read by others", where=str(path), todo=f"chmod 600 {path}")
        try:
            data = base64.b64decode(wrapped, validate=True)
            return AESGCM(master).decrypt(data[:_NONCE], data[_NONCE:], name.encode())
        except (InvalidTag, ValueError, binascii.Error):
            raise ScanError(f"the master key `{name}` does not open a file's key", todo="check its file") from None

    return unwrap


def _kms(declared: KmsMasterKeys) -> Unwrap:
    def unwrap(wrapped: str, name: str) -> bytes:
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            client = boto3.client("kms", region_name=declared.region, endpoint_url=declared.endpoint_url)
            return bytes(client.decrypt(KeyId=name, CiphertextBlob=base64.b64decode(wrapped))["Plaintext"])
        except (BotoCoreError, ClientError, binascii.Error) as error:
            raise ScanError(
                f"KMS does not open a file's key: {type(error).__name__}", where=name, todo="check the key's state"
            ) from None

    return unwrap
