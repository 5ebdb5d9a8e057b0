"""Files that are whole or not there: written to a temporary name, fsynced, renamed. Reading what others wrote."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

_TEMPORARY = re.compile(r"\..+\.(\d+)\.tmp", re.DOTALL)
_STALE_SECONDS = 3600.0


def write_atomic(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Replace a file's content in one step. The folder is made where it is missing.

    Raises:
        OSError: as the file system says (disk full, permission); the old content is then untouched.
    """
    with atomic(path, mode=mode) as stream:
        stream.write(data)


@contextlib.contextmanager
def atomic(path: Path, *, mode: int = 0o644) -> Iterator[BinaryIO]:
    """As `write_atomic`, for content that comes in pieces: nothing changes when the block raises."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    # made anew: a left-over would keep its own mode, and a link would lead elsewhere
    temporary.unlink(missing_ok=True)
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def real_path(path: Path) -> Path:
    """The absolute path without links; of links that lead in a circle as far as they lead, for whoever reads it to say
    (`Path.resolve` raises a RuntimeError there before Python 3.13)."""
    return Path(os.path.realpath(path))


def sync_folder(folder: Path) -> None:
    """Have what was made, renamed or removed in a folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def system_reason(error: BaseException) -> str | None:
    """Why the system refused, in its own words for the error's number: they hold no data, whatever the message does."""
    number = error.errno if isinstance(error, OSError) else None
    return os.strerror(number) if number is not None and number > 0 else None


def all_below(folder: Path, refuse: Callable[[OSError], None]) -> list[Path]:
    """What is below a folder, hidden or not, and no folder itself, sorted; links are not followed.

    refuse: is told each folder that may not be listed (`Path.rglob` passes over it, and over all that is in it), and
    may raise. One that goes meanwhile holds nothing.
    """

    def told(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            refuse(error)

    return sorted(Path(here) / name for here, _, names in os.walk(folder, onerror=told) for name in names)


def read_bounded(path: Path, limit: int) -> bytes:
    """A file's bytes, at most `limit` of them.

    Raises:
        OSError: as the file system says; also when it is larger, or no file (a pipe would never end).
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "not a file", str(path))
    with path.open("rb") as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"larger than {limit} bytes", str(path))
    return data


def sweep_temporaries(folder: Path, seconds: float = _STALE_SECONDS) -> None:
    """Remove what writers left in a folder that were killed in the middle of `write_atomic`.

    Only what is so many seconds old and whose process is gone: a folder can be shared with another machine, and its
    writer is never slower than an hour. seconds: 0 where the caller is the only writer.
    """
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            name = _TEMPORARY.fullmatch(entry.name)
            if name is None or not entry.is_file(follow_symlinks=False) or _lives(int(name[1])):
                continue
            with contextlib.suppress(FileNotFoundError, PermissionError):
                if time.time() - entry.stat(follow_symlinks=False).st_mtime > seconds:
                    Path(entry.path).unlink()


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # it lives, and is somebody else's
    return True
