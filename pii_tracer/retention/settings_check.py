"""The tables' own settings against the classes they belong to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pii_tracer.common.plurals import counted
from pii_tracer.common.str_enum import StrEnum
from pii_tracer.config.estate_file import RetentionClasses
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.formats.retention_terms import RefRetention
from pii_tracer.model.datasets import Format, Frozen
from pii_tracer.retention.retention_classes import TableClass, class_of, unknown_names


class FindingKind(StrEnum):
    """What is wrong."""

    UNCLASSIFIED = "unclassified"
    WRONG_CLASS = "wrong_class"
    TOO_LONG = "too_long"
    TOO_SHORT = "too_short"
    NOT_STORED = "not_stored"
    UNKNOWN_TABLE = "unknown_table"
    UNREAD = "unread"


class Finding(Frozen):
    """One thing that is wrong, or (`violation` false) worth knowing.

    keeps: days, None for ever or where it does not apply. allowed: days of the class. where: file and line for DDL.
    """

    table: str
    kind: FindingKind
    reason: str
    setting: str | None = None
    value: str | None = None
    keeps: float | None = None
    allowed: int | None = None
    class_name: str | None = None
    ref: str | None = None
    where: str | None = None
    violation: bool = True


@dataclass(frozen=True)
class Table:
    """A table as the rules see it: names it goes by, native settings, columns that lineage knows to be PII."""

    names: tuple[str, ...]
    format: Format
    properties: Mapping[str, str]
    refs: tuple[RefRetention, ...] = ()
    pii: tuple[str, ...] = ()
    where: str | None = None
    location: str = ""
    unread: str | None = None

    @property
    def name(self) -> str:
        """The name people know it by."""
        return self.names[0]


def check_tables(rules: RetentionClasses, tables: Sequence[Table]) -> tuple[Finding, ...]:
    """Everything that is wrong with some tables, sorted by table."""
    # a table that is about to be created needs its class whatever its format
    held = [table for table in tables if table.where or format_of(table.format).keeps_history]
    found = [finding for table in held for finding in check_table(rules, table)]
    found += [
        Finding(
            table=name,
            kind=FindingKind.UNKNOWN_TABLE,
            reason="the retention rules name this table, but no "
            "table has this name: correct the name in the estate file",
        )
        for name in unknown_names(rules, [t.names for t in tables])
    ]
    return tuple(sorted(found, key=lambda f: (f.table, f.kind, f.setting or "")))


def check_table(rules: RetentionClasses, table: Table) -> Iterator[Finding]:
    """What is wrong with one table."""
    wanted = class_of(rules, table.names, table.properties, table.pii)
    if table.unread:
        yield _finding(table, wanted, FindingKind.UNREAD, table.unread)
    if wanted.wrong:
        yield _finding(table, wanted, FindingKind.WRONG_CLASS, wanted.wrong)
    elif table.pii and not wanted.explicit:
        reason = f"contains personal data ({', '.join(table.pii[:5])}), but has no retention class"
        yield _finding(table, wanted, FindingKind.UNCLASSIFIED, reason)
    for kept in format_of(table.format).kept_by(table.properties, table.refs):
        short = kept.history and kept.days is not None and kept.days < wanted.floor
        if kept.stored and not short and kept.days is not None and kept.days <= wanted.days:
            continue
        kind = FindingKind.TOO_SHORT if short else FindingKind.TOO_LONG if kept.stored else FindingKind.NOT_STORED
        reason = kept.note if not kept.stored else _keeps(kept.days, kept.note, wanted.days)
        if short:
            reason = f"keeps old data for {kept.days:g} days, but `floors` requires at least {wanted.floor}"
        yield _finding(table, wanted, kind, reason).model_copy(
            update={
                "setting": kept.setting,
                "value": kept.value,
                "keeps": kept.days,
                "allowed": wanted.days,
                "ref": kept.ref,
                # without personal data a setting that cannot be seen is told, not held against the table
                "violation": kept.stored or bool(table.pii),
            }
        )


def _keeps(days: float | None, note: str, allowed: int) -> str:
    keeps = "forever" if days is None else f"for {days:g} days"
    return f"keeps old data {keeps}, but its class allows at most {counted(allowed, 'day')}" + (
        f" ({note})" if note else ""
    )


def _finding(table: Table, wanted: TableClass, kind: FindingKind, reason: str) -> Finding:
    return Finding(table=table.name, kind=kind, reason=reason, class_name=wanted.name, where=table.where)
