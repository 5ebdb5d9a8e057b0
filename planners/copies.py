"""From lineage, inventory and evidence to copies: what each one is, how it carries the person, what is done with it.

Whatever cannot be proved becomes a gap. A table that was looked at and is no copy is kept, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pii_tracer.config import Subject
from pii_tracer.inventory import TableState
from pii_tracer.lineage.graph import LineageGraph
from pii_tracer.model import (
    Access,
    Carries,
    CopyKind,
    DatasetId,
    FieldAccess,
    Format,
    JsonAccess,
    Match,
    MatchTerm,
    Strategy,
)
from pii_tracer.plan import Copy, Examined, Found, Gap, PlannedColumn
from planners.beyond import archives, with_history
from planners.carriage import Carriage, other_key_columns
from planners.doubts import doubts, inventory_gaps, missing, open_lineage
from planners.drafts import CopyDraft, slug
from planners.evidence import Evidence
from planners.survey import Survey, World, title

_STRATEGY = {
    Carries.KEY: Strategy.DELETE_BY_KEY,
    Carries.COMPUTED_KEY: Strategy.DELETE_BY_COMPUTED_KEY,
    Carries.BRIDGE: Strategy.DELETE_THROUGH_BRIDGE,
    Carries.IDENTIFIERS: Strategy.DELETE_BY_IDENTIFIERS,
}


@dataclass(frozen=True)
class Recognised:
    """Copies with their state, gaps, and datasets that are no copies."""

    items: tuple[CopyDraft, ...]
    gaps: tuple[Gap, ...]
    examined: tuple[Examined, ...]


def recognise(found: Survey, world: World) -> Recognised:
    """Sort every table and archive of the inventory into copies, gaps and examined ones."""
    items: list[CopyDraft] = []
    gaps: list[Gap] = []
    examined: list[Examined] = []
    by_location = {state.location: state for state in world.inventory.tables}
    for state in world.inventory.tables:
        result = _table(found, world, state, by_location)
        for part in result:
            if isinstance(part, CopyDraft):
                items.append(part)
            elif isinstance(part, Gap):
                gaps.append(part)
            else:
                examined.append(part)
    items += archives(world, items)
    gaps += missing(found, world) + open_lineage(world) + inventory_gaps(world)
    order = {dataset: n for n, dataset in enumerate(found.carriages)}
    items.sort(key=lambda i: (_RANK[i.copy.kind], order.get(i.copy.dataset, len(order)), i.copy.id))
    return Recognised(
        with_history(items), tuple(sorted(gaps, key=lambda g: g.id)), tuple(sorted(examined, key=_by_name))
    )


_RANK = {kind: n for n, kind in enumerate(CopyKind)} | {
    CopyKind.SOURCE: 0,
    CopyKind.DERIVED: 1,
    CopyKind.DEV_CLONE: 2,
    CopyKind.ARCHIVE: 3,
}


def _by_name(examined: Examined) -> str:
    return examined.table or examined.dataset.name


def _carriage(found: Survey, state: TableState, by_location: Mapping[str, TableState]) -> tuple[Carriage | None, str]:
    """The carriage of a table: its own, or that of the table whose files it holds."""
    own = found.carriages.get(state.dataset)
    if own is not None:
        return own, ""
    for location, why in ((state.clone_of, "shallow clone of"), (state.same_files_as, "same files as")):
        origin = by_location.get(location or "")
        if origin is not None and origin.dataset in found.carriages:
            return found.carriages[origin.dataset], f"{why} {title(origin)}: "
    return None, ""


def _table(
    found: Survey, world: World, state: TableState, by_location: Mapping[str, TableState]
) -> list[CopyDraft | Gap | Examined]:
    seen = world.evidence.get(state.location)
    carriage, why = _carriage(found, state, by_location)
    if carriage is None or carriage.carries is Carries.NONE:
        return [_stranger(found, world, state, seen, carriage)]
    if carriage.carries in _STRATEGY and seen and not seen.found and not seen.weak and not seen.unread:
        reason = f"{why}{carriage.reason}; every file was decoded and holds nothing of the person"
        return [Examined(dataset=state.dataset, table=state.table, carries=carriage.carries, reason=reason)]
    item = _copy(found, world, state, carriage, why, seen)
    return [item, *doubts(found, state, carriage, item)]


def _stranger(
    found: Survey, world: World, state: TableState, seen: Evidence | None, carriage: Carriage | None
) -> Gap | Examined:
    """A table that lineage does not connect with the person."""
    if seen is None or seen.found or (seen.unread and carriage is None):
        kind = "unexpected_copy" if seen and seen.found else "not_scanned"
        names = ", ".join(sorted(seen.strong)) if seen else ""
        return Gap(
            id=f"gap-{kind}-{slug(title(state))}",
            dataset=state.dataset,
            kind=kind,
            reason="the person's values are in here and no lineage says how they came"
            if names
            else "no lineage leads here and not every file could be decoded",
            evidence=f"found: {names}" if names else "; ".join(seen.unread[:3]) if seen else "not scanned",
        )
    reason = carriage.reason if carriage else "no lineage leads here from the person"
    reason += f"; all {seen.files} files decoded, none of the person's values found"
    if seen.weak:
        reason += f" (the same digits stand in {', '.join(sorted(seen.weak))}, which lineage does not connect)"
    return Examined(dataset=state.dataset, table=state.table, carries=Carries.NONE, reason=reason)


def _executable(fmt: Format, strategy: Strategy) -> bool:
    """Whether an executor can do it: bare folders are rewritten by key, and only these two formats."""
    if fmt in (Format.ICEBERG, Format.DELTA, Format.HUDI):
        return True
    return fmt in (Format.PARQUET, Format.CSV) and strategy is not Strategy.REBUILD


def _copy(
    found: Survey, world: World, state: TableState, carriage: Carriage, why: str, seen: Evidence | None
) -> CopyDraft:
    kind = CopyKind.DERIVED
    if state.dataset == found.source:
        kind = CopyKind.SOURCE
    elif state.clone_of or world.is_dev(state.location):
        kind = CopyKind.DEV_CLONE
    strategy = _STRATEGY.get(carriage.carries, Strategy.REBUILD)
    sql = _rebuild_sql(world.graph, state) if strategy is Strategy.REBUILD else None
    if (strategy is Strategy.REBUILD and sql is None) or not _executable(state.format, strategy):
        strategy = Strategy.BLOCKED
    copy = Copy(
        id="c-" + slug(title(state)),
        kind=kind,
        dataset=state.dataset,
        table=state.table,
        location=state.location,
        format=state.format,
        carries=carriage.carries,
        strategy=strategy,
        columns=_pii_columns(found.subject, carriage),
        lineage=tuple(_hop_name(world, hop) for hop in carriage.hops) + ((title(state),) if why else ()),
        reason=why + carriage.reason,
        match=_match(found, state, carriage) if strategy in _STRATEGY.values() else None,
        other_keys=other_key_columns(carriage, (c.name for c in state.columns)),
        found=_found(seen),
    )
    upstream = carriage.hops[-1] if why else (carriage.hops[-2] if len(carriage.hops) > 1 else None)
    return CopyDraft(
        copy=copy,
        state=state,
        carriage=carriage,
        upstream=str(upstream) if upstream else None,
        rebuild_sql=sql,
    )


def match_of(found: Survey, state: TableState, by_location: Mapping[str, TableState]) -> Match | None:
    """How the persons' rows are found in a table; None where no row can be deleted by a key."""
    carriage, _ = _carriage(found, state, by_location)
    return _match(found, state, carriage) if carriage and carriage.carries in _STRATEGY else None


