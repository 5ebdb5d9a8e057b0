"""Paths of local storage as engines write them, and nothing else: other storage is refused, not guessed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlparse

from pii_tracer.errors import RunError


def local_path(location: str) -> Path:
    """`/x`, `file:/x` or `file:///x` as a path.

    Raises:
        RunError: another scheme.
    """
    parsed = urlparse(location)
    if parsed.scheme in ("", "file") and not parsed.netloc:
        return Path(unquote(parsed.path)) if parsed.scheme else Path(location)
    raise RunError(
        "only tables on local storage can be swept file by file yet", where=location, todo="exempt it with a reason"
    )


def as_local(path: str) -> str:
    """A path from an engine's metadata without its `file:` scheme (metadata tables do not percent-encode)."""
    if path.startswith("file:"):
        return "/" + path.removeprefix("file:").lstrip("/")
    return path


def files_below(folder: Path) -> Iterator[Path]:
    """Every file below a folder, hidden ones included; links are not followed."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield path
