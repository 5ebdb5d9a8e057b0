"""From lineage, inventory and evidence to copies: what each one is, how it carries the person, what is done with it.

Whatever cannot be proved becomes a gap. A table that was looked at and is no copy is kept, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pii_tracer.common.plurals import counted
from pii_tracer.lake.inventory import ENCODING, TableState
from pii_tracer.model.datasets import (
    BY_ROWS,
    Carries,
    CopyKind,
    DatasetId,
    Format,
    Match,
    Strategy,
)
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.hive_text.layout import TEXT_AROUND, TEXT_TABLE
from pii_tracer.model.plan import (
    KEEPS_HISTORY,
    NUMBERED,
    TEXTS,
    Copy,
    Examined,
    Found,
    Gap,
    Mention,
)
from planners.copies.archives_and_branches import (
    archives,
    is_in_objects,
    telling_names,
    with_history,
)
from planners.copies.declared_origins import given_away, is_stored, unconnected
from planners.copies.executor_support import astray, no_rebuild, unsupported
from planners.copies.partition_values import files_of_others, values_in_catalog
from planners.copies.row_number_columns import numbered_columns
from planners.copies.scan_evidence import Evidence
from planners.copies.shallow_clones import clones_taken_along
from planners.copies.table_match import carriage_of, match_by, pii_columns
from planners.formats.registry import planner_of
from planners.gaps.copy_gaps import (
    doubts,
    former_unread,
    former_values,
    inventory_gaps,
    missing,
    open_lineage,
    shared_in,
    shared_values,
)
from planners.gaps.keys_of_several_columns import unexplained_key
from planners.gaps.recomputed_copies import with_offer
from planners.gaps.tenant_keys import keys_of_several
from planners.gaps.unexplained_rows import made_of_unseen, said, unseen
from planners.gaps.unexplained_short_numbers import (
    called_by_values,
    doubted,
    same_digits,
    telling_columns,
)
from planners.locate.columns_without_identifiers import other_key_columns
from planners.locate.composite_key_lineage import is_several
from planners.locate.foreign.mixed_origin_columns import foreign_keys
from planners.locate.identifier_traces import Trace
from planners.locate.key_location import Carriage
from planners.locate.lossy_key_types import blanks, misfits, with_blanks
from planners.locate.sql.rebuild_statement import Recorded, recorded
from planners.locate.sql.shared_rows import mentions_of, refused
from planners.locate.subject_survey import Survey, World, title
from planners.step_drafts import NO_ROWS, CopyDraft, slug, whole_list
from planners.stores.glacier.vaults import vaults
from planners.stores.hdfs.copies import copy_there, kept_copies
from planners.stores.hdfs.places import folder_states
from planners.stores.object_places import places as object_places
from planners.stores.object_places.copies import kept_versions, stored_copy
from planners.stores.s3.archive_gaps import taken_along
from planners.streams.streaming_checkpoints import streaming_state
from planners.unique_ids import distinct_items

_STRATEGY = {
    Carries.KEY: Strategy.DELETE_BY_KEY,
    Carries.COMPUTED_KEY: Strategy.DELETE_BY_COMPUTED_KEY,
    Carries.BRIDGE: Strategy.DELETE_THROUGH_BRIDGE,
    Carries.IDENTIFIERS: Strategy.DELETE_BY_IDENTIFIERS,
}


@dataclass(frozen=True)
class Recognised:
    """Copies with their state, gaps, and datasets that are no copies.

    origins: tables that lineage connects with the persons and that hold nothing of them today, as they would be
    treated. No copies: only what was stored of them before is.
    """

    items: tuple[CopyDraft, ...]
    gaps: tuple[Gap, ...]
    examined: tuple[Examined, ...]
    origins: tuple[CopyDraft, ...] = ()


@dataclass(frozen=True)
class _Clean:
    """A table that lineage connects with the persons, and that holds nothing of them today. stored: gaps of what was
    stored of it before."""

    told: Examined
    origin: CopyDraft
    stored: tuple[Gap, ...]


def recognise(found: Survey, world: World) -> Recognised:
    """Sort every table and archive of the inventory into copies, gaps and examined ones."""
    items: list[CopyDraft] = []
    gaps: list[Gap] = []
    examined: list[Examined] = []
    origins: list[CopyDraft] = []
    in_objects: list[CopyDraft] = []
    by_location = world.states
    dark = unseen(found, world.graph)
    found = said(found, dark)
    stored = (*folder_states(world.inventory, world.hdfs), *object_places.folder_states(world.inventory, world.stored))
    for state in (*world.inventory.tables, *stored):
        result = _table(found, world, state, by_location)
        for part in result:
            if isinstance(part, CopyDraft) and state.in_hdfs:
                items.append(copy_there(part, world))
            elif isinstance(part, CopyDraft) and object_places.in_object_place(state):
                items.append(stored_copy(part, world))
            elif isinstance(part, CopyDraft):
                (in_objects if is_in_objects(part) else items).append(part)
            elif isinstance(part, Gap):
                gaps.append(part)
            elif isinstance(part, _Clean):
                examined.append(part.told.model_copy(update={"other_keys": part.origin.copy.other_keys}))
                origins.append(part.origin)
                gaps += part.stored
            else:
                examined.append(part)
    known = [*items, *origins, *in_objects]
    for told in unconnected(world, known, examined):
        if isinstance(told, Gap):
            gaps.append(told)
        else:
            examined.append(told)
    kept, old = kept_copies(found, world), kept_versions(found, world)
    items += kept.items + old.items
    gaps += kept.gaps + old.gaps
    examined += kept.examined + old.examined
    items += archives(world, [*items, *origins], in_objects) + vaults(world, known)
    taken, broken = clones_taken_along(items, origins, world)
    items, origins = items + taken, [o for o in origins if o.copy.location not in {t.copy.location for t in taken}]
    gaps += (
        broken
        + former_values(found)
        + former_unread(found)
        + shared_values(found)
        + keys_of_several(found, world)
        + missing(found, world)
        + open_lineage(found, world, dark)
        + made_of_unseen(found, world, dark)
        + inventory_gaps(world, {item.copy.dataset for item in items})
        + telling_names(world, items)
        + called_by_values(found, world)
        + taken_along(items)
        + given_away(world, known)
    )
    order = {dataset: n for n, dataset in enumerate(found.carriages)}
    items.sort(key=lambda i: (_RANK[i.copy.kind], order.get(i.copy.dataset, len(order)), i.copy.id))
    return Recognised(
        with_history(distinct_items(items)),
        tuple(sorted(gaps, key=lambda g: g.id)),
        tuple(sorted(examined, key=_by_name)),
        tuple(origins),
    )


_RANK = {kind: n for n, kind in enumerate(CopyKind)} | {
    CopyKind.SOURCE: 0,
    CopyKind.DERIVED: 1,
    CopyKind.DEV_CLONE: 2,
    CopyKind.ARCHIVE: 3,
}


def _by_name(examined: Examined) -> str:
    return examined.table or examined.dataset.name


def _table(
    found: Survey, world: World, state: TableState, by_location: Mapping[str, TableState]
) -> list[CopyDraft | Gap | Examined | _Clean]:
    seen = _of_kind(found, world.evidence.get(state.location))
    carriage, why = carriage_of(found, state, by_location)
    origins = (state.clone_of, state.same_files_as)
    if unprovable := values_in_catalog(found, world, state.location, state.dataset, *origins):
        return [*unprovable, *_untouched(found, world, state, carriage, why, seen)]
    if carriage is None or carriage.carries is Carries.NONE:
        return [*_stranger(found, world, state, seen, carriage)]
    if carriage.terms and not (seen and seen.found) and all(_shared(found, trace) for _, trace in carriage.terms):
        reason = f"{why}{carriage.reason}; its values of the person also belong to other people"
        known = Examined(dataset=state.dataset, table=state.table, carries=carriage.carries, reason=reason)
        return [known, *shared_in(found, state, carriage)]
    state = with_blanks(found, state, seen)
    wrong = misfits(found, state, carriage)
    # nobody could look for them, or in the wrong column
    unsure = bool(wrong or (seen and seen.keyless)) or any(
        (t.beside and not (seen and seen.compared)) or found.derived[t.origin, t.expression].unsure
        for _, t in carriage.found_in
    )
    if carriage.carries in _STRATEGY and seen and not (seen.found or seen.weak or seen.unread or unsure):
        reason = f"{why}{carriage.reason}; every file was decoded, and no file contains data of the person"
        told = Examined(dataset=state.dataset, table=state.table, carries=carriage.carries, reason=reason)
        if any(found.derived[t.origin, t.expression].keys.values for _, t in carriage.found_in):
            stored = foreign_keys(found, world, state, carriage) if is_stored(state, world) else []
            return [_Clean(told, _origin(found, world, state, carriage, why, seen), tuple(stored))]
        return [told.model_copy(update={"reason": f"{why}{carriage.reason}; the person has no value to search for"})]
    item = with_offer(_copy(found, world, state, carriage, why, seen), seen)
    if shared := files_of_others(world, state):
        return [_blocked(item), *shared]
    wrong += blanks(found, state, item, seen)
    return [item, *doubts(found, state, carriage, item, seen), *wrong, *foreign_keys(found, world, state, carriage)]


def _untouched(
    found: Survey, world: World, state: TableState, carriage: Carriage | None, why: str, seen: Evidence | None
) -> list[CopyDraft | Gap | Examined | _Clean]:
    """A table in which no step touches a row, and of which nobody says that it is clean."""
    if carriage is None or carriage.carries is Carries.NONE:
        return [one for one in _stranger(found, world, state, seen, carriage) if not isinstance(one, Examined)]
    return [_blocked(_copy(found, world, state, carriage, why, seen))]


def _blocked(item: CopyDraft) -> CopyDraft:
    blocked = {"strategy": Strategy.BLOCKED, **NO_ROWS}
    return replace(item, copy=item.copy.model_copy(update=blocked), rebuild_sql=None, recomputable=False)


def _shared(found: Survey, trace: Trace) -> bool:
    """Whether all that could find the persons is other people's, too."""
    derived = found.derived[trace.origin, trace.expression]
    return derived.blind and not derived.unsure


