"""The erasure plan as a file: copies, steps, gaps, totals. Pure data; `planners` makes it, `executors` obey it.

Stable interface: see docs/plan-format.md. No value of any person is in it; subjects are keyed references.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

import msgspec
from pydantic import ConfigDict, Field

from pii_tracer.common.gc_pause import lasting_objects
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import (
    PLAIN,
    Carries,
    CopyKind,
    Currency,
    DatasetId,
    Format,
    Frozen,
    KnownPartitions,
    Match,
    ShortNumbers,
    Strategy,
)
from pii_tracer.model.gap_kinds import NamedKind
from pii_tracer.model.locations import S3Location, in_place, is_s3, s3_location
from pii_tracer.model.non_key_columns import NotKeys
from pii_tracer.model.planned_requests import Requests, packed
from pii_tracer.model.waivers import OwnerTask, Waiver

FORMAT_VERSION = 2
STAYS = frozenset({Strategy.EXEMPT, Strategy.MASK_COLUMNS, Strategy.DESTROY_KEY, Strategy.CONFIRM, Strategy.RECOMPUTED})
"""What is kept, wholly or in part, what stays as ciphertext, what nobody looked at, what its owner computed again:
attestations name it as exceptions, not as erased."""
HELD = frozenset({Strategy.EXEMPT, Strategy.MASK_COLUMNS})
"""What a hold keeps, wholly or in some columns."""
_NO_TABLES = frozenset({CopyKind.ARCHIVE, CopyKind.OBJECT_VERSION, CopyKind.REPLICA, CopyKind.BACKUP})
"""Kinds of copies that are no table, wherever they lie."""


class PlannedColumn(Frozen):
    """A PII column of a copy with its category, e.g. `pan` / `national_id`."""

    name: str
    category: str


TEXTS = "texts"
"""Fact of a copy: columns of JSON lines that are read as text, whatever they hold; rows would change their types."""

NUMBERED = "numbered"
"""In `Copy.facts`: columns that hold keys of rows and nothing else, with the key sets that mean the persons there. The
digits of another weak one in them are the number of somebody else's row."""

KEEPS_HISTORY = "keeps_history"
"""Fact of a copy: every snapshot of it stays, without the persons."""


class Copy(Frozen):
    """One place where the person is.

    origin: id of the copy this one depends on (its history, its object versions, its replica), or None for a copy
    that counts by itself. A copy counts as erased when everything that depends on it is gone too.
    match: how the person's rows are found here, None where no row is deleted (rebuild, versions).
    other_keys: columns that lineage proves to come from no identifying column; a weak key found there means
    something else (a merchant's number) and is reported as such, not as residue.
    lineage: the path by which it came here, from the source, one hop an entry.
    exemption: why nothing is erased here, or only a part; with the strategies `exempt` and `mask_columns`.
    mask: which columns of the persons' rows become NULL; only where a hold keeps the others.
    mentions: columns that name the persons in rows which are other people's, too, and stay (docs/where-is-the-key.md).
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
    exemption: Exemption | None = None
    mask: Mask | None = None
    mentions: tuple[Mention, ...] = ()
    facts: dict[str, Any] = {}

    @property
    def s3_table(self) -> S3Location | None:
        """Where the copy lies, if it is a table in S3: it has rows, and what is deleted of it may stay as old versions.

        Raises:
            EstateError: its location has no name of a bucket.
        """
        return s3_location(self.location) if self.kind not in _NO_TABLES and is_s3(self.location) else None

    @property
    def stored_table(self) -> bool:
        """Whether it is a table in a place (`in_place`): its engine writes it, and files are not treated one by one."""
        return in_place(self.location) and self.format not in PLAIN

    @property
    def in_objects(self) -> bool:
        """Whether it is a bare folder in S3: a table, of which the objects are all there is. An archive has no name."""
        return self.kind is CopyKind.ARCHIVE and self.table is not None and is_s3(self.location)

    @property
    def folder(self) -> str:
        """Where the copy lies, as an inventory names the table that it is."""
        return self.location.rstrip("/") if self.in_objects else self.location

    @property
    def places(self) -> Match | None:
        """Wherever the persons are looked for in a row, whatever becomes of it; None where no row is found."""
        mentioned = tuple(term for mention in self.mentions for term in mention.match.terms)
        if not mentioned:
            return self.match
        return Match(terms=(*(self.match.terms if self.match else ()), *mentioned))


class Exemption(Frozen):
    """Ids of the holds (`ErasurePlan.holds`) that keep a copy, and until when; None where nobody knows yet.

    until: when less is kept: the whole copy by its last hold, a single column by its own.
    """

    holds: tuple[str, ...]
    until: datetime | None


class HeldColumn(Frozen):
    """A column that stays. holds: ids of the holds that keep it; until: the last of their ends, None without one."""

    name: str
    holds: tuple[str, ...]
    until: datetime | None


class Mask(Frozen):
    """What becomes of the persons' rows where only some columns are held: they stay, and `columns` become NULL.

    held: what stays by a hold. found_by: columns that nothing holds, and that stay because no held column shows whose
    row it is. Without them nobody could say whose the held data are, or erase them when the hold ends.
    """

    columns: tuple[str, ...]
    held: tuple[HeldColumn, ...]
    found_by: tuple[str, ...] = ()

    @property
    def kept(self) -> tuple[str, ...]:
        """Every column that stays."""
        return (*(column.name for column in self.held), *self.found_by)


class Mention(Frozen):
    """A column that names a person in somebody else's row: it becomes NULL there, and what says more of the person.

    match: which rows; a list or a map that it looks into loses the elements in which it finds the persons, and does not
    become NULL. mask: without anything that is held, and with all that stays of such a row.
    """

    match: Match
    mask: Mask


class Found(Frozen):
    """What the scan at planning saw of the persons in this copy: evidence, not an estimate."""

    files_scanned: int
    files_with_person: int
    rows: int | None
    bytes: int
    unread: tuple[str, ...] = ()


LAPSES = " lapses"
"""Behind a version in the `object_versions` that a plan expects: the lifecycle may have removed it."""


class Precondition(Frozen):
    """A fact of the world the plan relies on: `kind` names the check, `expected` the planned value.

    Kinds: snapshot, refs, columns, clones, sharing, staged, object_versions, replication, topic, lakefs, hdfs,
    object_place, text, writers_stopped.
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
    currency: Currency = "INR"
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


