"""Which settings have to change for the tables to follow their classes, old value and new. Nothing is changed here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from pii_tracer.config.estate_file import RetentionClasses
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.formats.retention_terms import MAIN
from pii_tracer.lake.inventory import RefKind
from pii_tracer.model.datasets import Format, Frozen
from pii_tracer.model.legal_holds import Hold
from pii_tracer.retention.retention_classes import class_of, hold_on
from pii_tracer.retention.settings_check import (
    Finding,
    FindingKind,
    Table,
    check_table,
)


class RefField(Frozen):
    """One retention field of a branch or tag: `max_ref_age_ms`, `max_snapshot_age_ms`, `min_snapshots_to_keep`."""

    name: str
    kind: RefKind
    field: str


class Change(Frozen):
    """One setting of one table: what it is and what it will be. old is None where the engine's default counts."""

    table: str
    location: str
    format: Format
    setting: str
    old: str | None
    new: str
    ref: RefField | None = None


class Kept(Frozen):
    """Something that stays as it is although it violates the policy, and why."""

    table: str
    setting: str | None
    reason: str


@dataclass(frozen=True)
class Enforcement:
    """What will be changed, and what will not."""

    changes: tuple[Change, ...]
    kept: tuple[Kept, ...]


def enforcement(
    rules: RetentionClasses,
    holds: Sequence[Hold],
    tables: Sequence[Table],
    now: datetime,
    *,
    with_refs: bool = False,
) -> Enforcement:
    """The changes that make the tables follow their classes.

    Only tables whose class is named are touched; none under a legal hold; no setting goes below a floor. with_refs:
    also limit the age of branches and tags, which lets the next expiry drop those that are older.
    """
    changes: list[Change] = []
    kept: list[Kept] = []
    for table in tables:
        for item in _of_table(rules, holds, table, now, with_refs):
            if isinstance(item, Change):
                changes.append(item)
            else:
                kept.append(item)
    return Enforcement(tuple(changes), tuple(kept))


def _of_table(
    rules: RetentionClasses, holds: Sequence[Hold], table: Table, now: datetime, with_refs: bool
) -> Iterator[Change | Kept]:
    findings = [f for f in check_table(rules, table) if f.setting]
    if not findings:
        return
    wanted = class_of(rules, table.names, table.properties, table.pii)
    why = hold_on(holds, table.names, now)
    if why is None and (wanted.wrong or not wanted.explicit):
        why = wanted.wrong or "the table has no retention class: name one in the estate file"
    for finding in findings:
        new = _new(table, finding, wanted.days)
        if why or new is None or (finding.ref not in (None, MAIN) and not with_refs):
            yield Kept(table=table.name, setting=finding.setting, reason=why or _why_not(table, finding, new))
        else:
            yield Change(
                table=table.name,
                location=table.location,
                format=table.format,
                setting=str(finding.setting),
                old=finding.value,
                new=new,
                ref=_ref(table, finding) if finding.ref else None,
            )


def _new(table: Table, finding: Finding, days: int) -> str | None:
    """The value that follows the class; None for settings that are somebody's decision or are not the table's own."""
    if finding.kind is FindingKind.NOT_STORED:
        return None
    return format_of(table.format).setting_for(str(finding.setting), days)


def _why_not(table: Table, finding: Finding, new: str | None) -> str:
    if new is not None:
        return f"a limit on {finding.ref} would let the next expiry drop it: add --refs to set the limit"
    if finding.kind is FindingKind.NOT_STORED:
        return format_of(table.format).where_not_stored
    return "left to the table's owner"


def _ref(table: Table, finding: Finding) -> RefField:
    ref = next(r for r in table.refs if r.name == finding.ref)
    field = str(finding.setting).rsplit(": ", 1)[-1].replace("-", "_")
    return RefField(name=ref.name, kind=ref.kind, field=field)
