"""What changed between two readings: tables, columns, lineage, and settings that keep old bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from pii_tracer.common.plurals import counted
from pii_tracer.readiness.estate_snapshot import (
    FOR_EVER,
    UNKNOWN,
    Coverage,
    EstateState,
    PlaceFacts,
    Setting,
    TableFacts,
)
from pii_tracer.readiness.findings import Finding, FindingKind, Level

_KNOWN = (Coverage.FULL, Coverage.PARTIAL)


def drift(before: EstateState | None, now: EstateState) -> Iterator[Finding]:
    """Every change since the reading before; of a first reading only what needs none."""
    yield from map_jobs(before, now)
    if before is None:
        return
    known, present = before.by_location(), now.by_location()
    for location in sorted(present.keys() - known.keys()):
        table = present[location]
        yield _of(
            table, FindingKind.NEW_TABLE, Level.WARNING, "the table is new", "name its owner, and load its lineage"
        )
        yield from _new_keys(table, ())
    for location in sorted(known.keys() - present.keys()):
        text = "the table is gone; its files, old versions and copies may still exist"
        yield _of(known[location], FindingKind.DROPPED_TABLE, Level.WARNING, text, "look for what is left of it")
    for location in sorted(known.keys() & present.keys()):
        yield from _table(known[location], present[location])
    yield from _places(before.places, now.places)


def map_jobs(before: EstateState | None, now: EstateState) -> Iterator[Finding]:
    """Tables that something writes, and into which no value edge leads."""
    known = before.by_location() if before else {}
    for table in now.tables:
        if table.explained or table.coverage is Coverage.SOURCE:
            continue
        kind, todo = FindingKind.JOB_WITHOUT_LINEAGE, "load the job's column lineage: events, SQL or a query log"
        old = known.get(table.location)
        if table.jobs:
            text = f"{', '.join(table.jobs[:3])} writes the table, and no column lineage is known"
            yield _of(table, kind, Level.WARNING, text, todo)
        elif old is not None and old.written != table.written:
            yield _of(table, kind, Level.WARNING, "the table was written, and no job is known that writes it", todo)


def _table(old: TableFacts, new: TableFacts) -> Iterator[Finding]:
    was, now = dict(old.columns), dict(new.columns)
    dropped = len(was.keys() - now.keys())  # what is gone needs no lineage
    if old.coverage in _KNOWN and old.explained - new.explained > dropped:
        text = (
            f"lineage explained {counted(old.explained, 'column')} at the previous reading, and explains"
            f" {new.explained or 'none'} now"
        )
        yield _of(new, FindingKind.LINEAGE_LOST, Level.WARNING, text, "find out which source of lineage was lost")
    yield from _new_keys(new, old.keys)
    fresh = sorted(now.keys() - was.keys() - (set(new.keys) - set(old.keys)))
    for column in fresh:
        yield _of(new, FindingKind.NEW_COLUMN, Level.NOTE, f"the column {column} is new", detail=column)
    for column in sorted(was.keys() - now.keys()):
        text = f"the column {column} is gone; old versions may still have it"
        yield _of(new, FindingKind.DROPPED_COLUMN, Level.NOTE, text, detail=column)
    for column in sorted(c for c in was.keys() & now.keys() if was[c] != now[c]):
        text = f"the column {column} was {was[column]} and is {now[column]}"
        yield _of(new, FindingKind.CHANGED_TYPE, Level.NOTE, text, detail=column)
    yield from _settings(new.name, new.owner, old.settings, new.settings)


def _new_keys(table: TableFacts, before: tuple[str, ...]) -> Iterator[Finding]:
    for column in sorted(set(table.keys) - set(before)):
        text = f"the column {column} contains values of persons, and did not at the previous reading"
        todo = "declare the column if lineage alone does not show how to find the rows"
        yield _of(table, FindingKind.NEW_KEY_COLUMN, Level.WARNING, text, todo, detail=column)


def _places(before: tuple[PlaceFacts, ...], now: tuple[PlaceFacts, ...]) -> Iterator[Finding]:
    known = {place.name: place for place in before}
    for place in now:
        old = known.get(place.name)
        if old is None:
            continue
        if place.versioned and old.versioned is False:
            text = "versioning was switched on: what is deleted or replaced stays as an old version"
            todo = "let the bucket's lifecycle remove old versions, or switch it off"
            yield Finding(FindingKind.VERSIONING_ON, Level.WARNING, place.name, place.owner, text, todo)
        yield from _settings(place.name, place.owner, old.settings, place.settings)


def last_known(before: EstateState | None, now: EstateState) -> EstateState:
    """The state that the next reading compares with: what could not be asked for now is as it was last known."""
    known = {place.name: place for place in before.places} if before else {}
    return replace(now, places=tuple(_last_known(known.get(place.name, place), place) for place in now.places))


def _last_known(old: PlaceFacts, new: PlaceFacts) -> PlaceFacts:
    settings = {
        name: old.settings.get(name, value) if value == UNKNOWN else value for name, value in new.settings.items()
    }
    versioned = old.versioned if new.versioned is None else new.versioned
    return replace(new, versioned=versioned, settings=settings)


def _settings(where: str, owner: str, old: Mapping[str, Setting], new: Mapping[str, Setting]) -> Iterator[Finding]:
    for name in sorted(old.keys() | new.keys()):
        was, now = old.get(name), new.get(name)
        if was == now:
            continue
        days = (was.days if was else None, now.days if now else None)
        kind, level = FindingKind.CHANGED_SETTING, Level.NOTE
        if UNKNOWN in (was, now):
            pass  # nobody knows whether it changed
        elif now is not None and now.days is not None and (days[0] or 0) < now.days:
            kind, level = FindingKind.KEPT_LONGER, Level.WARNING
        elif was is not None and was.days is not None and days[1] is not None:
            kind = FindingKind.KEPT_SHORTER
        text = f"{name} was {_told(was)} and is {_told(now)}"
        todo = "`pii-tracer retention enforce` sets what the class allows" if level is Level.WARNING else ""
        yield Finding(kind, level, where, owner, text, todo, detail=name)


def _told(setting: Setting | None) -> str:
    if setting is None:
        return "not set"
    if setting.days is None:
        return setting.value
    return f"{setting.value} (for ever)" if setting.days >= FOR_EVER else f"{setting.value} ({setting.days:g} days)"


def _of(table: TableFacts, kind: FindingKind, level: Level, text: str, todo: str = "", *, detail: str = "") -> Finding:
    return Finding(kind, level, table.name, table.owner, text, todo, detail)
