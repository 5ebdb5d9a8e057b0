"""How many files steps removed and wrote again, whatever their executors call them in the journal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pii_tracer.run.journal import Kind, Record

_ANSWERS = (Kind.STEP_RESULT, Kind.STEP_WAITING, Kind.STEP_FAILED)
_REMOVED = ("files_removed", "files_swept", "versions_deleted")
_REWRITTEN = ("files_rewritten", "rewritten")


class FileCounts:
    """Of a run so far: removed files and versions of objects; files, objects and archives that were written again.

    An answer that names a number tells it of the whole step, with earlier attempts. Lists of what was deleted, and of
    archives that were written again, hold what is new with each answer.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        self._numbers: dict[tuple[str, str], int] = {}
        self._archives: set[tuple[str, str]] = set()
        self._listed: dict[str, int] = defaultdict(int)
        for record in records:
            facts = record.facts.get("facts")
            if record.kind in _ANSWERS and isinstance(facts, dict):
                self._take(str(record.facts["step"]), facts)

    def _take(self, step: str, facts: Mapping[str, Any]) -> None:
        archives = facts.get("rewritten_archives")
        for name in (*_REMOVED, *_REWRITTEN):
            number = facts.get(name)
            if type(number) is int and not (name == "rewritten" and isinstance(archives, list)):
                self._numbers[step, name] = number
        for archive in archives if isinstance(archives, list) else ():
            if archive.get("new_archive") is not None:
                self._archives.add((step, str(archive.get("archive"))))
        deleted = facts.get("deleted")
        if isinstance(deleted, list):
            self._listed[step] += len(deleted)
        elif isinstance(deleted, dict):  # by kind of file
            self._numbers[step, "deleted"] = sum(n for n in deleted.values() if type(n) is int)

    @property
    def removed(self) -> int:
        """Files and versions that are gone."""
        return self._sum(*_REMOVED, "deleted") + sum(self._listed.values())

    @property
    def rewritten(self) -> int:
        """Files, objects and archives that were written again."""
        return self._sum(*_REWRITTEN) + len(self._archives)

    def _sum(self, *names: str) -> int:
        return sum(number for (_, name), number in self._numbers.items() if name in names)