def _of_kind(found: Survey, seen: Evidence | None) -> Evidence | None:
    """What was seen of this kind of person: a plan for several kinds looks for all of them at once."""
    if seen is None or seen.strong <= found.key_sets.keys():
        return seen
    return replace(seen, strong=seen.strong & found.key_sets.keys())


def _stranger(
    found: Survey, world: World, state: TableState, seen: Evidence | None, carriage: Carriage | None
) -> list[CopyDraft | Gap | Examined]:
    """A table that lineage does not connect with the person."""
    if state.format is Format.STREAM_CHECKPOINT:
        return [streaming_state(state, seen)]
    digits: list[CopyDraft | Gap | Examined] = [*same_digits(found, world, state), *unexplained_key(found, state)]
    if seen is None or seen.found or seen.unread:
        kind = GapKind.UNEXPECTED_COPY if seen and seen.found else GapKind.NOT_SCANNED
        names = ", ".join(sorted(seen.strong)) if seen else ""
        gap = Gap(
            id=f"gap-{kind}-{slug(title(state))}",
            dataset=state.dataset,
            kind=kind,
            seen="" if names or not seen else whole_list(kind, seen.unread),
            reason="the dataset contains the person's values, and no lineage shows where they came from"
            if names
            else f"{carriage.reason if carriage else 'no lineage leads here'}, but not every file could be decoded",
            evidence=f"found: {names}" if names else "; ".join(seen.unread[:3]) if seen else "not scanned",
        )
        return [gap, *(digits if not names else ())]
    reason = carriage.reason if carriage else "no lineage leads here from the person"
    reason += f"; all its files were decoded and contain none of the person's values ({counted(seen.files, 'file')})"
    if seen.weak:
        reason += f" (digits of a short key are in {', '.join(sorted(seen.weak))}, which lineage does not explain)"
    return [Examined(dataset=state.dataset, table=state.table, carries=Carries.NONE, reason=reason), *digits]


