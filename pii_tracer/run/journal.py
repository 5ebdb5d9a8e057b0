"""What a run did, line by line: append-only, fsynced, chained by hashes.

One record a line, each the canonical JSON of RFC 8785 with `seq`, `time`, `kind`, `facts` and `prev`, the SHA-256 of
the line before it. So the hash of the last line, the head, stands for the whole journal. Only facts are written
(snapshot ids, counts, hashes), never a value of a person.

A line that was torn by a crash has no newline at its end: its writer was never told that it stands, so it is cut off
and the cut is noted. Anything else that does not fit the chain is refused, and so is a journal that ends before its
last record (`journal_truncation`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.canonical_json import canonical, iso, parse_time, written
from pii_tracer.model.errors import JournalError
from pii_tracer.run.journal_truncation import (
    End,
    read_end,
    refuse_lost,
    write_end,
)

GENESIS = "sha256:" + "0" * 64
_CLOCK_SLACK = timedelta(minutes=2)  # what a time server may take back without anybody noticing
_FIELDS = ("facts", "kind", "prev", "seq", "time")

Clock = Callable[[], datetime]
Write = Callable[[int, bytes], None]


class Kind(StrEnum):
    """What a record tells."""

    RUN_STARTED = "run_started"
    LEASE = "lease"
    DRIFT = "drift"
    STEP_INTENT = "step_intent"
    STEP_RESULT = "step_result"
    STEP_VERIFIED = "step_verified"
    STEP_WAITING = "step_waiting"
    STEP_FAILED = "step_failed"
    STEP_PROBED = "step_probed"
    STEP_NOTED = "step_noted"
    RUN_FINISHED = "run_finished"
    TORN_LINE_CUT = "torn_line_cut"


@dataclass(frozen=True)
class Record:
    """One line. hash: SHA-256 over the line's bytes without its newline."""

    seq: int
    time: datetime
    kind: Kind
    facts: Mapping[str, Any]
    prev: str
    hash: str


def utc_now() -> datetime:
    """The clock of real runs."""
    return datetime.now(timezone.utc)


def parse(data: bytes, where: str = "journal", after: Record | None = None) -> tuple[tuple[Record, ...], int]:
    """All whole records of a journal, and the number of bytes of a torn last line (0 where there is none).

    after: the last record before these bytes, where they are not the journal from its begin.

    Raises:
        JournalError: a record is not canonical JSON or does not follow from the one before it; names the record.
    """
    *lines, torn = data.split(b"\n")
    records: list[Record] = []
    first, prev = (after.seq + 1, after.hash) if after else (0, GENESIS)
    for seq, line in enumerate(lines, first):
        record = _record(line, seq, prev, f"{where}, record {seq}")
        records.append(record)
        prev = record.hash
    return tuple(records), len(torn)


def read_journal(path: Path) -> tuple[tuple[Record, ...], int]:
    """As `parse`, of a journal on the disk, whose runner may be writing; nothing where it is not there yet.

    Raises:
        JournalError: unreadable, a broken chain, or records are missing at its end.
    """
    _, records, torn = _read(path)
    return records, torn


class GrowingJournal:
    """A journal on the disk that somebody else writes: what was read once is not read again.

    records: its whole records so far.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = 0
        self.records: tuple[Record, ...] = ()

    def read(self) -> tuple[Record, ...]:
        """The records that came since the last call; all, with `records` empty before, where it was written anew.

        Raises:
            JournalError: as `read_journal`.
        """
        size = self._path.stat().st_size if self._path.exists() else 0
        if size == 0 or size < self._size:
            self._size, self.records = 0, ()
        if size == self._size and size:
            return ()
        end = read_end(self._path)
        try:
            data = _from(self._path, self._size)
        except OSError as error:
            raise _unusable(self._path, error) from None
        new, torn = parse(data or b"", str(self._path), self.records[-1] if self.records else None)
        records = (*self.records, *new)
        refuse_lost(self._path, end, None if data is None else records)
        self._size, self.records = self._size + len(data or b"") - torn, records
        return new


def _from(path: Path, start: int) -> bytes | None:
    """The bytes of a file behind a place; None where there is no file."""
    try:
        with path.open("rb") as stream:
            stream.seek(start)
            return stream.read()
    except FileNotFoundError:
        return None


def _read(path: Path) -> tuple[bytes | None, tuple[Record, ...], int]:
    """The bytes (None where there is no file), the records and the torn bytes; refused as `read_journal` says."""
    end = read_end(path)
    try:
        data = path.read_bytes() if path.exists() else None
    except OSError as error:
        raise _unusable(path, error) from None
    records, torn = parse(data or b"", str(path))
    refuse_lost(path, end, None if data is None else records)
    return data, records, torn


def _hash(line: bytes) -> str:
    return "sha256:" + hashlib.sha256(line).hexdigest()


def _record(line: bytes, seq: int, prev: str, where: str) -> Record:
    def broken(what: str) -> JournalError:
        return JournalError(
            f"the journal is broken: {what}",
            where=where,
            todo="do not resume from this file; restore the journal from its copy in the evidence, or plan again",
        )

    try:
        raw = json.loads(line)
        is_canonical = canonical(raw) == line
        record = Record(
            seq=raw["seq"],
            time=parse_time(raw["time"]),
            kind=Kind(raw["kind"]),
            facts=dict(raw["facts"].items()),
            prev=raw["prev"],
            hash=_hash(line),
        )
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, JournalError):
        raise broken("the record cannot be read") from None
    if not is_canonical or len(raw) != len(_FIELDS):
        raise broken("the record is not in the form in which records are written")
    if record.seq != seq:
        raise broken(f"the record says it is number {record.seq}")
    if record.prev != prev:
        raise broken("the record does not follow from the previous one")
    return record


def write_and_sync(fd: int, data: bytes) -> None:
    """Write all bytes and return when they are on the disk."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.fsync(fd)


