"""What the run reports are made from: plain facts that the caller fills from journal and verdicts.

No model here holds a person's value: files, columns, counts, digests and names of forms only.
"""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.datasets import (
    CopyKind,
    DatasetId,
    Format,
    Frozen,
    Strategy,
)


class RunState(StrEnum):
    """How the whole run stands. `RESIDUE` outranks the others: whoever reads it must not think the person is gone."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    WAITING = "waiting"
    BLOCKED = "blocked"
    RESIDUE = "residue"


class CopyState(StrEnum):
    """How one copy stands. `ERASED` only after rows and bytes were verified, never from a return code.

    `CONFIRMED`: a person said so, and nobody looked. `MASKED`: a hold keeps columns, all else of the rows is erased.
    """

    ERASED = "erased"
    CONFIRMED = "confirmed"
    RESIDUE = "residue"
    EXEMPT = "exempt"
    MASKED = "masked"
    WAITING = "waiting"
    FAILED = "failed"
    NOT_STARTED = "not_started"
    NOT_VERIFIED = "not_verified"


class StepState(StrEnum):
    """How one step ended."""

    DONE = "done"
    FAILED = "failed"
    WAITING = "waiting"
    NOT_STARTED = "not_started"


class Holding(Frozen):
    """What a copy holds of the persons: files in which they were read, and rows; None where either does not apply.

    A branch has no files of its own: they belong to its table.
    """

    files: int | None
    rows: int | None = None


class StepRun(Frozen):
    """One step as it ran.

    action: the plan's action, e.g. `iceberg_delete_rows`. irreversible: as planned.
    snapshot_before, snapshot_after: snapshot id, version or instant around the step, None where there is none.
    note: one line of facts for people (`3 files rewritten`), or the error of a failed step.
    """

    id: str
    action: str
    state: StepState
    irreversible: bool = False
    started: datetime | None = None
    finished: datetime | None = None
    snapshot_before: str | None = None
    snapshot_after: str | None = None
    note: str = ""


class CopyRun(Frozen):
    """One copy, before and after.

    before: from the scan at planning or just before the first step; after: from the verifier, None if it did not run.
    files_decoded: files the verifier read in this copy by their format. origin: as in the plan.
    waiting_until: only for `WAITING`. note: why exempt, waiting or failed; `rebuilt`; or `versions`, where
    the files counted are object versions.
    """

    id: str
    kind: CopyKind
    dataset: DatasetId
    table: str | None
    location: str
    format: Format
    strategy: Strategy
    state: CopyState
    before: Holding
    after: Holding | None
    files_decoded: int = 0
    origin: str | None = None
    steps: tuple[StepRun, ...] = ()
    waiting_until: datetime | None = None
    note: str = ""


class Residue(Frozen):
    """A place where the person was found after the erasure.

    copy_: id of the copy (`copy` in JSON). file: path inside it. where: column, footer, log entry, bounds …
    form: name of the form that matched (`plain`, `sha2-256`), never the value.
    foreseen: ids of the gaps about this place that a named person waived; somebody said that it may be so.
    """

    copy_: str = Field(alias="copy")
    file: str
    where: str
    form: str
    foreseen: tuple[str, ...] = ()

    model_config = {"frozen": True, "extra": "forbid", "populate_by_name": True}


class NaiveLeft(Frozen):
    """One place that a plain DELETE left the person in.

    dataset: name of the table or folder. place: what kind of bytes (`older snapshots`, `delta log statistics`).
    files: how many files still hold the person there. example: one path, shortened by the caller if it likes.
    hazard: id of the catalogue, e.g. `I2`.
    """

    dataset: str
    place: str
    files: int
    example: str = ""
    hazard: str = ""


class NaivePanel(Frozen):
    """What a plain DELETE on the tables one knows of would leave (or left, in the demo).

    statement: the statement's shape without a literal, e.g. `DELETE FROM payments WHERE user_id = ?`.
    rows_seen_after: rows that a SELECT still finds in the tables deleted from (0 is what makes it look done).
    seconds: how long the statements took. readable: what was read of the person there (`PAN`), names and no values.
    """

    statement: str
    rows_seen_after: int
    seconds: float = 0.0
    readable: tuple[str, ...] = ()
    left: tuple[NaiveLeft, ...]

    @property
    def files_left(self) -> int:
        """Files that still hold the person, over all places."""
        return sum(place.files for place in self.left)


class FormatCheck(Frozen):
    """Files of one kind that the byte verifier searched: `what` is `Parquet`, `Avro manifest`, `Delta log JSON` …"""

    what: str
    files: int
    bytes: int


class ByteCheck(Frozen):
    """The byte verification of the whole run.

    forms: names of the forms searched for (`plain text`, `sha2-256 of lower-case e-mail`), never values.
    held: what stands in columns that a hold keeps, one line each.
    other_meaning: notes on equal digits in columns of another origin (a merchant's number), one line each.
    unread: files that could not be decoded; any entry keeps the run from being complete.
    known: files of these that were not decoded again, since their bytes were searched before; known_since: when the
    first bytes were read that were not read or not decoded again; known_by_store: objects of these that were not read,
    since their store says which they are.
    shaped: files of these that were decoded but for column chunks in whose shape no value fits; chunks_left: how many.
    in_parts: objects of which such pages were not read, since their store says that they are the same; some of them may
    be in `known`.
    """

    formats: tuple[FormatCheck, ...]
    forms: tuple[str, ...]
    other_meaning: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    known: int = 0
    known_since: datetime | None = None
    known_by_store: int = 0
    shaped: int = 0
    chunks_left: int = 0
    in_parts: int = 0

    @property
    def files(self) -> int:
        """All files searched."""
        return sum(kind.files for kind in self.formats)

    @property
    def bytes(self) -> int:
        """All bytes searched."""
        return sum(kind.bytes for kind in self.formats)


class Bystanders(Frozen):
    """Everybody else's rows in one copy: counts and order-free checksums without the persons, before and after."""

    dataset: str
    rows_before: int
    rows_after: int
    checksum_before: str
    checksum_after: str

    @property
    def intact(self) -> bool:
        """No row lost, added or changed."""
        return self.rows_before == self.rows_after and self.checksum_before == self.checksum_after


class Proofs(Frozen):
    """Where the proof lies. Digests as `sha256:…`; paths as given to the user; None where there is none yet."""

    plan_digest: str
    approved_by: str | None = None
    merkle_root: str | None = None
    log_entries: int = 0
    deletion_log: str | None = None
    attestation: str | None = None
    report: str | None = None


class RunView(Frozen):
    """A run of a plan, for the run report and the closing table.

    requests: ids of the erasure requests; subjects: their keyed references. copies in plan order, beyond ones included.
    bystander_rows_lost: over all copies. limits: what this run cannot prove, one sentence each.
    left_out: datasets that the plan left out by choice; the persons are still in there. open_requests: those that stay
    open since something of their persons is left, while all others are attested.
    demo: the estate is a sample; the report says so.
    """

    plan_id: str
    estate: str
    tool_version: str
    requests: tuple[str, ...]
    subjects: tuple[str, ...]
    state: RunState
    started: datetime
    finished: datetime
    deadline: datetime
    copies: tuple[CopyRun, ...]
    rows_erased: int
    bystander_rows_lost: int
    residue: tuple[Residue, ...] = ()
    naive: NaivePanel | None = None
    bytes_checked: ByteCheck | None = None
    bystanders: tuple[Bystanders, ...] = ()
    proofs: Proofs
    limits: tuple[str, ...] = ()
    waiting_until: datetime | None = None
    left_out: tuple[str, ...] = ()
    open_requests: tuple[str, ...] = ()
    demo: bool = False

    @property
    def counted(self) -> tuple[CopyRun, ...]:
        """The copies that count by themselves."""
        return tuple(copy for copy in self.copies if copy.origin is None)

    @property
    def compared(self) -> int:
        """Copies in which the rows of all other people were counted before and after."""
        return len(self.bystanders)

    @property
    def by_files_alone(self) -> int:
        """Counting copies that are erased by the search of all their files: no second reader read their rows."""
        mine = (copy for copy in self.counted if copy.state is CopyState.ERASED)
        return sum(copy.after is not None and copy.after.rows is None for copy in mine)

    @property
    def beyond(self) -> tuple[CopyRun, ...]:
        """The copies that hang from another one."""
        return tuple(copy for copy in self.copies if copy.origin is not None)

    def hanging_from(self, copy_id: str) -> tuple[CopyRun, ...]:
        """Everything below a copy, at any depth, in run order."""
        found: list[CopyRun] = []
        seen = {copy_id}
        grew = True
        while grew:
            new = [copy for copy in self.copies if copy.origin in seen and copy.id not in seen]
            seen.update(copy.id for copy in new)
            found += new
            grew = bool(new)
        return tuple(found)

    @property
    def erased(self) -> int:
        """Counting copies that are erased with all that hangs from them."""
        return sum(
            copy.state is CopyState.ERASED
            and all(below.state is CopyState.ERASED for below in self.hanging_from(copy.id))
            for copy in self.counted
        )

    @property
    def confirmed(self) -> int:
        """Counting copies that somebody confirmed: nobody could look at them, or their owner computed them again."""
        return sum(copy.state is CopyState.CONFIRMED for copy in self.counted)

    @property
    def exempt(self) -> int:
        """Counting copies that a law or hold keeps, wholly or in some columns."""
        return sum(copy.state in (CopyState.EXEMPT, CopyState.MASKED) for copy in self.counted)
