"""Gaps: what stands against treating the copies as planned. Each blocks until a named person waives it."""

from __future__ import annotations

from collections.abc import Collection, Container

from pii_tracer.common.plurals import counted
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.stores.hdfs.places import HdfsPlace
from pii_tracer.lake.stores.object_places.places import ObjectPlace
from pii_tracer.lineage.dataset_names import VIEW
from pii_tracer.lineage.graph.edges import RENAME, LineageGap
from pii_tracer.model.datasets import Carries, DatasetId, Strategy
from pii_tracer.model.gap_kinds import HDFS_PLACES, GapKind
from pii_tracer.model.locations import is_s3
from pii_tracer.model.plan import Gap
from planners.copies.derived_keys import Derived
from planners.copies.executor_support import astray, no_rebuild, unsupported
from planners.copies.scan_evidence import Evidence
from planners.formats.registry import planner_of
from planners.gaps.declared_keys import rows_of_others, silent_key
from planners.gaps.unerasable_s3_tables import has_no_bytes, remote_gap
from planners.locate.composite_key_lineage import is_several
from planners.locate.identifier_traces import Trace
from planners.locate.key_location import Carriage
from planners.locate.sql.column_expressions import shown
from planners.locate.sql.shared_rows import refused, several_persons
from planners.locate.subject_survey import Survey, World, title
from planners.step_drafts import CopyDraft, slug, whole_list
from planners.stores.hdfs.places import hdfs_gaps
from planners.stores.object_places.places import object_place_gaps


def _no_way(state: TableState, item: CopyDraft) -> str:
    planner = planner_of(state.format)
    if nameless := planner.without_name(state):
        return nameless
    why = unsupported(state, item.carriage.key_names if item.carriage else ())
    if why is None and item.carriage and not item.rebuild_sql:
        why = astray(state, item.carriage.ways, several=is_several(item.carriage.found_in))
    if why is not None:
        return why
    if item.rebuild_sql and (why := no_rebuild(state)):
        return why
    if item.carriage and item.carriage.mixed and not item.rebuild_sql:
        return (
            f"a row can name several people, so the plan deletes no row: {item.no_rebuild}; or add the table under "
            "the subject's `tables`, with each column that has the key"
        )
    return f"no key to delete by: {item.no_rebuild}"


def doubts(found: Survey, state: TableState, carriage: Carriage, item: CopyDraft, seen: Evidence | None) -> list[Gap]:
    """What stands against treating the copy as planned."""
    name = slug(title(state))
    gaps = [*rows_of_others(state, item, seen), *(silent_key(state, item, seen) if carriage.declared else [])]
    if item.copy.strategy is Strategy.BLOCKED and (several := refused(found, state, carriage)):
        gaps.append(several_persons(item, several))
    elif item.copy.strategy is Strategy.BLOCKED:
        gaps.append(
            Gap(
                id=f"gap-no_way-{name}",
                dataset=state.dataset,
                kind=GapKind.CANNOT_BE_PROVED,
                reason=_no_way(state, item) + planner_of(state.format).second_reader(state, seen.seen if seen else ()),
                evidence=carriage.reason,
            )
        )
    for column, trace in carriage.terms:
        derived = found.derived[trace.origin, trace.expression]
        if derived.unsure:
            gaps.append(not_certain(state.dataset, name, column, trace, derived))
    return gaps + shared_in(found, state, carriage)


def shared_in(found: Survey, state: TableState, carriage: Carriage) -> list[Gap]:
    """A copy's columns with values of the persons that others have, too."""
    name = slug(title(state))
    gaps = []
    for column, trace in carriage.found_in:
        shared = found.derived[trace.origin, trace.expression].shared
        if shared:
            gaps.append(
                Gap(
                    id=f"gap-shared-{name}-{slug(column)}",
                    dataset=state.dataset,
                    kind=GapKind.SHARED_IDENTIFIER,
                    reason=(
                        f"{counted(shared, 'value')} of {trace.origin} cannot identify the person: other people have "
                        "the same value, or the value names nobody (`unknown`). The plan deletes no rows by these "
                        f"values. The person's rows that have only the key {column} would remain"
                    ),
                    evidence=f"column {column}, from {trace.origin}",
                )
            )
    return gaps


def not_certain(dataset: DatasetId, name: str, column: str, trace: Trace, derived: Derived) -> Gap:
    """What an expression gives for some of the persons is not known for certain: by it they may not be found."""
    return Gap(
        id=f"gap-not_certain-{name}-{slug(column)}-{trace.origin}",
        dataset=dataset,
        kind=GapKind.VALUE_NOT_CERTAIN,
        reason=(
            f"the value of {shown(trace.expression, trace.origin)} is not certain for {derived.unsure} of the persons "
            f"({derived.why}): their rows that have only the key {column} would remain"
        ),
        evidence="let the job write the key in an additional column, or rebuild the dataset from its erased source",
    )