class Journal:
    """An open journal. One writer only: the holder of the run's lease."""

    def __init__(self, path: Path, clock: Clock, write: Write, records: Sequence[Record]) -> None:
        self.path = path
        self._clock = clock
        self._write = write
        self._records = list(records)
        self._size = 0
        self._damaged = False

    @classmethod
    def open(cls, path: Path, clock: Clock = utc_now, *, write: Write = write_and_sync) -> Journal:
        """Open for appending; create where missing; cut off a torn last line and note it.

        Raises:
            JournalError: unreadable, a broken chain, or records are missing at its end; nothing was written then.
        """
        data, records, torn = _read(path)
        journal = cls(path, clock, write, records)
        try:
            journal._keep_end()  # before the journal: without its end it is never the work of a crash
            if data is None:
                path.touch(mode=0o600)
                _sync_folder(path.parent)
            elif torn:
                journal._size = len(data) - torn
                journal._cut(data, torn)
            else:
                journal._size = len(data)
        except OSError as error:
            raise _unusable(path, error) from None
        return journal

    def _cut(self, data: bytes, torn: int) -> None:
        with self.path.open("r+b") as stream:
            stream.truncate(len(data) - torn)
            stream.flush()
            os.fsync(stream.fileno())
        self.append(Kind.TORN_LINE_CUT, bytes=torn, digest=_hash(data[-torn:]))

    def _keep_end(self) -> None:
        write_end(self.path, End(len(self._records), self.head))

    @property
    def records(self) -> tuple[Record, ...]:
        """All records so far."""
        return tuple(self._records)

    @property
    def head(self) -> str:
        """Hash of the last record; stands for the whole journal."""
        return self._records[-1].hash if self._records else GENESIS

    def holds(self, head: str) -> bool:
        """Whether a record with this hash stands here: whether the journal that had this head is this one."""
        return head == GENESIS or any(record.hash == head for record in self._records)

    def append(self, kind: Kind, /, **facts: Any) -> Record:
        """Write one record; it is on the disk when this returns.

        Raises:
            JournalError: it could not be written, now or at an earlier call: after a failed write nobody knows how
                the file ends, so it must be opened again. Or the clock was set back, or somebody else has written.
        """
        if self._damaged:
            raise JournalError("a write to the journal has failed", where=str(self.path), todo="resume the run")
        seq, prev, now = len(self._records), self.head, self._clock()
        self._refuse_past(now)
        entry = {"seq": seq, "time": now, "kind": kind, "facts": facts, "prev": prev}
        line, plain = written(entry)
        record = Record(seq, parse_time(plain["time"]), kind, plain["facts"], prev, _hash(line))
        self._damaged = True
        try:
            fd = os.open(self.path, os.O_WRONLY | os.O_APPEND)
            try:
                self._refuse_others(fd)
                self._write(fd, line + b"\n")
            finally:
                os.close(fd)
            self._size += len(line) + 1
            self._records.append(record)
            self._keep_end()
        except OSError as error:
            raise _unusable(self.path, error) from None
        self._damaged = False
        return record

    def _refuse_past(self, now: datetime) -> None:
        last = self._records[-1].time if self._records else now
        if now < last - _CLOCK_SLACK:
            raise JournalError(
                f"the clock of this machine was set back: it shows {iso(now)}, and the last record has the time "
                f"{iso(last)}",
                where=str(self.path),
                todo="correct the clock, then run `pii-tracer resume`: waits and deadlines depend on the clock",
            )

    def _refuse_others(self, fd: int) -> None:
        """A second writer would tear the chain; neither may go on as if it were alone."""
        if os.fstat(fd).st_size != self._size:
            raise JournalError(
                "another process has written to the journal",
                where=str(self.path),
                todo="run `pii-tracer status` to see which process runs this plan, wait until it has ended, then "
                "run `pii-tracer resume`",
            )


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(PermissionError):  # some systems do not let a folder be opened
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _unusable(path: Path, error: OSError) -> JournalError:
    return JournalError(
        f"the journal cannot be used: {error.strerror or type(error).__name__}",
        where=str(path),
        todo="check the disk and the permissions of the file, then run `pii-tracer resume`",
    )
