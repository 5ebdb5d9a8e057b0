"""One runner a plan: a lock that dies with its process, and a fencing token that only grows.

The lock (flock) tells whether the last holder still lives. The token tells a runner that was frozen and lost its lease
that somebody else has gone on: it compares its token before each step.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from datetime import datetime
from pathlib import Path
from types import TracebackType

from pydantic import ValidationError

from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.errors import Refused
from pii_tracer.run.journal import Clock, utc_now


class Holder(Frozen):
    """Who holds or last held the lease. token: grows by one with each taking."""

    pid: int
    host: str
    since: datetime
    token: int
    released: bool = False


class Lease:
    """A lease that is held. Use as a context manager, or call `release`."""

    def __init__(self, folder: Path, lock_fd: int, holder: Holder, took_over: Holder | None) -> None:
        self._folder = folder
        self._lock_fd: int | None = lock_fd
        self.holder = holder
        self.took_over = took_over

    @property
    def token(self) -> int:
        """The fencing token of this taking."""
        return self.holder.token

    @classmethod
    def acquire(
        cls,
        folder: Path,
        clock: Clock = utc_now,
        *,
        pid: int | None = None,
        host: str | None = None,
        take_over: bool = False,
    ) -> Lease:
        """Take the lease of a run folder.

        A lease whose process is gone is taken over. One of another host cannot be looked at from here: it needs
        `take_over`, said by a person who knows that host's runner is gone.

        Raises:
            Refused: somebody holds it; says who.
        """
        folder.mkdir(parents=True, exist_ok=True)
        fd = os.open(folder / "runner.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise _held(_read(folder), folder) from None
            last = _read(folder)
            here = host or socket.gethostname()
            abandoned = last if last and not last.released else None
            if abandoned and abandoned.host != here and not take_over:
                raise _held(abandoned, folder)
            token = last.token + 1 if last else 1
            holder = Holder(pid=pid or os.getpid(), host=here, since=clock(), token=token)
            _write(folder, holder)
        except BaseException:
            os.close(fd)
            raise
        return cls(folder, fd, holder, abandoned)

    def check(self) -> None:
        """Raise `Refused` when the lease is no longer ours."""
        now = _read(self._folder)
        if self._lock_fd is None or now is None or now.token != self.token:
            raise Refused(
                "this run stops, because another runner now has the lease of its plan",
                where=str(self._folder),
                todo="wait until the other runner has ended; run `pii-tracer status` to see it",
            )

    def release(self) -> None:
        """Give the lease back. Calling it twice does nothing."""
        if self._lock_fd is None:
            return
        now = _read(self._folder)
        if now is not None and now.token == self.token:
            _write(self._folder, self.holder.model_copy(update={"released": True}))
        os.close(self._lock_fd)
        self._lock_fd = None

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def who_runs(folder: Path) -> str | None:
    """Who runs a plan now, in words; None where nobody does or its runner died. For people: takes and promises nothing.

    A holder on another host cannot be looked at from here and counts as running.
    """
    try:
        holder = _read(folder)
    except Refused as error:
        return f"unknown: {error.what}"
    if holder is None or holder.released:
        return None
    if holder.host == socket.gethostname():
        try:
            os.kill(holder.pid, 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            pass  # it lives, and is somebody else's
    return _words(holder)


def _words(holder: Holder) -> str:
    return f"process {holder.pid} on {holder.host}, since {holder.since.isoformat()}"


def _read(folder: Path) -> Holder | None:
    path = folder / "lease.json"
    try:
        return Holder.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError):
        raise Refused(
            "the lease file cannot be read, so it is unknown who runs this plan",
            where=str(path),
            todo="make sure that no process runs this plan, then remove the file",
        ) from None


def _write(folder: Path, holder: Holder) -> None:
    data = json.dumps(holder.model_dump(mode="json"), sort_keys=True)
    write_atomic(folder / "lease.json", data.encode(), mode=0o600)


def _held(holder: Holder | None, folder: Path) -> Refused:
    who = _words(holder) if holder else "another process"
    return Refused(
        f"this plan is already being run by {who}",
        where=str(folder),
        todo="wait for it; if that host is gone for good, `pii-tracer resume --take-over`",
    )