def former_values(found: Survey) -> list[Gap]:
    """Values that the persons had formerly and others have or had: no match has them, and so nobody looked for them."""
    gaps = []
    for origin in sorted(found.keys.base):
        left = {value for (column, _), d in found.derived.items() if column == origin for value in d.left}
        number = found.keys.ambiguous.get(origin, 0) + len(left)
        if number:
            gaps.append(
                Gap(
                    id=f"gap-former_value-{slug(found.subject.name)}-{slug(origin)}",
                    dataset=found.source,
                    kind=GapKind.FORMER_VALUE,
                    reason=(
                        f"{counted(number, 'former value')} of {origin} cannot identify the person: somebody else has "
                        "the same value, so the owner of such rows is unknown"
                    ),
                    evidence="retained versions of the tables that the subject is known from",
                )
            )
    return gaps


def former_unread(found: Survey) -> list[Gap]:
    """Former values that nobody could read, where rows are found by other values than the key."""
    gaps = []
    for table in sorted({unread.table for unread in found.keys.unread}, key=str):
        mine = [unread for unread in found.keys.unread if unread.table == table]
        origins = frozenset[str]().union(*(unread.origins for unread in mine))
        ways = {
            dataset.name
            for dataset, carriage in found.carriages.items()
            if any(trace.origin in origins for _, trace in carriage.terms)
        }
        if ways:
            why = "; ".join(unread.why for unread in mine)
            gaps.append(
                Gap(
                    id=f"gap-former_unread-{slug(found.subject.name)}-{slug(table.name)}",
                    dataset=table,
                    kind=GapKind.FORMER_UNREAD,
                    seen=whole_list(why, ways),
                    reason=(
                        f"{why}. The person's rows that have only a former value would remain in "
                        f"{counted(len(ways), 'dataset')}"
                    ),
                    evidence=", ".join(sorted(ways)[:5]),
                )
            )
    return gaps


def shared_values(found: Survey) -> list[Gap]:
    """Values of the persons that others have as well, as a family has one phone: nothing is deleted by them, and they
    prove nothing where they stand.
    """
    gaps = []
    for origin in sorted(found.keys.base):
        number = len({value for _, value in found.keys.base[origin]} & found.keys.others[origin])
        if number:
            gaps.append(
                Gap(
                    id=f"gap-shared-{slug(found.subject.name)}-{slug(origin)}",
                    dataset=found.source,
                    kind=GapKind.SHARED_IDENTIFIER,
                    reason=(
                        f"{counted(number, 'value')} of {origin} cannot identify the person: other people have the "
                        "same value, or the value names nobody (`unknown`). The plan deletes and searches nothing by "
                        "these values. The person's rows and files that have no other value would remain"
                    ),
                    evidence=f"rows of {found.subject.source} with other keys",
                )
            )
    return gaps


def missing(found: Survey, world: World) -> list[Gap]:
    """Lineage leads there, and discovery found nothing."""
    known = {s.dataset for s in world.inventory.tables} | {o.dataset for o in world.inventory.objects}
    known |= {t.dataset for t in world.inventory.topics}
    known |= {gap.dataset for gap in world.inventory.gaps if gap.kind == GapKind.UNREADABLE and gap.dataset}
    remote = [place.location for place in world.inventory.remote]  # each is a gap of its own
    return [
        Gap(
            id=f"gap-not_found-{slug(dataset.name)}",
            dataset=dataset,
            kind=GapKind.NOT_FOUND,
            reason=_not_found(dataset),
            evidence=carriage.reason,
        )
        for dataset, carriage in found.carriages.items()
        if carriage.carries is not Carries.NONE
        and dataset not in known
        and dataset.namespace != VIEW
        and not any(place.holds_dataset(dataset) for place in remote)
        and not any(_within(place, dataset) for place in world.inventory.hdfs)
        and not any(_within(place, dataset) for place in world.inventory.object_places)
        and not _is_former_name(found, world, dataset)
    ]


def _within(place: HdfsPlace | ObjectPlace, dataset: DatasetId) -> bool:
    mine = place.location.dataset
    return dataset.namespace == mine.namespace and f"{dataset.name}/".startswith(mine.name and f"{mine.name}/")


def _not_found(dataset: DatasetId) -> str:
    if dataset.namespace.startswith("kafka://"):
        return "lineage leads to this topic, but the estate file does not declare the topic: add it under `kafka`"
    if is_s3(dataset.namespace):
        return "lineage leads to this place in S3, but the estate file does not list the place: add it under `roots`"
    return (
        "lineage leads here, but discovery found no data: the table was dropped or renamed, or is outside of the "
        "known roots"
    )


def _is_former_name(found: Survey, world: World, dataset: DatasetId) -> bool:
    """Whether persons come there only because a table was called so before: its rows are where its new name is."""
    edges = [e for e in world.graph.edges_into(dataset) if e.source.dataset in found.carriages]
    return bool(edges) and all({told.job for told in e.evidence} == {RENAME} for e in edges)


