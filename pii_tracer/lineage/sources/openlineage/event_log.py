"""The project's own event log: what streams and services told, each event once, in NDJSON segments.

Every write is under a lock, ends at a line and is fsynced before it is acknowledged. A line that a crash tore was
never acknowledged: the next writer cuts it off. Nothing is ever rewritten.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from pii_tracer.common.atomic_files import sync_folder
from pii_tracer.model.errors import LineageError

SEGMENT_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class Added:
    """What became of some events. repaired: torn lines of an earlier crash that were cut off."""

    stored: int
    known: int
    repaired: int = 0


class EventLog:
    """Append events; several processes may. Keeps 16 bytes an event in memory, to know it again."""

    def __init__(self, folder: Path, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._folder = folder
        self._limit = segment_bytes
        self._seen: set[bytes] = set()
        self._read: dict[Path, int] = {}

    def append(self, events: Iterable[Mapping[str, Any]]) -> Added:
        """Store events that are not there yet; when it returns they are on disk.

        Raises:
            LineageError: the log cannot be written; what was there stays as it was.
        """
        try:
            with self._locked():
                repaired = self._catch_up()
                lines = list(self._new(events))
                fresh = [line for line in lines if line is not None]
                self._write(fresh)
        except OSError as error:
            self._seen.clear()  # what was not written must not count as known: everything is read again
            self._read.clear()
            raise LineageError(
                f"the event log cannot be written ({type(error).__name__})",
                where=str(self._folder),
                todo="free disk space, or correct the folder's permissions",
            ) from None
        return Added(len(fresh), len(lines) - len(fresh), repaired)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def segments(self) -> list[Path]:
        """The files, oldest first."""
        return sorted(self._folder.glob("*.ndjson"))

    def _catch_up(self) -> int:
        """Read what was added since, by whomever; cut off a torn end. Returns how many ends were torn."""
        torn = 0
        for file in self.segments():
            start = self._read.get(file, 0)
            if file.stat().st_size == start:
                continue
            with file.open("rb+") as stream:
                stream.seek(start)
                for line in stream:
                    if not line.endswith(b"\n"):
                        stream.truncate(start)
                        os.fsync(stream.fileno())
                        torn += 1
                        break
                    start += len(line)
                    self._seen.add(_digest(line[:-1]))
            self._read[file] = start
        return torn

    def _new(self, events: Iterable[Mapping[str, Any]]) -> Iterator[bytes | None]:
        """One line an event in one spelling; None for one that is known."""
        for event in events:
            line = msgspec.json.encode(event, order="sorted")
            mark = _digest(line)
            if mark in self._seen:
                yield None
            else:
                self._seen.add(mark)
                yield line + b"\n"

    def _write(self, lines: list[bytes]) -> None:
        if not lines:
            return
        files = self.segments()
        file = files[-1] if files else self._folder / "000001.ndjson"
        if files and self._read[file] >= self._limit:
            file = self._folder / f"{int(file.stem) + 1:06}.ndjson"
        before = self._read.get(file, 0)
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.writelines(lines)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError:
            os.truncate(file, before)
            raise
        if not before:
            sync_folder(self._folder)
        self._read[file] = before + sum(map(len, lines))


def _digest(line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=16).digest()