class Gap(Frozen):
    """Something that could not be proved; it blocks the plan until a named person waives it.

    seen: digest of what the gap shows, and of whom where it is about persons; a waiver names it. files: marks
    (`MarkKey.of_file`) of the files that hold the persons in a place that lineage does not explain; a waiver covers no
    others. unread: the same of files that could not be read, or only in part. listed: of a list of objects in no place.
    """

    id: str
    dataset: DatasetId | None
    kind: NamedKind
    reason: str
    evidence: str
    waiver: Waiver | None = None
    seen: str = ""
    files: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    listed: str = Field(default="", exclude_if=lambda listed: not listed)

    @property
    def task(self) -> OwnerTask | None:
        """What somebody does by hand about it, where the waiver says so."""
        return self.waiver.task if self.waiver else None


class Examined(Frozen):
    """A dataset that was looked at and is no copy, with the reason. other_keys: as of a copy. digits: short numbers of
    the persons that were there and were judged; None where nobody counted them."""

    dataset: DatasetId
    table: str | None
    carries: Carries
    reason: str
    digits: tuple[ShortNumbers, ...] | None = None
    other_keys: tuple[str, ...] = ()


class PlannedHold(Frozen):
    """A hold of the estate file that keeps copies of this plan, or what persons asked to keep (`own_request`). until:
    None where nobody knows yet. copies: none where what persons asked to keep is not there."""

    id: str
    kind: str
    basis: str
    citation: str
    from_: datetime = Field(alias="from")
    until: datetime | None
    approver: str
    copies: tuple[str, ...]

    model_config = ConfigDict(populate_by_name=True)


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
    """The verdict's numbers. copies: those that count by themselves; beyond: those that depend on them.

    exempt: of `copies`, those that a hold keeps, completely or in part. recheck_on: the first day on which less of
    these is kept, and the erasure must be planned again; None where nothing is held, or nobody knows the day.
    """

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
    currency: Currency
    critical_path: tuple[str, ...]
    exempt: int = 0
    recheck_on: datetime | None = None


class ErasurePlan(Frozen):
    """A whole plan. Serialise with `to_bytes`, never by hand: the approval is bound to those bytes.

    only: ids of the copies that were chosen; empty for a plan of all. A plan of some can be applied and is never
    complete. partitioned: tables whose folders do not show their partitions, which verification compares. known_by_key:
    requests whose persons no version of the source is known to have. Both are None in plans of before these were known.
    """

    format_version: int
    plan_id: str
    tool_version: str
    created_at: datetime
    estate: str
    planned_by: str = ""
    retention: str
    overrides: tuple[Override, ...]
    requests: Requests
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
    holds: tuple[PlannedHold, ...] = ()
    only: tuple[str, ...] = ()
    not_keys: tuple[NotKeys, ...] = ()
    partitioned: tuple[KnownPartitions, ...] | None = None
    known_by_key: tuple[str, ...] | None = None

    @property
    def not_before(self) -> datetime | None:
        """When the last notice to a person of it has run: nothing of it may begin before; None where none is wanted."""
        return max((r.not_before for r in self.requests if r.not_before), default=None)

    @lasting_objects()
    def to_bytes(self) -> bytes:
        """Sorted, indented UTF-8 JSON with a final newline, as `json.dumps(…, indent=2)` writes it, which is slow."""
        data = self.model_dump(mode="json", by_alias=True)
        data["requests"] = packed(data["requests"])
        return msgspec.json.format(msgspec.json.encode(data, order="sorted"), indent=2) + b"\n"

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
