"""Bare folders: the files that hold the person are written again, each swapped in whole.

Parquet and CSV, plain or compressed. There is no delete in these formats (hazards F1, F2b, F3).
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from executors.context import ExecutionContext
from executors.local import files_below, local_path
from executors.match import match_of
from executors.s3_objects import keys_of
from executors.s3_rows import Kept, drop_rows
from pii_tracer.errors import RunError
from pii_tracer.model import Format
from pii_tracer.plan import Action, Copy, Step
from pii_tracer.protocol import Check, Outcome, Progress

_ENDINGS = {
    Format.PARQUET: (".parquet",),
    Format.CSV: (".csv", ".csv.gz", ".csv.zst"),
}


class FilesExecutor:
    """FILES_REWRITE. A file is replaced in one step, so a crash leaves the old one or the new one, never half."""

    name = "files"

    def __init__(self, ctx: ExecutionContext) -> None:
        self._ctx = ctx

    def check(self, step: Step, copy: Copy | None) -> None:
        """Raise `RunError` for formats that are not supported and folders that are not there."""
        if step.action is not Action.FILES_REWRITE or _format(step) not in _ENDINGS:
            raise RunError(
                f"{step.action} of {step.parameters.get('format')} files is not supported yet",
                where=step.parameters.get("location"),
                todo="rewrite the folder by its job, then plan again",
            )
        if not local_path(step.parameters["location"]).is_dir():
            raise RunError("the folder is not there", where=step.parameters["location"], todo="plan again")

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        """Write every file that holds the person again; facts have the hashes before and after, and row counts."""
        rewritten: list[dict[str, Any]] = []
        folder = local_path(step.parameters["location"])
        for stale in self._leftovers(step):
            stale.unlink(missing_ok=True)
        for path in self._files(step):
            data = path.read_bytes()
            kept = self._drop(step, copy, data, path)
            if kept.data is None:
                continue
            _swap(path, kept.data)
            rewritten.append(
                {
                    "file": _shown(path.relative_to(folder)),
                    "sha256_before": hashlib.sha256(data).hexdigest(),
                    "sha256_after": hashlib.sha256(kept.data).hexdigest(),
                    "rows_before": kept.rows_before,
                    "rows_after": kept.rows_after,
                }
            )
        deleted = sum(r["rows_before"] - r["rows_after"] for r in rewritten)
        return Outcome({"files": rewritten, "files_rewritten": len(rewritten), "rows_deleted": deleted})

    def verify(self, step: Step, copy: Copy | None) -> Check:
        """Read every file again."""
        left = [p.name for p in self._files(step) if self._drop(step, copy, p.read_bytes(), p).data is not None]
        stale = [p.name for p in self._leftovers(step)]
        findings = [f"{len(left)} files still hold the person"] if left else []
        return Check(not findings and not stale, (*findings, *(f"temporary file {s} is left" for s in stale)))

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """After a crash: files that are done are not touched again."""
        for path in self._leftovers(step):
            return Progress.PARTIAL if path else Progress.DONE
        return Progress.DONE if self.verify(step, copy).ok else Progress.PARTIAL

    def _files(self, step: Step) -> list[Path]:
        """What readers take for data, whatever its name ends in, and hidden files that look like data."""
        folder = local_path(step.parameters["location"])
        endings = _ENDINGS[_format(step)]
        return [
            path
            for path in files_below(folder)
            if not path.name.startswith(_TEMPORARY)
            and (not _hidden(path.relative_to(folder)) or path.name.lower().endswith(endings))
        ]

    def _leftovers(self, step: Step) -> list[Path]:
        folder = local_path(step.parameters["location"])
        return [p for p in files_below(folder) if p.name.startswith(_TEMPORARY)]

    def _drop(self, step: Step, copy: Copy | None, data: bytes, path: Path) -> Kept:
        match = match_of(copy)
        keys, strong = keys_of(self._ctx.keyring, match)
        try:
            return drop_rows(data, _format(step), match, keys, strong)
        except RunError as error:
            raise RunError(error.what, where=_shown(path), todo=error.todo) from None


_TEMPORARY = "_pii_tracer_"


def _format(step: Step) -> Format:
    return Format(step.parameters["format"])


def _hidden(relative: Path) -> bool:
    """Spark passes over names that begin with `_` or `.`, but for partition folders like `_day=1`."""
    return any(part[0] in "_." and "=" not in part for part in relative.parts)


def _shown(path: Path) -> str:
    """A path for journals and messages, without partition values: they can be a person's (hazard F2)."""
    return "/".join(part.partition("=")[0] + "=…" if "=" in part else part for part in path.parts).replace("//", "/")


def _swap(path: Path, data: bytes) -> None:
    """Put new content in place of a file. The temporary name starts with `_`, so that readers pass over it."""
    temporary = path.with_name(_TEMPORARY + path.name)
    with temporary.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    # Hadoop would refuse the new file by the old one's checksum
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


__all__ = ["Any", "FilesExecutor"]