def open_lineage(found: Survey, world: World, dark: Collection[DatasetId]) -> list[Gap]:
    """Lineage that is not complete, where it may concern the person and the bytes do not settle it.

    dark: where they cannot, because persons' rows lead there (`planners.gaps.unexplained_rows`).
    """
    settled = {s.dataset for s in world.inventory.tables if _clean(world.evidence.get(s.location))}.difference(dark)
    persons = {d for d, carriage in found.carriages.items() if carriage.carries is not Carries.NONE}.union(dark)
    tables = {s.dataset for s in world.inventory.tables}
    gaps = []
    for gap in world.graph.gaps:
        if _is_another(gap, persons, tables) if gap.same_as is not None else gap.dataset in settled:
            continue
        gap_id = f"gap-lineage-{slug(str(gap.dataset.name if gap.dataset else gap.kind))}-{slug(gap.kind)}"
        gaps.append(Gap(id=gap_id, dataset=gap.dataset, kind=GapKind.LINEAGE, reason=gap.reason, evidence=gap.evidence))
    return gaps


def _is_another(gap: LineageGap, persons: Collection[DatasetId], tables: Collection[DatasetId]) -> bool:
    """Whether it does not matter that two names may be one dataset's.

    Persons lead to both or to none of them, or the one that they do not lead to is looked at itself.
    """
    beside = {gap.dataset, gap.same_as}.difference(persons)
    return len(beside) != 1 or beside.issubset(tables)


def _beside(seen: Evidence, *, known: bool) -> str:
    """What the other files show of a folder in which something is unreadable. known: it is a table, of which short
    numbers are told apart."""
    found = (
        (". Other files of the folder contain the person's values, and no step erases these files")
        if seen.found
        else ""
    )
    if known or not seen.weak:
        return found
    return f"{found}. Other files of the folder have digits of the person's key: {', '.join(sorted(seen.weak))}"


def _clean(seen: Evidence | None) -> bool:
    return seen is not None and not seen.found and not seen.unread


_OF_THE_WAY = frozenset({GapKind.FOLDER_AROUND_TABLES, GapKind.MIXED_COLUMNS, GapKind.STAGED_SNAPSHOT})
"""Kinds of gap about how a place could be written: where the person is not, nothing is written, and nothing expires."""


def inventory_gaps(world: World, copies: Container[DatasetId] = ()) -> list[Gap]:
    """What discovery could not tell, and the scan did not settle. copies: datasets whose folders will be swept."""
    settled = {s.dataset for s in world.inventory.tables if _clean(world.evidence.get(s.location))}
    remote = {str(place.location): place for place in world.inventory.remote}
    there = [g for g in world.inventory.gaps if g.kind in HDFS_PLACES]
    gaps = hdfs_gaps(there, world.masked, world.inventory, world.hdfs) if there else []
    stored = [g for g in world.inventory.gaps if g.kind is GapKind.OBJECT_PLACE]
    if stored:
        gaps += object_place_gaps(stored, world.masked, world.inventory, world.stored)
    for g in world.inventory.gaps:
        kind, reason = g.kind, g.reason
        if kind == GapKind.REMOTE_TABLE and g.evidence in remote:
            place, found = remote[g.evidence], world.remote.get(g.evidence)
            if not has_no_bytes(place, found, world.inventory):
                gaps.append(remote_gap(g, place, found))
            continue
        if kind in HDFS_PLACES or kind is GapKind.OBJECT_PLACE:
            continue
        if kind == GapKind.STRANGE_FILES and g.dataset not in copies:
            continue
        if kind == GapKind.UNKNOWN_FILE:
            seen = world.evidence.get(g.evidence)
            if seen and _clean(seen) and not seen.weak:
                continue
            if seen and seen.found:
                kind = GapKind.UNEXPECTED_COPY
                reason = (
                    "a file that belongs to no table contains the person's values: ask its owner to remove the file"
                )
        elif kind in _OF_THE_WAY and g.dataset in settled:
            continue
        elif kind == GapKind.UNREADABLE and (beside := world.evidence.get(g.evidence)):
            reason += _beside(beside, known=g.dataset is not None and world.location_of(g.dataset) is not None)
        evidence = world.masked.get(g.evidence, g.evidence)
        name = g.dataset.name if g.dataset else evidence
        gap_id = f"gap-{slug(kind)}-{slug(name)}"
        told = f"{reason}; {g.listed}" if g.listed else ""
        listed = g.listed if kind is GapKind.OUTSIDE_ROOTS else ""
        made = Gap(id=gap_id, dataset=g.dataset, kind=kind, reason=reason, evidence=evidence, seen=told, listed=listed)
        gaps.append(made)
    return gaps
