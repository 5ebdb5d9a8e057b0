"""What holds were found to keep, wholly or in part, while a plan is made; and how a hold is cited."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timezone

from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.legal_holds import Hold
from pii_tracer.model.plan import Gap, Mask
from planners.gaps.copy_gap import gap_of
from planners.holds.column_holds import Part, last_end
from planners.step_drafts import CopyDraft


@dataclass
class Held:
    """What the rules find: copies to exempt (id -> holds), copies to block (id -> why), and gaps.

    parts: copies of which only columns are held (id -> holds with these columns). masked: those where the rest can be
    erased by itself. until: of exempt copies, when less is kept, where that is not the end of all their holds.
    empty: ids of held tables that hold nothing of the persons today, which backups of them may. own: holds of what the
    persons asked to keep, also where they keep nothing.
    """

    exempt: dict[str, list[Hold]] = field(default_factory=dict)
    parts: dict[str, list[Part]] = field(default_factory=dict)
    masked: dict[str, Mask] = field(default_factory=dict)
    until: dict[str, datetime | None] = field(default_factory=dict)
    blocked: dict[str, str] = field(default_factory=dict)
    gaps: list[Gap] = field(default_factory=list)
    empty: set[str] = field(default_factory=set)
    own: list[Hold] = field(default_factory=list)

    @property
    def stays(self) -> set[str]:
        """Ids of copies that something of the person stays in."""
        return self.exempt.keys() | self.masked.keys()

    def holds_of(self, copy_id: str) -> list[Hold]:
        """The holds that keep a copy, wholly or in part."""
        return self.exempt.get(copy_id) or list({h.id: h for h, _ in self.parts[copy_id]}.values())

    def until_of(self, copy_id: str) -> datetime | None:
        """When less is kept of an exempt copy than now; None where nobody knows yet."""
        return self.until[copy_id] if copy_id in self.until else last_end(self.exempt[copy_id])

    def keep_whole(self, item: CopyDraft, why: str) -> None:
        """Fail closed: what cannot be erased by itself is kept with what is held, and said."""
        copy_id = item.copy.id
        columns = list(dict.fromkeys(name for _, names in self.parts[copy_id] for name in names))
        self.masked.pop(copy_id, None)
        self.exempt.setdefault(copy_id, []).extend({h.id: h for h, _ in self.parts[copy_id]}.values())
        reason = f"only {', '.join(columns) or 'some columns'} are held, but the whole rows are kept: {why}"
        self.gaps.append(gap_of(item, GapKind.HOLD_KEEPS_REST, reason, "the estate file, `holds`"))


def cited(hold: Hold) -> str:
    """`PMLA 2002, s. 12, until 2031-03-30`."""
    until = "without an end date" if hold.ends is None else f"until {utc(hold.ends):%Y-%m-%d}"
    return f"{hold.basis}, {hold.citation}, {until}"


def utc(moment: datetime) -> datetime:
    """The same moment in UTC, as plans are written."""
    return moment.astimezone(timezone.utc)
