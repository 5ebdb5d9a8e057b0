"""What a store keeps under a key, version by version, and what stands against erasing a version. Pure data.

The words are those of no provider. A version is a generation of Google Cloud Storage; of Azure, a version or a
snapshot of a blob.
"""

from __future__ import annotations

import json

from pydantic import Field

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.datasets import Frozen


class VersionState(StrEnum):
    """What a version is today."""

    LIVE = "live"
    """What stands under the key."""
    NONCURRENT = "noncurrent"
    """It was written over or deleted, and stays readable until somebody deletes it by its id."""
    SOFT_DELETED = "soft_deleted"
    """It was deleted. The store keeps its bytes until a day and can restore them; nobody can read or delete them."""


class StoredVersion(Frozen):
    """One version as a listing shows it.

    mark: what a conditional request compares; other bytes or other metadata, another mark. modified: ISO 8601, UTC.
    checksum: the store's own, of the bytes; empty where it gives none. storage_class: the store's word.

    old_since: when it was written over or deleted; None where the store does not say, or it is live.

    holds: holds without an end, in words for people. retained_until: until when the store refuses to delete it.
    gone_on: of a soft-deleted version, when the store removes its bytes; None where it does not say. offline: its bytes
    cannot be read until somebody brings them back. pins: the store deletes no object under its key before it.

    hides: it stands for bytes that no listing shows, such as a deleted folder with what lay in it.

    plan: the plan that wrote it (`PLAN_TAG`). unfinished: a rewrite of that plan left it beside an object.

    beside: texts that stand beside the bytes (metadata, headers, tags). They are searched for persons and never written
    down.
    """

    key: str
    version_id: str
    state: VersionState
    size: int
    mark: str
    modified: str
    checksum: str = ""
    storage_class: str = ""
    holds: tuple[str, ...] = ()
    retained_until: str | None = None
    gone_on: str | None = None
    old_since: str | None = None
    offline: bool = False
    pins: bool = False
    hides: bool = False
    plan: str | None = None
    unfinished: bool = False
    beside: tuple[str, ...] = Field(default=(), exclude=True, repr=False)

    @property
    def identity(self) -> str | None:
        """What is another as soon as the bytes are others. The mark is; the store's checksum stands beside it."""
        if not self.mark or self.offline or self.state is VersionState.SOFT_DELETED:
            return None
        return json.dumps([self.version_id, self.mark, self.size, self.checksum, self.modified])

    @property
    def line(self) -> str:
        """What a plan relies on."""
        return f"{self.key}\0{self.version_id}\0{self.state}\0{self.mark}\0{self.size}"


class StoreSettings(Frozen):
    """What a bucket or container is set to do.

    soft_delete_seconds: how long deleted bytes stay; 0 where soft delete is off. keeps_ids: a version has the same id
    when it is soft-deleted; where not, all deleted versions of a key are waited for.

    no_tables: why engines reach no table there; empty: they do.
    """

    soft_delete_seconds: int = 0
    keeps_ids: bool = True
    no_tables: str = ""


PLAN_TAG = "pii-tracer-plan"
"""Metadata of an object that a plan wrote: the plan's id. After a crash it says what is done already."""
