"""The readings of an estate in the state folder: a line a reading, and beside it the state of the newest.

`readiness/trend.ndjson` only grows; it is replaced whole, so that a killed process leaves the old one. A state is
written first, and counts when the trend names it with its digest: a reading is there completely, or not at all.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pii_tracer.common.atomic_files import sweep_temporaries, sync_folder, write_atomic
from pii_tracer.model.errors import EstateError, UsageError
from pii_tracer.readiness.estate_snapshot import EstateState
from pii_tracer.readiness.readiness_reading import Readiness, TrendPoint

FOLDER = "readiness"
TREND = "trend.ndjson"
_STATES = "state-*.json.gz"


@dataclass(frozen=True)
class Readings:
    """The trend, and the state of its last reading; None before the first."""

    points: tuple[TrendPoint, ...]
    last: EstateState | None


@contextmanager
def alone(state: Path) -> Iterator[Path]:
    """The folder of the readings, while no other process takes one.

    Raises:
        UsageError: another process takes a reading.
    """
    folder = state / FOLDER
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                "another process is already measuring this estate", where=str(folder), todo="wait until it has ended"
            ) from None
        sweep_temporaries(folder, 0)
        yield folder


def read(folder: Path) -> Readings:
    """Read the trend and the newest state.

    Raises:
        EstateError: a file was altered, cut or removed.
    """
    trend = folder / TREND
    if not trend.exists():
        # the first state may have been written by a process that died before its line; a later one had a line before it
        if any(file.name != _state_name(1) for file in folder.glob(_STATES)):
            raise _broken(trend, "the trend is missing")
        return Readings((), None)
    try:
        points = tuple(msgspec.json.decode(line, type=TrendPoint) for line in trend.read_bytes().splitlines())
    except msgspec.DecodeError:
        raise _broken(trend, "a line of the trend cannot be read") from None
    if not points:
        raise _broken(trend, "the trend is empty")
    last = points[-1]
    file = folder / Path(last.state).name
    try:
        data = file.read_bytes()
    except OSError:
        raise _broken(file, "the state of the last reading is missing") from None
    if hashlib.sha256(data).hexdigest() != last.digest:
        raise _broken(file, "the file with the last reading was changed after it was written")
    try:
        return Readings(points, msgspec.json.decode(gzip.decompress(data), type=EstateState))
    except (msgspec.DecodeError, OSError, EOFError, zlib.error):
        raise _broken(file, "the state of the last reading cannot be read") from None


def append(folder: Path, before: Readings, made: Readiness, state: EstateState) -> None:
    """Add a reading: its state, then the line that makes it count; then remove states that no line needs.

    Raises:
        OSError: as the file system says; the readings are then as they were.
    """
    name = _state_name(state.number)
    data = gzip.compress(msgspec.json.encode(state), compresslevel=3, mtime=0)
    write_atomic(folder / name, data, mode=0o600)
    sync_folder(folder)
    lines = [*before.points, made.point(name, hashlib.sha256(data).hexdigest())]
    text = b"".join(msgspec.json.encode(point) + b"\n" for point in lines)
    write_atomic(folder / TREND, text, mode=0o600)
    sync_folder(folder)
    for old in folder.glob(_STATES):
        if old.name != name:
            old.unlink()


def _state_name(number: int) -> str:
    return f"state-{number:06d}.json.gz"


def _broken(file: Path, what: str) -> EstateError:
    return EstateError(
        what, where=str(file), todo="restore it from a backup, or move the folder away to start a new trend"
    )
