"""What the verifier says of a copy and of a run. Only what was looked at is claimed."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pydantic import Field

from pii_tracer.common.plurals import counted
from pii_tracer.model.datasets import CopyKind, DatasetId, Frozen, Strategy
from pii_tracer.model.plan import Copy, ErasurePlan, Examined
from pii_tracer.scan.hits import Reading

STILL_THERE = "not recomputed: nothing shows that the file was written after the erasure of its sources"
"""`Residue.where` of a file that its owner was to compute again."""


class Residue(Frozen):
    """A place where the person still is (a stable interface). where: kind of place and column; form: how.

    person: keyed reference, where each person was looked for apart.
    """

    copy_id: str
    file: str
    where: str
    form: str
    person: str | None = None

    def as_json(self) -> dict[str, str]:
        """As the result object and the reports show it."""
        return {"copy": self.copy_id, "file": self.file, "where": self.where, "form": self.form}


class SameDigits(Frozen):
    """A weak number that lineage proves to be something else (a merchant of the same number): no residue."""

    copy_id: str
    column: str
    files: int
    count: int


class NoKeys(Frozen):
    """Cells that equal a key of the person, in a column that holds another system's numbers by the owner's word.

    count: cells, and bounds of them. No residue, and told apart.
    """

    copy_id: str
    column: str
    files: int
    count: int


class HeldValue(Frozen):
    """Values of a key set that stand in a column which a hold keeps: not erased, and no residue.

    column: None where the scan saw the same value once more in a place that tells no column: nobody can say that it
    stands for the held one only.
    """

    copy_id: str
    column: str | None
    key_set: str
    files: int
    count: int


class ScannedFile(Frozen):
    """One file of the scope. sha256: hex, of the bytes that were searched."""

    path: str
    size: int
    sha256: str
    decoded_as: str


SINCE = "(new) "
"""What a verdict's name begins with that is about nothing the plan knows."""
NO_COPY = "(no copy) "
"""And one about what was examined at planning."""


def no_copy_name(examined: Examined) -> str:
    """What the verdict about an examined dataset is called."""
    return f"{NO_COPY}{examined.table or examined.dataset.name}"


class ComputedAgain(Frozen):
    """Files of a copy that its owner computed again. before: those that were there when its sources were erased; after:
    those that were written after the owner's job began.
    """

    before: int
    after: int


class ByteVerdict(Frozen):
    """One copy's files, decoded and searched. `files` is the scope of every claim.

    compared: columns whose cells were compared as a whole, as the plan's steps compare them: a longer word in them
    is somebody else's key. no_keys: what the owner's word makes nobody's key. not_asked: what the store refuses to
    tell, as it did at planning, and a named person waived: it does not keep the copy from being clean, and proofs
    name it. unread_as_waived: files that cannot be read, in the very bytes that a named person waived as unread.
    marks_waived: of these files, in the same order, the marks by which gaps know them. again: of a copy that its owner
    computes again.
    place: of what is no copy, the dataset, or the path of a lone file as it may be shown. late: of what is
    unverified, what was not so at planning. Neither of them nor the marks are part of what is written.
    """

    copy_id: str
    root: str
    files: tuple[ScannedFile, ...]
    residue: tuple[Residue, ...] = ()
    unverified: tuple[str, ...] = ()
    same_digits: tuple[SameDigits, ...] = ()
    held: tuple[HeldValue, ...] = ()
    compared: tuple[str, ...] = ()
    no_keys: tuple[NoKeys, ...] = ()
    not_asked: tuple[str, ...] = ()
    unread_as_waived: tuple[str, ...] = ()
    again: ComputedAgain | None = None
    marks_waived: tuple[str, ...] = Field(default=(), exclude=True)
    place: DatasetId | str | None = Field(default=None, exclude=True)
    late: tuple[str, ...] = Field(default=(), exclude=True)

    @property
    def since(self) -> bool:
        """Whether it is about what the plan does not know: it came, or was found out, after planning."""
        return self.copy_id.startswith(SINCE)

    @property
    def clean(self) -> bool:
        """Nothing found and nothing left unread."""
        return not self.residue and not self.unverified

    def at(self, place: DatasetId | str) -> ByteVerdict:
        """The same, with the place that it is about."""
        return self.model_copy(update={"place": place})


