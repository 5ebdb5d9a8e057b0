"""Master keys of Parquet modular encryption: in files of ours, or in AWS KMS.

Two wrappings of a file's keys are known: that of parquet-mr's `KeyToolkit.encryptKeyLocally` under a master key (base64
of nonce, ciphertext and tag, with the master key's name as associated data), and base64 of what AWS KMS encrypted
(https://arrow.apache.org/docs/python/parquet.html#parquet-modular-encryption-columnar-encryption).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pii_tracer.config.keys import KmsMasterKeys, LocalMasterKeys
from pii_tracer.lake.keys.kms.key_state import kms_client
from pii_tracer.lake.stores.aws_clients import refusals_as
from pii_tracer.model.errors import ScanError
from pii_tracer.scan.parquet_decryption_keys import FileKeys, Unwrap

_NONCE = 12


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
            raise ScanError(
                f"the estate file has no master key `{name}`", todo="declare the file of this key in the estate file"
            ) from None
        if mode & 0o077:
            raise ScanError("other users can read a master key", where=str(path), todo=f"chmod 600 {path}")
        try:
            data = base64.b64decode(wrapped, validate=True)
            return AESGCM(master).decrypt(data[:_NONCE], data[_NONCE:], name.encode())
        except (InvalidTag, ValueError, binascii.Error):
            raise ScanError(
                f"the master key `{name}` cannot decrypt a file's key",
                todo="correct the file of this master key in the estate file",
            ) from None

    return unwrap


def _kms(declared: KmsMasterKeys) -> Unwrap:
    def unwrap(wrapped: str, name: str) -> bytes:
        refused = refusals_as(
            ScanError,
            "KMS cannot decrypt a file's key",
            where=name,
            todo="enable the KMS key, and give the account the right to decrypt with it",
        )
        try:
            blob = base64.b64decode(wrapped)
        except binascii.Error:
            raise ScanError(
                "a file's key is not in base64",
                where=name,
                todo="rewrite the file, because its encryption metadata is damaged",
            ) from None
        with refused:
            client = kms_client(declared.region, declared.endpoint_url)
            return bytes(client.decrypt(KeyId=name, CiphertextBlob=blob)["Plaintext"])

    return unwrap
