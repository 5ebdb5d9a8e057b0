"""The deletion log against a plain list: whatever is added, pruned, opened again and carried over, in whatever order."""

from __future__ import annotations

import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from unittest import mock

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pii_tracer.config.proof import DeletionLogKind
from pii_tracer.model.canonical_json import canonical, iso
from pii_tracer.proof.deletions import log_reading
from pii_tracer.proof.deletions.deletion_log import DeletionLog
from pii_tracer.proof.deletions.deletion_log_table import fill_table
from pii_tracer.proof.deletions.entries import COLUMNS, Deed, Entry, EntryState, Group, Person, Selection
from pii_tracer.proof.deletions.log_chain import end_file
from pii_tracer.proof.evidence_leaves import lines_digest
from tests.proof.deletion_log import earlier_version
from tests.proof.deletion_log.grouped import apart
from tests.proof.deletion_log.test_deletion_log import _table, entry
from tests.review.plans import NOW

DAYS = st.integers(0, 9)
STATES = st.sampled_from([EntryState.ERASED, EntryState.DEFERRED, EntryState.EXEMPT])
PLANS, STEPS = st.sampled_from(["p", "p2"]), st.sampled_from(["c1/1", "c1/2", "c2/1"])
REQUESTS, SUBJECTS = ["REQ-1", "REQ-2", "REQ-3"], ["hmac:00", "hmac:01"]
PERSONS = st.builds(Person, st.sampled_from(REQUESTS), st.sampled_from(SUBJECTS))
DEEDS = st.builds(
    lambda plan, step, day, state: Deed.model_validate(
        entry(
            plan_id=plan,
            step_id=step,
            copy_id=step[:2],
            dataset=f"file:/lake/{step[:2]}",
            run_at=NOW + timedelta(days=day),
            state=state,
        ).model_dump(exclude={"request_id", "subject"})
    ),
    PLANS,
    STEPS,
    DAYS,
    STATES,
)
GROUPS = st.lists(st.builds(Group, st.lists(DEEDS, max_size=4), st.lists(PERSONS, max_size=3)), max_size=3)
OPEN = (EntryState.DEFERRED, EntryState.BLOCKED)
SELECTIONS = st.builds(
    lambda request, subject, plan, copy, state, since, newest: Selection(
        request=request,
        subject=subject,
        plan=plan,
        copy=copy,
        dataset="file:/lake/c*" if copy else None,
        state=state,
        since=since and NOW + timedelta(days=since),
        until=since and NOW + timedelta(days=since + 4),
        newest=newest,
    ),
    st.none() | st.sampled_from(REQUESTS),
    st.none() | st.sampled_from(SUBJECTS),
    st.none() | PLANS,
    st.sampled_from([None, "c1"]),
    st.none() | STATES,
    st.none() | st.integers(1, 5),
    st.booleans(),
)
Numbered = tuple[int, Entry]


