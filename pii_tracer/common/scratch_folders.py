"""Folders for what a process needs only while it lives: engines' temporary files, shuffled rows, copies of jars.

One folder a process in each place, with the mode 0700 and a lock that dies with the process, whatever ends it. A folder
whose lock is free is a leftover: it may hold rows of anybody, and anybody's next process may take it away.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "pii-tracer-scratch-"
_LOCK = ".lock"
_MAKING = 60.0
"""Seconds in which a folder without a lock may be one that is just being made."""
_own: dict[tuple[int, str], Path] = {}
_ends: list[Callable[[], None]] = []


def scratch_folder(place: Path | None = None) -> Path:
    """The folder of this process, made at the first call and wiped when the process ends.

    place: in which folder it lies; the system's temporary one unless it is told.

    Raises:
        OSError: as the file system says.
    """
    root = os.path.realpath(place or system_temporary())
    mine = (os.getpid(), root)
    if mine not in _own or not _own[mine].is_dir():
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))
        handle = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)  # never closed: it is held as long as the process lives
        _own[mine] = path
    return _own[mine]


def before_wiping(end: Callable[[], None]) -> None:
    """Have something done when the process ends, before its folders go: an engine that writes there is stopped."""
    if end not in _ends:
        _ends.append(end)


@contextmanager
def temporary_files_in(folder: Path) -> Iterator[None]:
    """Inside, Python's temporary files of this process lie in a folder."""
    before = tempfile.tempdir
    tempfile.tempdir = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


def leftovers(places: Iterable[Path] = ()) -> tuple[Path, ...]:
    """Folders of processes that are no more, of this user, in the system's temporary folder and in these places."""
    roots = {Path(os.path.realpath(root)) for root in (system_temporary(), *places)}
    found = (path for root in sorted(roots) if root.is_dir() for path in sorted(root.glob(f"{PREFIX}*")))
    return tuple(path for path in found if _is_left(path))


def wipe(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Remove leftovers; which of these stay is returned. What is no leftover (any more) is not touched."""
    paths = tuple(paths)
    for path in paths:
        if _is_left(path):
            shutil.rmtree(path, ignore_errors=True)
    return tuple(path for path in paths if path.is_dir())


def size_of(path: Path) -> int:
    """Bytes below a folder; what cannot be asked counts nothing."""
    total = 0
    for here, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):
                total += (Path(here) / name).lstat().st_size
    return total


def system_temporary() -> Path:
    """The folder for temporary files of the system; not the scratch folder, also inside `temporary_files_in`."""
    here = Path(tempfile.gettempdir())
    return next((part.parent for part in (here, *here.parents) if part.name.startswith(PREFIX)), here)


def _is_left(path: Path) -> bool:
    try:
        told = path.lstat()
        if not path.name.startswith(PREFIX) or not stat.S_ISDIR(told.st_mode) or told.st_uid != os.geteuid():
            return False
        handle = os.open(path / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return path.is_dir() and time.time() - told.st_mtime > _MAKING
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


@atexit.register
def _wipe_own() -> None:
    mine = [path for (pid, _), path in _own.items() if pid == os.getpid()]
    if not mine:  # a child that was forked has the parent's table, and none of its folders
        return
    for end in _ends:
        with contextlib.suppress(Exception):
            end()
    for path in mine:
        shutil.rmtree(path, ignore_errors=True)
