"""Keys of Parquet modular encryption, so that encrypted files are decoded and searched like any other.

Key material lies in the files, wrapped under a master key
(https://arrow.apache.org/docs/python/parquet.html#parquet-modular-encryption-columnar-encryption); how it is unwrapped,
and where master keys are, `pii_tracer.lake.keys.parquet_encryption` knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pii_tracer.model.errors import ScanError

if TYPE_CHECKING:
    from pyarrow.parquet.encryption import CryptoFactory, DecryptionProperties, KmsClient

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
            raise ScanError("the scanner can only decrypt files, not encrypt them", todo="use the writer's client")

        def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
            return unwrap(wrapped_key, master_key_identifier)

    return Client
