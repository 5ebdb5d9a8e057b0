"""Files of a git repository, at a commit or in its working tree. Nothing of the repository is run.

git is called with fixed arguments; names from outside are never options. Hooks, replaced objects, file system
monitors and the fetching of missing objects are switched off. Symbolic links and submodules are not followed.
"""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pii_tracer.common.plurals import counted
from pii_tracer.model.errors import UsageError

MOST_BYTES = 5_000_000
"""Of one file that is read."""
MOST_FILES = 100_000
_SAFE = ("--no-pager", "--no-replace-objects", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c",
         "core.hooksPath=/dev/null", "-c", "core.quotePath=false")  # fmt: skip
_PLACES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
           "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_EXTERNAL_DIFF", "GIT_CEILING_DIRECTORIES")  # fmt: skip
_SECONDS = 120


@dataclass(frozen=True)
class GitFile:
    """A file. path: as text; what is not UTF-8 is escaped. data: None where `problem` says why it is not read."""

    path: str
    digest: str
    data: bytes | None = None
    problem: str | None = None


class Repository:
    """A repository whose root holds the files."""

    def __init__(self, folder: Path) -> None:
        """Raises UsageError: the folder is in no repository, or git is not there."""
        self._folder = folder
        if not folder.is_dir():
            raise UsageError("this is not a folder", where=str(folder), todo="name the folder of a git repository")
        found = self._git("rev-parse", "--show-toplevel", check=False)
        if not found:
            raise UsageError(
                "this is not the working tree of a git repository, or git refuses it",
                where=str(folder),
                todo="name the folder with --repository; run `git status` there to see the reason",
            )
        self.root = Path(os.fsdecode(found.rstrip(b"\n")))
        self._folder = self.root

    def commit(self, ref: str) -> str:
        """The commit that a name means.

        Raises:
            UsageError: none, or the name looks like an option.
        """
        if not ref or ref.startswith("-") or any(not c.isprintable() for c in ref):
            raise UsageError("this is not a commit", where=ascii(ref), todo="name a branch, tag or commit")
        found = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", ref + "^{commit}", check=False)
        if not found:
            todo = "fetch it first (in GitHub Actions: `fetch-depth: 0`)" if self._shallow() else "correct the name"
            raise UsageError("the repository does not contain this commit", where=ref, todo=todo)
        return found.decode("ascii").strip()

    def fork_point(self, base: str, head: str) -> str:
        """The newest commit that both come from: what changed on the base since is not the head's change.

        Raises:
            UsageError: there is none, or a shallow clone does not hold it.
        """
        found = self._git("merge-base", base, head, check=False)
        if not found:
            shallow = self._shallow()
            raise UsageError(
                "base and head have no common commit" + (" in this shallow clone" if shallow else ""),
                where=f"{base[:12]} and {head[:12]}",
                todo="fetch the history (in GitHub Actions: `fetch-depth: 0`)" if shallow else "name another base",
            )
        return found.split()[0].decode("ascii")

    def at(self, commit: str, wanted: Callable[[str], bool]) -> list[GitFile]:
        """Files of a commit. wanted: by the path, which of them are read."""
        listed = self._git("ls-tree", "-r", "-z", "-l", "--full-tree", commit)
        found: list[GitFile] = []
        asked: list[tuple[str, str]] = []
        for entry in _parts(listed):
            about, _, written = entry.partition(b"\t")
            mode, _, blob, size = about.split()
            path = _shown(written)
            if not wanted(path):
                continue
            problem = _mode(mode) or (_too_large() if size.isdigit() and int(size) > MOST_BYTES else None)
            if problem:
                found.append(GitFile(path, blob.decode(), problem=problem))
            else:
                asked.append((path, blob.decode()))
        _few(len(found) + len(asked))
        texts = self._blobs([blob for _, blob in asked])
        for (path, name), data in zip(asked, texts, strict=True):
            missing = "its content is not in this clone" if data is None else None
            found.append(GitFile(path, name if data is None else _digest(data), data, missing))
        return sorted(found, key=lambda f: f.path)

    def working_tree(self, wanted: Callable[[str], bool]) -> list[GitFile]:
        """Files of the working tree, those that git ignores left out."""
        listed = self._git("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--full-name", ":/")
        names = sorted({name for name in _parts(listed) if wanted(_shown(name))})
        _few(len(names))
        found = (self._read(name) for name in names)
        return [file for file in found if file is not None]

    def _read(self, name: bytes) -> GitFile | None:
        place, shown = self.root / os.fsdecode(name), _shown(name)
        if not place.parent.resolve().is_relative_to(self.root.resolve()):
            return GitFile(shown, "outside", problem="it lies outside of the repository, behind a symbolic link")
        try:
            about = place.lstat()
            if stat.S_ISLNK(about.st_mode):
                return GitFile(shown, _digest(os.fsencode(place.readlink())), problem=_mode(b"120000"))
            if not stat.S_ISREG(about.st_mode):
                return GitFile(shown, "special", problem="it is not a regular file")
            if about.st_size > MOST_BYTES:
                return GitFile(shown, f"{about.st_size}-{about.st_mtime_ns}", problem=_too_large())
            with os.fdopen(os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:
                data = stream.read(MOST_BYTES + 1)
        except FileNotFoundError:
            return None  # deleted, and the deletion is not committed
        except OSError as error:
            return GitFile(shown, "unread", problem=f"the system refuses it ({type(error).__name__})")
        return GitFile(shown, _digest(data), data)

    def _blobs(self, blobs: Sequence[str]) -> list[bytes | None]:
        if not blobs:
            return []
        answer = self._git("cat-file", "--batch", given="\n".join(blobs).encode() + b"\n")
        found: list[bytes | None] = []
        at = 0
        for _ in blobs:
            end = answer.index(b"\n", at)
            about = answer[at:end].split()
            if len(about) != 3 or about[1] != b"blob":
                found.append(None)
                at = end + 1
                continue
            size = int(about[2])
            found.append(answer[end + 1 : end + 1 + size])
            at = end + 1 + size + 1
        return found

    def _shallow(self) -> bool:
        return self._git("rev-parse", "--is-shallow-repository", check=False).strip() == b"true"

    def _git(self, *arguments: str, given: bytes = b"", check: bool = True) -> bytes:
        environment = {k: v for k, v in os.environ.items() if k not in _PLACES}
        environment |= {"GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
        try:
            done = subprocess.run(
                ["git", "-C", str(self._folder), *_SAFE, *arguments],
                input=given, capture_output=True, env=environment, timeout=_SECONDS, check=False,
            )  # fmt: skip
        except FileNotFoundError:
            raise UsageError("git is not on the path", todo="install git") from None
        except subprocess.TimeoutExpired:
            raise UsageError(f"git took longer than {_SECONDS} seconds", where=str(self._folder)) from None
        if done.returncode == 0:
            return done.stdout
        if check:
            raise UsageError(
                f"git {arguments[0]} failed",
                where=str(self._folder),
                todo="run this git command in that folder to see the reason",
            )
        return b""


def _parts(listed: bytes) -> Iterator[bytes]:
    return (part for part in listed.split(b"\0") if part)


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _mode(mode: bytes) -> str | None:
    if mode == b"120000":
        return "it is a symbolic link, which is not followed"
    return "it is a submodule" if mode == b"160000" else None


def _too_large() -> str:
    return f"it is larger than {MOST_BYTES // 1_000_000} MB"


def _few(number: int) -> None:
    if number > MOST_FILES:
        raise UsageError(
            f"the repository has more than {counted(MOST_FILES, 'file')} to read", todo="review a smaller repository"
        )