class StateRows(Frozen):
    """Rows of the persons in one state of a copy: `current`, `snapshot 123`, `branch audit`, `version 4`, `changes`.

    rows: None when the state could not be read; `reason` then says why. Where a hold keeps columns: only rows that hold
    more than these; held: all rows of the persons, which stay.
    """

    state: str
    rows: int | None
    reason: str | None = None
    held: int | None = None


class RowVerdict(Frozen):
    """One copy's rows in every state that can be read.

    A state of the past that cannot be read any more is no finding: its bytes are the byte verdict's matter. The current
    state must be readable.
    """

    copy_id: str
    states: tuple[StateRows, ...]

    @property
    def rows_left(self) -> int:
        """Rows of the persons, summed over all readable states (one row counts in each state that shows it)."""
        return sum(state.rows or 0 for state in self.states)

    @property
    def states_with_person(self) -> tuple[str, ...]:
        """Names of the states that still show the persons."""
        return tuple(state.state for state in self.states if state.rows)


class StateBaseline(Frozen):
    """Everybody in one state. checksum: of the other rows, independent of their order.

    held: where a hold keeps columns, the same over these columns of the persons' rows. way: how rows were hashed
    (`pii_tracer.verify.row_hashes.WAY`); the baselines of earlier versions do not say it.
    """

    state: str
    rows_total: int
    rows_person: int
    checksum: str
    held: str | None = None
    way: int = 1

    @property
    def rows_other(self) -> int:
        """Rows that are not the persons'."""
        return self.rows_total - self.rows_person


class TopicTrail(Frozen):
    """Everybody else's records of a topic that its own retention may remove, one by one (`verify.lapsed` packs them).

    retention_ms, retention_bytes: the topic's own limits, -1 for none. starts: the first offset of each partition,
    asked for after the records were read.
    """

    topic_id: str
    retention_ms: int
    retention_bytes: int
    starts: tuple[int, ...]
    records: str


class Baseline(Frozen):
    """The other people's rows of a copy before the run: the current state and every branch and tag.

    trail: of topics from which records lapse.
    """

    copy_id: str
    states: tuple[StateBaseline, ...]
    trail: TopicTrail | None = None


class Bystanders(Frozen):
    """Baseline before against after. lost: rows fewer than before, over all states that were there before.

    equal: the same rows came back everywhere. added: rows more than before. missing: states (branches, tags) that are
    gone. lapsed: records of a topic that left by its own retention meanwhile; these are neither lost nor changed.
    """

    copy_id: str
    lost: int
    equal: bool
    missing: tuple[str, ...] = ()
    lapsed: int = 0
    added: int = 0

    @property
    def finding(self) -> str | None:
        """What is wrong with them, if anything. A sum over rows does not tell new ones from changed ones."""
        if self.equal and not self.lost:
            return None
        if self.lost or self.missing or not self.added:
            return f"{counted(self.lost, 'row of other people is', 'rows of other people are')} gone or changed"
        return (
            f"{counted(self.added, 'row')} of other people more than before the run. A writer added rows during the "
            "run, so nobody knows whether the earlier rows are unchanged. Stop the writer, check its rows, then plan "
            "again (with `--source-erased` if the source is erased): the new run counts the rows again"
        )


class CopyVerdict(Frozen):
    """All that was looked at for one copy. Parts that do not apply (rows of an object version) are None.

    reading: how its files came to be searched, where they were not all decoded for this verdict. left_of: keyed
    references of the persons whose the residue is, all of it: nothing was found of the others when these were looked
    for without them. Empty where nobody knows whose it is.
    """

    copy_id: str
    bytes: ByteVerdict | None = None
    rows: RowVerdict | None = None
    bystanders: Bystanders | None = None
    reading: Reading | None = None
    left_of: tuple[str, ...] = ()

    @property
    def files_decoded(self) -> int:
        """Files that were decoded for this verdict; the others have the bytes of an earlier search. `reading` counts
        the column chunks of these that were not.
        """
        return (len(self.bytes.files) if self.bytes else 0) - (self.reading.before if self.reading else 0)

    @property
    def residue(self) -> tuple[Residue, ...]:
        """Files that hold the person, and states that show them."""
        found = self.bytes.residue if self.bytes else ()
        states = self.rows.states_with_person if self.rows else ()
        return found + tuple(Residue(copy_id=self.copy_id, file="", where=f"rows: {s}", form="row") for s in states)

    @property
    def unverified(self) -> tuple[str, ...]:
        """What could not be looked at."""
        return self.bytes.unverified if self.bytes else ()

    @property
    def erased(self) -> bool:
        """Looked at, nothing found, nothing unread, nobody else lost."""
        looked = self.bytes is not None or self.rows is not None
        return looked and self._harmless and not self.residue

    @property
    def erased_of_others(self) -> bool:
        """All that `erased` says, of all persons but those of `left_of`, of whom something is left."""
        return bool(self.left_of) and self._harmless

    @property
    def _harmless(self) -> bool:
        """Nothing unread, nobody else lost."""
        return (self.bystanders is None or self.bystanders.finding is None) and not self.unverified


