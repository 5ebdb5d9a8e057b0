"""The estate file's part about proof: what the deletion log is kept as, who signs attestations, and who stamps them."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.locations import WEB_ADDRESS

MIN_LOG_DAYS = 365
"""Nobody may keep the log for less: no run is resumed after so long a time, so that no row comes back that was removed.
What laws ask for beyond it is theirs to say (`config.laws`)."""


class DeletionLogKind(StrEnum):
    """What the deletion log is kept as: SQLite always, and beside it a table where one is wanted."""

    SQLITE = "sqlite"
    DELTA = "delta"
    ICEBERG = "iceberg"


class DeletionLogSettings(Frozen):
    """`deletion_log: delta`, or with a retention: `deletion_log: {kind: delta, keep_days: 1095}`.

    keep_days: rows that are older may be removed by `pii-tracer log prune`; None: the log is kept for ever.
    """

    kind: DeletionLogKind = DeletionLogKind.SQLITE
    keep_days: int | None = Field(default=None, ge=MIN_LOG_DAYS)

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"kind": value} if isinstance(value, str) else value


class KmsKey(Frozen):
    """A key that never leaves AWS KMS: an ECC_NIST_P256 key for SIGN_VERIFY, by id, ARN or `alias/…`."""

    key_id: str = Field(min_length=1)
    region: str


class AttestationKey(Frozen):
    """Where the attester's private key is: one of three.

    file: PEM (Ed25519), relative to the estate file. environment: name of the variable that holds such a PEM itself.
    """

    file: str | None = None
    environment: str | None = Field(default=None, pattern=r"^[A-Z][A-Z0-9_]*$")
    kms: KmsKey | None = None

    @model_validator(mode="after")
    def _one(self) -> AttestationKey:
        if sum(place is not None for place in (self.file, self.environment, self.kms)) != 1:
            raise ValueError("name one place of the key: `file`, `environment` or `kms`")
        return self


class TimestampAuthority(Frozen):
    """Who stamps attestations (RFC 3161 over HTTP). certificate: PEM file with the root that its answers lead to."""

    url: str = Field(pattern=WEB_ADDRESS)
    certificate: str
