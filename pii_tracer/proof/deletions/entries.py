"""What stands in the deletion log: an entry for each step of each request, and what is asked of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.actions import Action
from pii_tracer.model.canonical_json import iso, parse_time
from pii_tracer.model.datasets import Format, Frozen


class EntryState(StrEnum):
    """How a step, or a copy without steps, stands for a request.

    partial: erased but for the columns that a hold keeps. confirmed: a person answers for it, by name.
    """

    ERASED = "erased"
    PARTIAL = "partial"
    DEFERRED = "deferred"
    BLOCKED = "blocked"
    EXEMPT = "exempt"
    CONFIRMED = "confirmed"


OPEN = (EntryState.DEFERRED, EntryState.BLOCKED)
HELD = (EntryState.EXEMPT, EntryState.PARTIAL)


class Answered(Frozen):
    """Whom an entry is about. subject: keyed reference, never a value of the person."""

    request_id: str
    subject: str


class Deed(Frozen):
    """One step, or a copy (or gap) that the plan has no step for: then `step_id` is empty.

    snapshot_planned, snapshot_before, snapshot_after: the format's own ids when the request was planned, before this
    step and after it (after VACUUM or a clean it is the id of that very run). manifest_before, manifest: SHA-256 of the
    newest file of the table's log (Delta's commit, Iceberg's metadata file, Hudi's instant) before and after the step;
    on the step that verified a copy, `manifest` is the digest over path and SHA-256 of each of its files that was
    searched. run_id: OpenLineage run of the step. files_removed, bytes_removed: counted in the storage itself, before
    against after; None where nobody counted.
    """

    plan_id: str
    step_id: str
    copy_id: str
    dataset: str
    format: Format | None
    action: Action | None
    state: EntryState
    snapshot_planned: str | None = None
    snapshot_before: str | None = None
    snapshot_after: str | None = None
    manifest_before: str | None = None
    manifest: str | None = None
    run_id: str | None = None
    run_at: datetime
    files_removed: int | None = None
    bytes_removed: int | None = None
    approver: str | None = None
    reason: str | None = None
    tool_version: str
    evidence: str


class Entry(Deed, Answered):
    """One deed for one request."""


class Person(NamedTuple):
    """As `Answered`; there may be very many."""

    request_id: str
    subject: str


@dataclass(frozen=True)
class Group:
    """Requests for which the same was done. deeds: in the order in which they are logged for each of them."""

    deeds: Sequence[Deed]
    persons: Sequence[Person]


OF_DEED = tuple(Deed.model_fields)
COLUMNS = tuple(Entry.model_fields)
NUMBERS = frozenset({"files_removed", "bytes_removed"})
STEP = tuple(OF_DEED.index(name) for name in ("plan_id", "copy_id", "step_id"))

Cell = str | int | None
Cells = tuple[Cell, ...]
"""A row as it is stored: of a deed, in the order of `OF_DEED`, or of an entry, in that of `COLUMNS`."""
Row = tuple[int, Cells]
"""An entry with its number."""


@dataclass(frozen=True)
class Selection:
    """Which rows: each field that is given must be met. dataset: with `*` and `?` as in file names.

    since (inclusive), until (exclusive): when the step ran. newest: of each request, plan, copy and step the last row.
    """

    request: str | None = None
    subject: str | None = None
    plan: str | None = None
    copy: str | None = None
    dataset: str | None = None
    action: Action | None = None
    state: EntryState | None = None
    since: datetime | None = None
    until: datetime | None = None
    newest: bool = False


ALL = Selection()


class Pruning(Frozen):
    """Rows that were removed because the log's retention had passed. digest: over their canonical lines."""

    at: datetime
    before: datetime
    last_seq: int
    rows: int
    digest: str


def cells_of(deed: Deed) -> Cells:
    """A deed as it is stored."""
    values = vars(deed)
    return tuple(_plain(values[name]) for name in OF_DEED)


def _plain(value: Any) -> Cell:
    if value is None or isinstance(value, int):
        return value
    return iso(value) if isinstance(value, datetime) else str(value)


@lru_cache(4096)
def deed_of(cells: Cells) -> Deed:
    """What `cells_of` stored. Many persons share one."""
    return Deed.model_validate(_told(OF_DEED, cells))


def entry_of(cells: Cells) -> Entry:
    """A stored row as what it says."""
    return Entry.model_validate(_told(COLUMNS, cells))


def _told(names: Sequence[str], cells: Sequence[Cell]) -> dict[str, object]:
    values: dict[str, object] = dict(zip(names, cells, strict=True))
    return {**values, "run_at": parse_time(str(values["run_at"]))}