class RunVerdict(Frozen):
    """All copies of a run."""

    copies: tuple[CopyVerdict, ...]

    @property
    def residue(self) -> tuple[Residue, ...]:
        """Of all copies; a place shared by several copies counts for each."""
        return tuple(item for copy in self.copies for item in copy.residue)

    @property
    def unverified(self) -> tuple[str, ...]:
        """Of all copies, with the copy's id in front."""
        return tuple(f"{copy.copy_id}: {item}" for copy in self.copies for item in copy.unverified)

    @property
    def reading(self) -> Reading:
        """How the files of the copies that were not all decoded came to be searched."""
        whole = Reading()
        for copy in self.copies:
            whole = whole.and_(copy.reading or Reading())
        return whole

    @property
    def not_asked(self) -> tuple[str, ...]:
        """What stores refuse to tell and what cannot be read, where a named person waived that, of all copies."""
        seen = [copy.bytes for copy in self.copies if copy.bytes]
        return tuple(told for one in seen for told in (*one.not_asked, *one.unread_as_waived))

    @property
    def erased(self) -> tuple[str, ...]:
        """Ids of the copies that are erased."""
        return tuple(copy.copy_id for copy in self.copies if copy.erased)

    @property
    def erased_of_others(self) -> tuple[str, ...]:
        """Ids of the copies that are erased of all but some known persons."""
        return tuple(copy.copy_id for copy in self.copies if copy.erased_of_others)

    @property
    def bystander_rows_lost(self) -> int:
        """Rows of other people that are gone, over all copies."""
        return sum(copy.bystanders.lost for copy in self.copies if copy.bystanders)

    @property
    def checksum_equal(self) -> bool:
        """Every compared copy gave the other people's rows back unchanged."""
        return all(copy.bystanders.equal for copy in self.copies if copy.bystanders)


def to_be_seen(plan: ErasurePlan) -> tuple[Copy, ...]:
    """The copies that a run has to look at: all but those that a hold keeps whole, and backups, for which a person's
    word stands. What the plan's steps are does not matter here."""
    return tuple(c for c in plan.copies if c.strategy is not Strategy.EXEMPT and c.kind is not CopyKind.BACKUP)


def with_unseen(verdict: RunVerdict, wanted: Iterable[Copy]) -> RunVerdict:
    """The verdict of a run that is at its end; a copy that it should have looked at and did not is unverified in it."""
    seen = {copy.copy_id for copy in verdict.copies}
    unseen = (
        CopyVerdict(
            copy_id=copy.id,
            bytes=ByteVerdict(
                copy_id=copy.id, root=copy.location, files=(), unverified=("the run has no verdict for it",)
            ),
        )
        for copy in wanted
        if copy.id not in seen
    )
    return RunVerdict(copies=(*verdict.copies, *unseen))


def with_since(
    verdict: RunVerdict,
    elsewhere: Iterable[ByteVerdict],
    *,
    no_copies: bool = False,
    whole: Collection[DatasetId] = (),
) -> RunVerdict:
    """The verdict of a run with what came after planning and could not be looked at: nobody can call it complete.

    What of it was found is told apart, as all that is no copy. no_copies: the plan has none, so that all that cannot be
    looked at counts. whole: what planning read as a whole, so that anything unread there came later.
    """
    late = ((v, v.unverified if v.since or no_copies or v.place in whole else v.late) for v in elsewhere)
    told = (ByteVerdict(copy_id=v.copy_id, root=v.root, files=(), unverified=why) for v, why in late if why)
    return RunVerdict(copies=(*verdict.copies, *(CopyVerdict(copy_id=v.copy_id, bytes=v) for v in told)))


def read_as_a_whole(plan: ErasurePlan) -> frozenset[DatasetId]:
    """Datasets that planning examined without any gap about them: it read every byte there."""
    told = {gap.dataset for gap in plan.gaps}
    return frozenset(item.dataset for item in plan.examined if item.dataset not in told)
