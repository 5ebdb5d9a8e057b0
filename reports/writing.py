"""The only I/O of the reports: put a finished text in its place, whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_report(path: Path, text: str) -> None:
    """Write UTF-8 text atomically (temporary name beside it, fsync, rename); makes the folder if needed.

    Raises:
        OSError: the folder cannot be written; an earlier report stays as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