def _executable(state: TableState, carriage: Carriage, strategy: Strategy) -> bool:
    """Whether an executor can do it."""
    planner = planner_of(state.format)
    if planner.without_name(state) is not None or unsupported(state, carriage.key_names) is not None:
        return False
    if strategy in BY_ROWS and astray(state, carriage.ways, several=is_several(carriage.found_in)) is not None:
        return False
    return strategy is not Strategy.REBUILD or no_rebuild(state) is None


def _copy(
    found: Survey, world: World, state: TableState, carriage: Carriage, why: str, seen: Evidence | None
) -> CopyDraft:
    kind = CopyKind.DERIVED
    if state.dataset == found.source:
        kind = CopyKind.SOURCE
    elif state.clone_of or world.is_dev(state.location):
        kind = CopyKind.DEV_CLONE
    # a row that can name several people is nobody's alone: deleting it would lose the others'
    blind = all(found.derived[t.origin, t.expression].blind for _, t in carriage.terms)
    strategy = Strategy.REBUILD if carriage.mixed or blind else _STRATEGY.get(carriage.carries, Strategy.REBUILD)
    if carriage.mentions:
        strategy = _of_several(found, state, carriage, strategy)
    rebuild = Recorded()
    if strategy is Strategy.REBUILD:
        jobs = world.graph.jobs_into(state.dataset)
        rebuild = recorded(jobs, state, dynamic=world.splits_partitions, passing=world.is_part)
    if (strategy is Strategy.REBUILD and rebuild.sql is None) or not _executable(state, carriage, strategy):
        strategy = Strategy.BLOCKED
    place = world.place_of(state)
    doubtful = doubted(found, world, state.location)
    left = {c.name for c in telling_columns(found, state.columns)}
    explained = [c for c in state.columns if c.name not in left and c.name.lower() not in doubtful]
    copy = Copy(
        id="c-" + slug(title(state)),
        kind=kind,
        dataset=state.dataset,
        table=state.table,
        location=state.location,
        format=state.format,
        carries=carriage.carries,
        strategy=strategy,
        columns=pii_columns(carriage),
        lineage=tuple(world.title_of(hop) for hop in carriage.hops) + ((title(state),) if why else ()),
        reason=why + carriage.reason,
        match=match_by(found, state, carriage) if strategy in _STRATEGY.values() else None,
        mentions=mentions_of(found, state, carriage) if strategy in BY_ROWS else (),
        other_keys=other_key_columns(carriage, explained),
        found=_found(seen),
        facts=({"nessie": state.nessie.catalog} if state.nessie else {})
        | ({"region": place.region} if place else {})
        | ({TEXTS: list(state.mixed)} if state.mixed else {})
        | ({KEEPS_HISTORY: True} if state.kept_history else {})
        | ({"encoding": state.properties[ENCODING]} if ENCODING in state.properties else {})
        | {told: state.properties[told] for told in (TEXT_TABLE, TEXT_AROUND) if told in state.properties}
        | ({NUMBERED: numbered} if (numbered := numbered_columns(found, carriage)) else {}),
    )
    upstream = carriage.hops[-1] if why else (carriage.hops[-2] if len(carriage.hops) > 1 else None)
    return CopyDraft(
        copy=copy,
        state=state,
        place=place,
        carriage=carriage,
        upstream=str(upstream) if upstream else None,
        rebuild_sql=rebuild.sql,
        no_rebuild=rebuild.why,
    )


