"""The log of a streaming query's file sink: Spark reads a folder that has one by it, by the sizes it names (F6).

`FOLDER/_spark_metadata/N` and `N.compact`: a line `v1`, then a JSON object for each file, with its path as a URI and
its size (https://github.com/apache/spark, `FileStreamSinkLog`). A file that was written again and has another size
cannot be read until its entry says so, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from executors.engine.local_files import TEMPORARY, local_path, state_of, swap
from pii_tracer.lake.streaming_checkpoints import SINK_LOG
from pii_tracer.model.errors import RunError

_NAME = re.compile(r"\d+(?:\.compact)?\Z")
_VERSION = "v1"


def stale(folder: Path) -> list[Path]:
    """Log files that name another size than a file of the folder has.

    Raises:
        RunError: a log that cannot be read: nothing may be written again in the folder.
    """
    return [path for path in _logs(folder) if any(_renewed(entry, folder) for entry in _entries(path))]


def renew(folder: Path) -> int:
    """Write those logs again, with the sizes that the files have; says how many.

    Raises:
        RunError: as `stale`.
    """
    logs = stale(folder)
    for path in logs:
        before = state_of(path)
        lines = [
            json.dumps(_renewed(e, folder) or e, separators=(",", ":"), ensure_ascii=False) for e in _entries(path)
        ]
        temporary = path.with_name(TEMPORARY + path.name)
        temporary.write_text("\n".join([_VERSION, *lines]), encoding="utf-8")
        swap(path, temporary, before)
    return len(logs)


def _logs(folder: Path) -> Iterator[Path]:
    log = folder / SINK_LOG
    yield from sorted(p for p in log.iterdir() if _NAME.match(p.name)) if log.is_dir() else ()


def _entries(path: Path) -> list[dict[str, Any]]:
    try:
        version, *lines = path.read_text(encoding="utf-8").split("\n")
        entries = [json.loads(line) for line in lines if line]
        if version != _VERSION or not all(isinstance(e["path"], str) and isinstance(e["size"], int) for e in entries):
            raise ValueError
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        raise RunError(
            "the log of the streaming query that writes this folder cannot be read: readers would lose files that a "
            "step rewrites",
            where=str(path),
            todo="ask the query's owner to rewrite the folder, then plan again",
        ) from None
    return entries


def _renewed(entry: dict[str, Any], folder: Path) -> dict[str, Any] | None:
    """The entry as it ought to be; None where it is right, or speaks of no file of the folder."""
    if not entry["path"].startswith(("file:", "/")):
        return None
    file = local_path(entry["path"])
    if not file.is_relative_to(folder) or not file.is_file() or file.stat().st_size == entry["size"]:
        return None
    now = file.stat()
    return entry | {"size": now.st_size, "modificationTime": now.st_mtime_ns // 1_000_000}