class Log(RuleBasedStateMachine):
    """The model: numbered rows, the last number that was ever given, and before when rows are no longer taken."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.pages = mock.patch.object(log_reading, "PAGE", 2)  # a log of several pages
        self.pages.start()
        self.path = Path(self.folder.name) / "deletion_log.sqlite"
        self.log = DeletionLog(self.path, "e")
        self.rows: list[Numbered] = []
        self.last = 0
        self.cutoff: datetime | None = None
        self.removed = 0

    def teardown(self) -> None:
        self.pages.stop()
        self.folder.cleanup()

    @rule(groups=GROUPS)
    def append(self, groups: list[Group]) -> None:
        self.log.append(groups)
        for row in apart(groups):
            late = self.cutoff is None or row.run_at >= self.cutoff
            newest = {_step(kept): kept for _, kept in self.rows}
            if late and row != newest.get(_step(row)):
                self.last += 1
                self.rows.append((self.last, row))

    @rule(day=DAYS, kept=st.sets(st.sampled_from(REQUESTS), max_size=1))
    def prune(self, day: int, kept: set[str]) -> None:
        before = NOW + timedelta(days=day)
        newest = {(r.request_id, r.copy_id, r.step_id): r for _, r in self.rows}
        stay = kept | {r.request_id for r in newest.values() if r.state in OPEN}
        gone: list[Numbered] = []
        for number, row in self.rows:
            if row.run_at >= before or row.request_id in stay:
                break
            gone.append((number, row))
        done = self.log.prune(before, NOW, kept)
        assert (done is None) == (not gone)
        if done is not None:
            assert (done.rows, done.last_seq) == (len(gone), gone[-1][0])
            assert done.digest == lines_digest(canonical(_line(number, row)) for number, row in gone)
            self.rows = self.rows[len(gone) :]
            self.removed += len(gone)
            self.cutoff = max(before, self.cutoff or before)

    @rule()
    def open_again(self) -> None:
        self.log = DeletionLog(self.path, "e")
        self.log.check()

    @rule()
    def carry_over(self) -> None:
        """An earlier version wrote the same rows."""
        prunings = [tuple(_plain(value) for value in vars(done).values()) for done in self.log.prunings]
        self.path.unlink()
        end_file(self.path).unlink(missing_ok=True)
        rows = [tuple(_line(number, row).values()) for number, row in self.rows]
        earlier_version.write(self.path, "e", rows, prunings)
        stored = earlier_version.stored(self.path, "e")
        self.log = DeletionLog(self.path, "e")
        assert earlier_version.stored(self.path, "e") == stored

    @rule()
    def fill(self) -> None:
        folder = fill_table(self.log, "e", DeletionLogKind.DELTA)
        assert [row["seq"] for row in _table(folder, DeletionLogKind.DELTA)] == [seq for seq, _ in self.rows]

    @rule(selection=SELECTIONS, after=st.integers(0, 12))
    def choose(self, selection: Selection, after: int) -> None:
        assert list(self.log.numbered(selection)) == _chosen(self.rows, selection)
        beyond = [(number, tuple(_line(number, row).values())[1:]) for number, row in self.rows if number > after]
        assert list(self.log.rows(after=after)) == beyond

    @rule(day=DAYS, plan=PLANS)
    def sum_up(self, day: int, plan: str) -> None:
        newest = _chosen(self.rows, Selection(newest=True))
        of_persons = {s: tuple(_deed(row) for _, row in newest if row.subject == s) for s in SUBJECTS}
        assert self.log.newest_of(SUBJECTS) == {s: deeds for s, deeds in of_persons.items() if deeds}
        erased = [row for _, row in self.rows if row.state is EntryState.ERASED]
        assert self.log.erased_somebody() == bool(erased)
        at_last = {row.subject: row.run_at for row in erased if row.dataset == "file:/lake/c1"}
        assert self.log.last_erased("file:/lake/c1") == at_last
        until = NOW + timedelta(days=day)
        ran: dict[tuple[str, str], datetime] = {}
        for _, row in self.rows:
            if row.run_at < until:
                key = (row.request_id, row.plan_id)
                ran[key] = max(ran.get(key, row.run_at), row.run_at)
        assert {(request, plan): at for request, plan, at in self.log.last_ran(until)} == ran
        of_plan = {_deed(row) for _, row in self.rows if row.plan_id == plan}
        deeds = self.log.deeds(plan)
        assert len(deeds) == len(of_plan)
        assert set(deeds) == of_plan

    @invariant()
    def same_rows(self) -> None:
        assert list(self.log.numbered()) == self.rows
        assert self.log.count() == len(self.rows)
        seen = earlier_version.stored(self.path, "e")[1:]
        assert [row[: 1 + len(COLUMNS)] for row in seen] == [tuple(_line(*row).values()) for row in self.rows]
        assert sum(done.rows for done in self.log.prunings) == self.removed


def _chosen(rows: list[Numbered], s: Selection) -> list[Numbered]:
    """As if each row were looked at by itself."""
    last = {(r.request_id, r.plan_id, r.copy_id, r.step_id): number for number, r in rows}
    return [
        (number, r)
        for number, r in rows
        if (not s.newest or number in last.values())
        and s.request in (None, r.request_id)
        and s.subject in (None, r.subject)
        and s.plan in (None, r.plan_id)
        and s.copy in (None, r.copy_id)
        and s.state in (None, r.state)
        and (s.since is None or r.run_at >= s.since)
        and (s.until is None or r.run_at < s.until)
    ]


def _step(row: Entry) -> tuple[str, ...]:
    return row.request_id, row.subject, row.plan_id, row.copy_id, row.step_id


def _deed(row: Entry) -> Deed:
    return Deed.model_validate(row.model_dump(exclude={"request_id", "subject"}))


def _line(number: int, row: Entry) -> dict[str, object]:
    return {"seq": number, **{name: _plain(getattr(row, name)) for name in COLUMNS}}


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return iso(value)
    return value if value is None or isinstance(value, int) else str(value)


TestLog = Log.TestCase
TestLog.settings = settings(max_examples=25, stateful_step_count=12, deadline=None)
