"""What is known of the persons' keys: in key tables, in KMS, and in what they encrypt."""

from __future__ import annotations

from datetime import datetime

from pii_tracer.model.datasets import Frozen


class KmsKey(Frozen):
    """A KMS key as KMS tells it. state: KMS's `KeyState`, or `Deleted` where KMS does not know the key."""

    key_id: str
    region: str
    state: str
    deletion_date: datetime | None = None
    grants: int = 0
    replicas: tuple[KmsKey, ...] = ()


class PlainCells(Frozen):
    """What of an encrypted dataset is not known to be encrypted.

    cells: by column, values without the form of a cell in rows that are not other people's. files: how many of its
    files could not be searched for that.
    """

    location: str
    cells: tuple[tuple[str, int], ...] = ()
    files: int = 0


class KeyFacts(Frozen):
    """What reading a key table, and KMS, tells about the persons' keys.

    kms: the KMS key that wraps the table; own: the persons' own ones. shared: data keys of theirs that stand in other
    people's rows, too; shared_kms: KMS keys that are not theirs alone, or cannot be told to be. unread: why the table
    could not be read. plain: of the datasets that these keys encrypt.
    """

    kms: KmsKey | None = None
    own: tuple[KmsKey, ...] = ()
    shared: int = 0
    shared_kms: int = 0
    unread: str | None = None
    plain: tuple[PlainCells, ...] = ()