def _of_several(found: Survey, state: TableState, carriage: Carriage, strategy: Strategy) -> Strategy:
    """Where a row can name several persons: with a way for each column, or none."""
    if not carriage.terms:
        strategy = Strategy.CLEAR_MENTIONS
    return Strategy.BLOCKED if strategy not in BY_ROWS or refused(found, state, carriage) else strategy


def _origin(
    found: Survey, world: World, state: TableState, carriage: Carriage, why: str, seen: Evidence | None
) -> CopyDraft:
    """A table without the persons, for what was stored of it: that nobody can write the table says nothing of that."""
    item = _copy(found, world, state, carriage, why, seen)
    match = None if carriage.mixed or not carriage.terms else match_by(found, state, carriage)
    return replace(item, copy=item.copy.model_copy(update={"match": match}))


def match_of(found: Survey, state: TableState, by_location: Mapping[str, TableState]) -> Match | None:
    """How the persons' rows are found in a table; None where no row can be deleted by a key."""
    carriage, _ = carriage_of(found, state, by_location)
    match = match_by(found, state, carriage) if carriage and carriage.carries in _STRATEGY else None
    return match if match and match.terms else None


def mentions_in(found: Survey, state: TableState, by_location: Mapping[str, TableState]) -> tuple[Mention, ...]:
    """The columns of a table that name the persons in rows of others."""
    carriage, _ = carriage_of(found, state, by_location)
    return mentions_of(found, state, carriage) if carriage and refused(found, state, carriage) is None else ()


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


def inputs_of(item: CopyDraft, world: World) -> frozenset[DatasetId]:
    """What a copy is written from: the inputs of its jobs; where none is recorded, all on the way to it."""
    jobs = world.graph.jobs_into(item.copy.dataset)
    return frozenset({d for job in jobs for d in job.inputs} or (item.carriage.hops[:-1] if item.carriage else ()))
