"""Any sequence of appends, crashes, full disks, second writers and clocks set back, against a plain list."""

from __future__ import annotations

import errno
import os
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pii_tracer.model.errors import JournalError
from pii_tracer.run.journal import (
    Journal,
    Kind,
    parse,
    write_and_sync,
)
from tests.run.fakes import Killed, Ticking


class Journals(RuleBasedStateMachine):
    """model: what must stand, in order. A record whose writer died may stand or not; nothing else is in doubt."""

    @initialize()
    def start(self) -> None:
        self.folder = TemporaryDirectory()
        self.path = Path(self.folder.name) / "j"
        self.clock, self.model, self.number = Ticking(), list[int](), 0
        self.bytes_left: int | None = None
        self.full = False
        self.open()

    def open(self) -> None:
        self.bytes_left, self.full = None, False
        self.journal = Journal.open(self.path, self.clock, write=self.write)

    def write(self, fd: int, data: bytes) -> None:
        if self.bytes_left is None:
            write_and_sync(fd, data)
            return
        write_and_sync(fd, data[: self.bytes_left])
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise Killed

    def told(self) -> list[int]:
        records, torn = parse(self.path.read_bytes())
        assert torn == 0
        return [int(r.facts["n"]) for r in records if r.kind is Kind.STEP_INTENT]

    @rule(count=st.integers(1, 4))
    def append(self, count: int) -> None:
        for _ in range(count):
            self.number += 1
            assert self.journal.append(Kind.STEP_INTENT, n=self.number).hash == self.journal.head
            self.model.append(self.number)

    @rule()
    def open_again(self) -> None:
        head = self.journal.head
        self.open()
        assert self.journal.head == head
        assert self.journal.holds(head)

    @rule(size=st.integers(0, 400), full=st.booleans())
    def dies_or_runs_out_of_disk_in_a_write(self, size: int, full: bool) -> None:
        self.bytes_left, self.full = size, full
        self.number += 1
        try:
            self.journal.append(Kind.STEP_INTENT, n=self.number)
        except Killed:
            assert not full
        except JournalError:
            assert full
            try:
                self.journal.append(Kind.STEP_INTENT, n=self.number)
            except JournalError:
                pass
            else:
                raise AssertionError("it wrote on after a write that had failed")
        self.open()
        if self.told() == [*self.model, self.number]:
            self.model.append(self.number)  # every byte of it was written

    @rule()
    def a_second_writer(self) -> None:
        other = Journal.open(self.path, self.clock)
        self.number += 1
        other.append(Kind.STEP_INTENT, n=self.number)
        self.model.append(self.number)
        try:
            self.journal.append(Kind.STEP_INTENT, n=0)
        except JournalError:
            self.open()
        else:
            raise AssertionError("two writers wrote into one journal")

    @rule(hours=st.integers(1, 1000))
    def the_clock_goes_back(self, hours: int) -> None:
        if not self.journal.records:
            return
        was = self.clock.now
        self.clock.now -= timedelta(hours=hours)
        try:
            self.journal.append(Kind.STEP_INTENT, n=0)
        except JournalError:
            self.clock.now = was
        else:
            raise AssertionError("it wrote at a time before its last record")

    @invariant()
    def what_was_told_stands(self) -> None:
        if hasattr(self, "model"):
            assert self.told() == self.model

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()


Journals.TestCase.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)
TestJournals = Journals.TestCase
