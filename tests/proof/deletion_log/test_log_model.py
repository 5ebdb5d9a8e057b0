"""The deletion log against a plain list: whatever is added, pruned and opened again, in whatever order."""

from __future__ import annotations

import tempfile
from datetime import datetime, timedelta
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pii_tracer.config.proof import DeletionLogKind
from pii_tracer.proof.deletion_log import DeletionLog, Entry, EntryState
from pii_tracer.proof.deletion_log_table import fill_table
from tests.proof.deletion_log.test_deletion_log import _table, entry
from tests.review.plans import NOW

DAYS = st.integers(0, 9)
ROWS = st.lists(
    st.builds(
        lambda request, step, day, state: entry(
            request_id=request, step_id=step, run_at=NOW + timedelta(days=day), state=state
        ),
        st.sampled_from(["REQ-1", "REQ-2"]),
        st.sampled_from(["c1/1", "c1/2"]),
        DAYS,
        st.sampled_from([EntryState.ERASED, EntryState.DEFERRED, EntryState.EXEMPT]),
    ),
    max_size=5,
)
OPEN = (EntryState.DEFERRED, EntryState.BLOCKED)


class Log(RuleBasedStateMachine):
    """The model: numbered rows, the last number that was ever given, and before when rows are no longer taken."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "deletion_log.sqlite"
        self.log = DeletionLog(self.path, "e")
        self.rows: list[tuple[int, Entry]] = []
        self.last = 0
        self.cutoff: datetime | None = None
        self.removed = 0

    def teardown(self) -> None:
        self.folder.cleanup()

    @rule(rows=ROWS)
    def append(self, rows: list[Entry]) -> None:
        self.log.append(rows)
        for row in rows:
            late = self.cutoff is None or row.run_at >= self.cutoff
            if late and row not in [kept for _, kept in self.rows]:
                self.last += 1
                self.rows.append((self.last, row))

    @rule(day=DAYS)
    def prune(self, day: int) -> None:
        before = NOW + timedelta(days=day)
        newest = {(r.request_id, r.copy_id, r.step_id): r for _, r in self.rows}
        still_open = {r.request_id for r in newest.values() if r.state in OPEN}
        gone = 0
        for _, row in self.rows:
            if row.run_at >= before or row.request_id in still_open:
                break
            gone += 1
        done = self.log.prune(before, NOW)
        assert (done.rows if done else 0) == gone
        if gone:
            self.rows = self.rows[gone:]
            self.removed += gone
            self.cutoff = max(before, self.cutoff or before)

    @rule()
    def open_again(self) -> None:
        self.log = DeletionLog(self.path, "e")

    @rule()
    def fill(self) -> None:
        folder = fill_table(self.log, "e", DeletionLogKind.DELTA)
        assert [row["seq"] for row in _table(folder, DeletionLogKind.DELTA)] == [seq for seq, _ in self.rows]

    @invariant()
    def same_rows(self) -> None:
        assert list(self.log.numbered()) == self.rows
        assert sum(done.rows for done in self.log.prunings) == self.removed


TestLog = Log.TestCase
TestLog.settings = settings(max_examples=25, stateful_step_count=12, deadline=None)
