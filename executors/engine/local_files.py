"""Paths of local storage as engines write them, and nothing else: other storage is refused, not guessed."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlparse

from pii_tracer.common.atomic_files import all_below, sync_folder, system_reason
from pii_tracer.lake.formats.registry import table_formats
from pii_tracer.model.errors import RunError
from pii_tracer.run.masked_place_names import shown_path


def local_path(location: str) -> Path:
    """`/x`, `file:/x` or `file:///x` as a path.

    Raises:
        RunError: another scheme.
    """
    parsed = urlparse(location)
    if parsed.scheme in ("", "file") and not parsed.netloc:
        return Path(unquote(parsed.path)) if parsed.scheme else Path(location)
    raise RunError(
        "only tables on local storage can be swept file by file", where=location, todo="exempt the table, with a reason"
    )


def as_local(path: str) -> str:
    """A path from an engine's metadata without its `file:` scheme (metadata tables do not percent-encode)."""
    if path.startswith("file:"):
        return "/" + path.removeprefix("file:").lstrip("/")
    return path


def files_below(folder: Path) -> Iterator[Path]:
    """Every file below a folder, hidden ones included; links are not followed.

    Raises:
        OSError: a folder below cannot be listed.
    """

    def refuse(error: OSError) -> None:
        raise error

    for path in all_below(folder, refuse):
        if path.is_file() and not path.is_symlink():
            yield path


def refusal(error: OSError, where: str | None = None) -> RunError | None:
    """What the system refuses, for people; None where the error is a library's and not the system's.

    where: the file, where the error does not name it.
    """
    reason = system_reason(error)
    if reason is None:
        return None
    place = where or (str(error.filename) if error.filename else None)
    return RunError(
        f"the operating system rejects the change: {reason}",
        where=shown_path(place) if place else None,
        todo="fix the cause (permissions, a read-only mount, disk space), then run `pii-tracer resume`",
    )


def empty_folders(folder: Path) -> list[Path]:
    """Folders named `column=value` with no file below them, the deepest first: such a name is itself a value."""
    found: list[Path] = []
    for place in sorted((p for p in folder.rglob("*=*") if p.is_dir() and not p.is_symlink()), reverse=True):
        if all(child in found for child in place.iterdir()):
            found.append(place)
    return found


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove folders; one into which a writer has just put a file stays."""
    for place in folders:
        with contextlib.suppress(OSError):
            place.rmdir()


TEMPORARY = "_pii_tracer_"
"""What names of files begin with until they are whole: readers pass over names that begin with `_`."""


def _markers() -> list[str]:
    """Below a folder, what tells that the one it lies in is a table, or a table's metadata."""
    folders = [f"*/{name}" for one in table_formats() for name in sorted(one.sign_folders)]
    return folders + [f"*/*{end}" for one in table_formats() for end in one.sign_endings]


def refuse_nested(folder: Path, own: Callable[[Path], bool] = lambda place: False) -> None:
    """A table below a folder whose files are swept or written again would be broken.

    own: whether a place with a marker belongs to the table that the folder is.

    Raises:
        RunError: there is one.
    """
    for marker in _markers():
        for path in folder.glob("**/" + marker):
            if not own(path.parent):
                raise RunError(
                    "this folder contains a different table: work on these files would break it",
                    where=str(path.parent),
                    todo="move one of the two tables, then plan again",
                )


def state_of(path: Path) -> tuple[int, ...]:
    """What changes when somebody else writes a file: the file itself, its size, and when it was written.

    Raises:
        OSError: it cannot be seen.
    """
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def swap(path: Path, temporary: Path, before: tuple[int, ...]) -> None:
    """Put the new file in place of the old one, to be read and written by the same people.

    before: the old file's state (`state_of`) before it was read.

    Raises:
        RunError: as `let_in`; or the old file changed since then, and what was written would be lost.
    """
    let_in(path, temporary)
    with temporary.open("rb") as stream:
        os.fsync(stream.fileno())
    if state_of(path) != before:
        raise RunError(
            "another process wrote to the file while it was rewritten; the file was not replaced",
            where=shown_path(str(path)),
            todo="pause the file's writers, then run `pii-tracer resume`",
        )
    # Hadoop would refuse the new file by the old one's checksum
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    temporary.replace(path)
    sync_folder(path.parent)


def let_in(old: Path, new: Path) -> None:
    """Give a file or folder the group and the permission bits of another, and its owner where that is allowed.

    Raises:
        RunError: the group cannot be given: others than before could read it.
    """
    was, now = old.stat(), new.stat()
    try:
        if was.st_gid != now.st_gid:
            os.chown(new, -1, was.st_gid)
        if was.st_uid != now.st_uid:
            with contextlib.suppress(PermissionError):  # root alone may; the one who runs this is its owner then
                os.chown(new, was.st_uid, -1)
        new.chmod(stat.S_IMODE(was.st_mode))  # last: a new owner or group takes some bits away
    except PermissionError:
        raise RunError(
            f"the new file cannot get the group of the old file ({was.st_gid})",
            where=str(old.parent),
            todo="run as root or as a member of that group, then run `pii-tracer resume`",
        ) from None
