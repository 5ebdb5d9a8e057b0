"""Files that a named person waived, by their bytes: what may stay, and what nobody could read at planning either."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.model.waivers import MarkKey


@dataclass(frozen=True)
class WaivedFiles:
    """Marks of files in one place. holding: of those that hold the persons and stay as they are; unread: of those that
    could not be read, or only in part. keyed: makes such marks; without one, nothing is waived.
    """

    place: DatasetId | str
    keyed: MarkKey | None = None
    holding: frozenset[str] = frozenset()
    unread: frozenset[str] = frozenset()

    def may_hold(self, sha256: str) -> bool:
        """Whether a file with these bytes may hold the persons. Bytes that nobody has read are never waived."""
        return self._mark(sha256) in self.holding

    def unread_mark(self, sha256: str) -> str | None:
        """The mark of a file with these bytes, where it may be unread."""
        mark = self._mark(sha256)
        return mark if mark in self.unread else None

    def _mark(self, sha256: str) -> str | None:
        return self.keyed.of_file(self.place, sha256) if self.keyed and sha256 else None


NOTHING_WAIVED = WaivedFiles("")


def waived_files(plan: ErasurePlan, keyed: MarkKey) -> dict[DatasetId | str, WaivedFiles]:
    """By dataset, or by path as a gap shows it. Where a task of the plan is about a place, nothing of it is waived:
    whether the task was done is looked at. keyed: of the estate, as the plan was made with."""
    found: dict[DatasetId | str, WaivedFiles] = {}
    for gap in plan.gaps:
        if gap.waiver and not gap.task:
            place = gap.dataset or gap.evidence
            before = found.get(place, WaivedFiles(place, keyed))
            found[place] = replace(
                before, holding=before.holding.union(gap.files), unread=before.unread.union(gap.unread)
            )
    return found