def _found(seen: Evidence | None) -> Found | None:
    if seen is None:
        return None
    return Found(
        files_scanned=seen.files,
        files_with_person=seen.files_with_person,
        rows=seen.rows,
        bytes=seen.bytes,
        unread=seen.unread,
    )


def _pii_columns(subject: Subject, carriage: Carriage) -> tuple[PlannedColumn, ...]:
    category = {subject.key: subject.key_category} | {i.column: i.category for i in subject.identifiers}
    result = {
        PlannedColumn(name=name, category=category.get(trace.origin, "record_key"))
        for name, column in carriage.columns.items()
        for trace in column.traces
    }
    return tuple(sorted(result, key=lambda c: (c.name, c.category)))


def _match(found: Survey, state: TableState, carriage: Carriage) -> Match:
    types = {c.name.lower(): c.type for c in state.columns}
    terms = {
        MatchTerm(
            column=name,
            access=trace.access,
            key_set=found.derived[trace.origin, trace.expression].keys.name,
            type=leaf_type(types.get(name.lower(), "string"), trace.access),
        )
        for name, trace in carriage.terms
    }
    return Match(terms=tuple(sorted(terms, key=lambda t: (t.label(), t.key_set))))


def leaf_type(column_type: str, access: tuple[Access, ...]) -> str:
    """Type of the leaf that an access leads to; JSON members are strings."""
    for step in access:
        if isinstance(step, JsonAccess):
            return "string"
        column_type = _field_type(column_type, step)
    return column_type


def _field_type(struct: str, step: FieldAccess) -> str:
    match = re.search(rf"[<,]\s*`?{re.escape(step.name)}`?\s*:\s*([a-z]+(?:\([\d,\s]+\))?)", struct, re.IGNORECASE)
    return match.group(1) if match else "string"


_OVERWRITES = re.compile(r"\b(create\s+(or\s+replace\s+)?table|replace\s+table|insert\s+overwrite)\b", re.IGNORECASE)


def _rebuild_sql(graph: LineageGraph, state: TableState) -> str | None:
    """The newest recorded statement that writes the whole table, if there is one."""
    for job in reversed(graph.jobs_into(state.dataset)):
        if job.sql and _OVERWRITES.search(job.sql):
            return job.sql
    return None


def _hop_name(world: World, dataset: DatasetId) -> str:
    for state in world.inventory.tables:
        if state.dataset == dataset:
            return title(state)
    return dataset.name
