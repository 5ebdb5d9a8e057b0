"""The estate file's `keys`: tables of wrapped data keys, and the datasets whose columns they encrypt (docs/keys.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Annotated, Literal

from pydantic import Field, model_validator

from pii_tracer.model.datasets import Frozen
from pii_tracer.model.locations import WEB_ADDRESS


class LocalWrapping(Frozen):
    """Keys wrapped under a key file of 32 bytes, mode 0600, relative to the estate file. For development."""

    kind: Literal["local"]
    file: str


class KmsWrapping(Frozen):
    """Keys wrapped under an AWS KMS key. Credentials come from the environment, as boto3 finds them."""

    kind: Literal["kms"]
    key_id: str
    region: str
    endpoint_url: str | None = Field(default=None, pattern=WEB_ADDRESS)


Wrapping = Annotated[LocalWrapping | KmsWrapping, Field(discriminator="kind")]


class LocalMasterKeys(Frozen):
    """Master keys of Parquet modular encryption in files (16, 24 or 32 bytes, mode 0600), by name."""

    kind: Literal["local"]
    master_keys: dict[str, str] = Field(min_length=1)


class KmsMasterKeys(Frozen):
    """Master keys of Parquet modular encryption in AWS KMS; files name them by id, ARN or alias."""

    kind: Literal["kms"]
    region: str
    endpoint_url: str | None = Field(default=None, pattern=WEB_ADDRESS)


ParquetEncryption = Annotated[LocalMasterKeys | KmsMasterKeys, Field(discriminator="kind")]


class Encrypted(Frozen):
    """A dataset whose columns are encrypted under the persons' keys.

    dataset: as Spark SQL names it, or its folder. columns: encrypted so that equal values look different; equal: those
    that stay joinable (AES-SIV). key_column: names the key in each row. binding: table name that the cells are bound
    to, where it is another than `dataset`.
    """

    dataset: str
    columns: tuple[str, ...] = ()
    equal: tuple[str, ...] = ()
    key_column: str
    binding: str | None = None

    @model_validator(mode="after")
    def _some(self) -> Encrypted:
        if not self.columns and not self.equal:
            raise ValueError("no encrypted column is named; name one in `columns` or `equal`")
        if set(self.columns) & set(self.equal):
            raise ValueError("a column must not be in both `columns` and `equal`; remove it from one")
        if self.key_column in self.encrypted:
            raise ValueError("the key column must not be encrypted, because the key could then not be found")
        return self

    @property
    def encrypted(self) -> frozenset[str]:
        """All encrypted columns."""
        return frozenset((*self.columns, *self.equal))


class KeyTable(Frozen):
    """A table of wrapped data keys, one row a person. It is a table of the estate like any other.

    subject: whose keys. person_column: holds the subject's key (or what lineage says). key_column: the name of the data
    key that encrypted datasets refer to; `person_column` where nothing else is named. kms_key_column: ARN or
    id of a KMS key of the person's own, which is deleted too. cache_seconds: the longest time that any reader keeps an
    opened key.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    subject: str
    table: str
    person_column: str
    key_column: str | None = None
    wrapped_column: str
    kms_key_column: str | None = None
    cache_seconds: int = Field(ge=0)
    wrapping: Wrapping
    encrypts: tuple[Encrypted, ...] = ()

    @model_validator(mode="after")
    def _own(self) -> KeyTable:
        if self.kms_key_column and self.wrapping.kind != "kms":
            raise ValueError("`kms_key_column` applies only to the wrapping `kms`; remove it, or correct the wrapping")
        return self

    @property
    def reference(self) -> str:
        """The column that encrypted rows refer to."""
        return self.key_column or self.person_column


def wrong_keys(tables: Iterable[KeyTable], subjects: set[str], several: Collection[str] = ()) -> str | None:
    """What is wrong between key tables, or None. several: subjects with a key of several columns."""
    tables = list(tables)
    if len({t.name for t in tables}) != len(tables):
        return "two key tables have one name"
    if len({t.table.lower() for t in tables}) != len(tables):
        return "a key table is declared twice"
    unknown = sorted({t.subject for t in tables} - subjects)
    if unknown:
        return f"keys of subjects that are not declared: {', '.join(unknown)}"
    if wrong := sorted({t.subject for t in tables}.intersection(several)):
        return f"keys of {wrong[0]}, whose own key has several columns: a key table has one column with the person"
    datasets = [e.dataset.lower() for t in tables for e in t.encrypts]
    if len(set(datasets)) != len(datasets):
        return "a dataset is encrypted by two entries of `keys`"
    return None
