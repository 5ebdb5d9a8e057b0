"""What a reading finds: kinds, weight, owner, and since when."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from pii_tracer.common.str_enum import StrEnum


class Level(StrEnum):
    """blocking: a plan made now would be incomplete, or late. unknown: only the search of a plan tells whether it would
    be. warning: look into it. note: worth knowing."""

    BLOCKING = "blocking"
    UNKNOWN = "unknown"
    WARNING = "warning"
    NOTE = "note"


class FindingKind(StrEnum):
    """What is wrong, or has changed."""

    GAP = "gap"
    NO_WAY_TO_ROWS = "no_way_to_rows"
    JOB_WITHOUT_LINEAGE = "job_without_lineage"
    LINEAGE_LOST = "lineage_lost"
    NEW_TABLE = "new_table"
    DROPPED_TABLE = "dropped_table"
    NEW_COLUMN = "new_column"
    DROPPED_COLUMN = "dropped_column"
    CHANGED_TYPE = "changed_type"
    NEW_KEY_COLUMN = "new_key_column"
    KEPT_LONGER = "kept_longer"
    KEPT_SHORTER = "kept_shorter"
    CHANGED_SETTING = "changed_setting"
    VERSIONING_ON = "versioning_on"
    TOO_LATE = "too_late"
    CLOCK_SET_BACK = "clock_set_back"
    CANARY_NOT_IN_SOURCE = "canary_not_in_source"
    CANARY_UNKNOWN_COPY = "canary_unknown_copy"
    CANARY_MISSING = "canary_missing"
    CANARY_UNREAD = "canary_unread"


SUMMARIES = {
    FindingKind.GAP: "Something could not be found, read or explained",
    FindingKind.NO_WAY_TO_ROWS: "Persons reach a table, and no column leads to their rows",
    FindingKind.JOB_WITHOUT_LINEAGE: "Something writes a table, and its lineage is not known",
    FindingKind.LINEAGE_LOST: "Lineage into a table is no longer known",
    FindingKind.NEW_TABLE: "A table is new",
    FindingKind.DROPPED_TABLE: "A table is gone",
    FindingKind.NEW_COLUMN: "A column is new",
    FindingKind.DROPPED_COLUMN: "A column is gone",
    FindingKind.CHANGED_TYPE: "A column has another type",
    FindingKind.NEW_KEY_COLUMN: "A column contains values of persons, and did not before",
    FindingKind.KEPT_LONGER: "Old data is kept longer than before",
    FindingKind.KEPT_SHORTER: "Old data is kept for a shorter time than before",
    FindingKind.CHANGED_SETTING: "A setting has changed",
    FindingKind.VERSIONING_ON: "A bucket keeps old versions, and did not before",
    FindingKind.TOO_LATE: "An erasure could not be proved before the deadline",
    FindingKind.CLOCK_SET_BACK: "The clock is behind the previous reading",
    FindingKind.CANARY_NOT_IN_SOURCE: "A canary is not in its source",
    FindingKind.CANARY_UNKNOWN_COPY: "A canary was seen where lineage does not lead",
    FindingKind.CANARY_MISSING: "A canary was not seen where lineage leads",
    FindingKind.CANARY_UNREAD: "A place could not be searched for the canaries",
}
"""What each kind means, for people and for SARIF."""


@dataclass(frozen=True)
class Finding:
    """One thing. where: table or place, by the name people know.

    detail: what distinguishes findings of one kind and place. gap: the kind of gap (docs/gaps.md). since: first reading
    that had it. age_days: whole days since then.
    """

    kind: FindingKind
    level: Level
    where: str
    owner: str
    text: str
    todo: str = ""
    detail: str = ""
    gap: str | None = None
    since: datetime | None = None
    age_days: int = 0

    @property
    def id(self) -> str:
        """The same for the same finding in every reading: 16 hex digits."""
        told = "\0".join((self.kind.value, self.gap or "", self.where, self.detail))
        return hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()[:16]


_ORDER = {level: number for number, level in enumerate(Level)}


def dated(findings: Iterable[Finding], first_seen: Mapping[str, str], now: datetime) -> tuple[Finding, ...]:
    """Findings with their age, the weightiest and oldest first; each once.

    A time that lies after `now` was written under a wrong clock: the age then begins now, and is never negative.
    """
    result: dict[str, Finding] = {}
    for finding in findings:
        seen = first_seen.get(finding.id)
        since = min(datetime.fromisoformat(seen), now) if seen else now
        result.setdefault(finding.id, replace(finding, since=since, age_days=(now - since).days))
    return tuple(sorted(result.values(), key=lambda f: (_ORDER[f.level], -f.age_days, f.kind, f.where, f.detail)))
