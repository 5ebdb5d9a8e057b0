"""Files that a named person waived, by their bytes: what may stay, and what nobody could read at planning either."""

from __future__ import annotations

from typing import NamedTuple

from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.model.waivers import file_mark


class WaivedFiles(NamedTuple):
    """Marks of files (`pii_tracer.model.waivers.file_mark`). holding: of those that hold the persons and stay as they
    are; unread: of those that could not be read, or only in part.
    """

    holding: frozenset[str] = frozenset()
    unread: frozenset[str] = frozenset()

    def may_hold(self, sha256: str) -> bool:
        """Whether a file with these bytes may hold the persons. Bytes that nobody has read are never waived."""
        return bool(sha256) and file_mark(sha256) in self.holding

    def may_be_unread(self, sha256: str) -> bool:
        """Whether a file with these bytes may be unread."""
        return bool(sha256) and file_mark(sha256) in self.unread


NOTHING_WAIVED = WaivedFiles()


def waived_files(plan: ErasurePlan) -> dict[DatasetId | str, WaivedFiles]:
    """By dataset, or by path as a gap shows it. Where a task of the plan is about a place, nothing of it is waived:
    whether the task was done is looked at."""
    found: dict[DatasetId | str, WaivedFiles] = {}
    for gap in plan.gaps:
        if gap.waiver and not gap.task:
            place = gap.dataset or gap.evidence
            before = found.get(place, NOTHING_WAIVED)
            found[place] = WaivedFiles(before.holding.union(gap.files), before.unread.union(gap.unread))
    return found
