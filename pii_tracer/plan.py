"""The erasure plan as a file: copies, steps, gaps, totals. Pure data; `planners` makes it, `executors` obey it.

Stable interface: see docs/plan-format.md. No value of any person is in it; subjects are keyed references.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field

from pii_tracer.enums import StrEnum
from pii_tracer.model import Carries, CopyKind, DatasetId, Format, Frozen, Match, Strategy

FORMAT_VERSION = 1


class Action(StrEnum):
    """What a step does. Each belongs to one executor."""

    # keys (executor `keys`)
    STAGE_KEYS = "stage_keys"
    DROP_KEYS = "drop_keys"
    # iceberg
    ICEBERG_DELETE_ROWS = "iceberg_delete_rows"
    ICEBERG_REBUILD = "iceberg_rebuild"
    ICEBERG_REWRITE_FILES = "iceberg_rewrite_files"
    ICEBERG_REWRITE_REF = "iceberg_rewrite_ref"
    ICEBERG_REWRITE_MANIFESTS = "iceberg_rewrite_manifests"
    ICEBERG_EXPIRE_SNAPSHOTS = "iceberg_expire_snapshots"
    ICEBERG_REMOVE_ORPHANS = "iceberg_remove_orphans"
    # delta
    DELTA_DELETE_ROWS = "delta_delete_rows"
    DELTA_REBUILD = "delta_rebuild"
    DELTA_PURGE = "delta_purge"
    DELTA_VACUUM = "delta_vacuum"
    DELTA_CLEAN_LOG = "delta_clean_log"
    # hudi
    HUDI_DELETE_SAVEPOINTS = "hudi_delete_savepoints"
    HUDI_DELETE_ROWS = "hudi_delete_rows"
    HUDI_REBUILD = "hudi_rebuild"
    HUDI_COMPACT = "hudi_compact"
    HUDI_CLEAN = "hudi_clean"
    HUDI_REBUILD_METADATA = "hudi_rebuild_metadata"
    # bare files
    FILES_REWRITE = "files_rewrite"
    FILES_REBUILD = "files_rebuild"
    # objects
    S3_RESTORE = "s3_restore"
    S3_REWRITE_ARCHIVE = "s3_rewrite_archive"
    S3_AWAIT_REPLICA = "s3_await_replica"
    S3_DELETE_VERSIONS = "s3_delete_versions"
    # after the work of a copy
    VERIFY_COPY = "verify_copy"


class PlannedColumn(Frozen):
    """A PII column of a copy with its category, e.g. `pan` / `national_id`."""

    name: str
    category: str


class Copy(Frozen):
    """One place where the person is.

    origin: id of the copy this one hangs from (its history, its object versions, its replica), or None for a copy
    that counts by itself. A copy counts as erased when everything that hangs from it is gone too.
    match: how the person's rows are found here, None where no row is deleted (rebuild, versions).
    other_keys: columns that lineage proves to come from no identifying column; a weak key found there means
    something else (a merchant's number) and is reported as such, not as residue.
    lineage: the path that brought it here, from the source, one hop an entry.
    """

    id: str
    kind: CopyKind
    dataset: DatasetId
    table: str | None
    location: str
    format: Format
    carries: Carries
    strategy: Strategy
    columns: tuple[PlannedColumn, ...]
    lineage: tuple[str, ...]
    reason: str
    origin: str | None = None
    match: Match | None = None
    other_keys: tuple[str, ...] = ()
    found: Found | None = None
    facts: dict[str, Any] = {}


class Found(Frozen):
    """What the scan at planning saw of the persons in this copy: evidence, not an estimate."""

    files_scanned: int
    files_with_person: int
    rows: int | None
    bytes: int
    unread: tuple[str, ...] = ()


class Precondition(Frozen):
    """A fact of the world the plan relies on: `kind` names the check, `expected` the planned value.

    Kinds: snapshot, refs, columns, clones, object_versions, writers_stopped.
    hard: a difference stops the run; a soft one is reported.
    """

    kind: str
    target: str
    expected: str
    hard: bool = True


class Estimate(Frozen):
    """rows, files and bytes touched; cost in `currency`; wait in seconds."""

    rows: int | None = None
    files: int = 0
    bytes: int = 0
    cost: float = 0.0
    currency: str = "INR"
    wait: int = 0


class Step(Frozen):
    """One act on one copy. `parameters` hold all the executor needs; nothing is computed again at apply time."""

    id: str
    copy_: str | None = Field(alias="copy")
    action: Action
    executor: str
    parameters: dict[str, Any]
    depends_on: tuple[str, ...]
    hazards: tuple[str, ...]
    preconditions: tuple[Precondition, ...]
    verification: str
    irreversible: bool
    earliest_start: datetime
    earliest_finish: datetime
    latest_start: datetime
    estimate: Estimate
    reason: str

    model_config = ConfigDict(populate_by_name=True)


class Waiver(Frozen):
    """A named person accepts a gap until a date."""

    who: str
    why: str
    until: datetime


class Gap(Frozen):
    """Something that could not be proved; it blocks the plan until a named person waives it."""

    id: str
    dataset: DatasetId | None
    kind: str
    reason: str
    evidence: str
    waiver: Waiver | None = None


class Examined(Frozen):
    """A dataset that was looked at and is no copy, with the reason."""

    dataset: DatasetId
    table: str | None
    carries: Carries
    reason: str


class PlannedRequest(Frozen):
    """One erasure request in the plan: keyed reference only."""

    id: str
    subject: str
    law: str
    citation: str
    received: datetime
    deadline: datetime


class Override(Frozen):
    """A protection that this plan sets aside, with its reason; reviewers see it first."""

    kind: str
    reason: str


class Schedule(Frozen):
    """The dated schedule under one retention strategy, for comparison beside the planned one."""

    retention: str
    finish: datetime
    deadline: datetime
    slack_days: float
    meets_deadline: bool
    critical_path: tuple[str, ...]
    cost: float
    notes: tuple[str, ...] = ()


class Totals(Frozen):
    """The verdict's numbers. copies: those that count by themselves; beyond: those that hang from them."""

    copies: int
    beyond: int
    steps: int
    irreversible: int
    gaps: int
    waived: int
    finish: datetime
    deadline: datetime
    slack_days: float
    cost: float
    currency: str
    critical_path: tuple[str, ...]


class ErasurePlan(Frozen):
    """A whole plan. Serialise with `to_bytes`, never by hand: the approval is bound to those bytes."""

    format_version: int
    plan_id: str
    tool_version: str
    created_at: datetime
    estate: str
    planned_by: str = ""
    retention: str
    overrides: tuple[Override, ...]
    requests: tuple[PlannedRequest, ...]
    graph_digest: str
    inventory_digest: str
    policy_digest: str
    subjects_digest: str
    estate_digest: str
    complete: bool
    applyable: bool
    gaps: tuple[Gap, ...]
    copies: tuple[Copy, ...]
    examined: tuple[Examined, ...]
    steps: tuple[Step, ...]
    schedules: tuple[Schedule, ...]
    totals: Totals

    def to_bytes(self) -> bytes:
        """Sorted, indented UTF-8 JSON with a final newline."""
        data = self.model_dump(mode="json", by_alias=True)
        return (json.dumps(data, sort_keys=True, indent=2, ensure_ascii=False) + "\n").encode()

    def copy_by_id(self, copy_id: str) -> Copy:
        """The copy with this id.

        Raises:
            KeyError: no such copy.
        """
        for copy in self.copies:
            if copy.id == copy_id:
                return copy
        raise KeyError(copy_id)


def digest_of(data: bytes) -> str:
    """`sha256:…` of bytes, as every digest in plans and proofs is written."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


Copy.model_rebuild()
