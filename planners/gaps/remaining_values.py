"""Values of the persons that stay when their rows are gone: in other people's rows, in names of folders.

No step takes them away, so that somebody must decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pii_tracer.model.column_paths import names_in_lists
from pii_tracer.model.datasets import BY_ROWS, PLAIN, ColumnId, DatasetId, Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Gap
from planners.copies.scan_evidence import OthersRows
from planners.gaps.copy_gap import gap_of
from planners.gaps.files_left_behind import left_behind, unread_parts
from planners.locate.edge_effects import value_edges
from planners.locate.subject_survey import World
from planners.step_drafts import CopyDraft, slug

_WAIVED = ". Or waive this gap; then the run ends with residue"
_TODO = (
    "ask the owner to clear the value in these rows before the run (no step changes rows of other people). Or, if "
    "the rows are the persons', declare the key of these rows, in the estate file or in the lineage of the jobs"
)
_WRITTEN = (
    "if the rows are the persons', ask the owner to write the key as the source has it, or to delete the rows, then "
    "plan again. If the rows are other people's, the search cannot distinguish their key from the person's: ask for "
    "a key that differs in more than case, blanks, signs and accents"
)
_DROPPED = (
    "files without rows of the persons still contain this column, and no step rewrites them: ask the table's owner "
    "to rewrite all its data files before the run"
)
_OFFERED = {
    "other_keys": (
        ". Or, only if the column names a second person of the same kind, add the column under `other_keys`, which "
        "sets the column to NULL in these rows. Do not add numbers of another system there: this would damage rows"
    ),
    "list": (
        ". Or, only if the list or map names persons of the same kind, add {name} under `tables` or `other_keys` "
        "with `row: keep`, which removes the person's elements. Do not add numbers of another system there"
    ),
    "not_keys": (
        "; or, if the column contains numbers of another system (most are not keys of the source), declare the "
        "column under `not_keys`"
    ),
}


_BY_MATCH = (*BY_ROWS, Strategy.MASK_COLUMNS, Strategy.RESTORE_REWRITE_ARCHIVE)


def remaining_values(items: Sequence[CopyDraft], world: World) -> tuple[Gap, ...]:
    """All of these gaps."""
    again = written_again(items, world)
    unwritten = (*left_behind(items, world), *unread_parts(items, world))
    return (*others_rows(items, world), *again, *telling_names(items, world), *unwritten)


def others_rows(items: Iterable[CopyDraft], world: World) -> tuple[Gap, ...]:
    """One gap for each column of a copy that loses rows by a match, where planning saw such rows."""
    gaps = []
    for item in items:
        if item.state and item.copy.origin is None and item.copy.strategy in _BY_MATCH:
            found = world.others.get(item.state.location, ())
            gaps += [_gap(item, told) for told in found if not _held(told.column, item)]
    return tuple(gaps)


def written_again(items: Sequence[CopyDraft], world: World) -> list[Gap]:
    """One gap for each column of a rebuilt copy that holds the persons and takes its values from where these stay."""
    by_dataset = {item.copy.dataset: item for item in items if item.copy.origin is None}
    gaps = []
    for item in by_dataset.values():
        if item.state is None or item.copy.strategy is not Strategy.REBUILD:
            continue
        for column in item.state.columns:
            here = ColumnId(dataset=item.copy.dataset, column=column.name)
            origin = _stays(here, by_dataset, world, frozenset())
            if origin is not None and _seen(here, world):
                gaps.append(_again(item, column.name, f"{world.title_of(origin.dataset)}.{origin.column}"))
    return gaps


def _stays(
    column: ColumnId, items: Mapping[DatasetId, CopyDraft], world: World, passed: frozenset[ColumnId]
) -> ColumnId | None:
    """From where a rebuilt column gets values of the persons that nothing takes away there; None from nowhere."""
    for edge in value_edges(world.graph.edges_into_column(column)):
        source = edge.source
        item = items.get(source.dataset)
        if source in passed or source.dataset == column.dataset or not _seen(source, world):
            continue
        if item is not None and item.copy.strategy is Strategy.REBUILD:
            found = _stays(source, items, world, passed | {column})
        elif item is None or item.state is None:
            found = source
        else:
            told = world.others.get(item.state.location, ())
            mine = (other.column.lower() == source.column.lower() for other in told)
            found = source if item.copy.strategy not in _BY_MATCH or any(mine) else None
        if found is not None:
            return found
    return None


def _seen(column: ColumnId, world: World) -> bool:
    """Whether the scan saw the persons in a column, itself or a member of it."""
    seen = world.evidence.get(world.location_of(column.dataset) or "")
    if seen is None:
        return False
    name = column.column.lower()
    labels = {(place.column or "").lower() for place in seen.places if not place.weak}
    return any(label == name or label.startswith((f"{name}.", f"{name}[")) for label in labels)


def _again(item: CopyDraft, column: str, origin: str) -> Gap:
    return Gap(
        id=f"gap-{GapKind.OTHERS_ROWS}-{slug(item.copy.id.removeprefix('c-'))}-{slug(column)}",
        dataset=item.copy.dataset,
        kind=GapKind.OTHERS_ROWS,
        reason=(
            f"its column {column} contains the persons, and is filled from {origin}, which keeps rows with the "
            "persons: a rebuild would write the values again"
        ),
        evidence=(
            f"solve this gap for {origin}, then plan again: this also solves it here. If that column contains numbers "
            f"of another system, declare it under `not_keys`{_WAIVED}"
        ),
    )


def telling_names(items: Iterable[CopyDraft], world: World) -> tuple[Gap, ...]:
    """A gap for each bare folder that keeps files under names that hold the persons (hazard F2).

    Not where a folder of others is named by them: that is a gap of `others_rows`. Not where columns are held: those
    that name folders are among them, for they cannot become NULL.
    """
    gaps = []
    for item in items:
        seen = world.evidence.get(item.copy.location)
        if not item.state or not seen or item.state.format not in PLAIN or item.copy.strategy not in BY_ROWS:
            continue
        told = {stray.column for stray in world.others.get(item.copy.location, ())}
        files = {place.file for place in seen.places if place.of_path and not place.weak}
        if files and told.isdisjoint(item.state.partition_columns):
            gaps.append(_names(item))
    return tuple(gaps)


def _names(item: CopyDraft) -> Gap:
    return gap_of(
        item,
        GapKind.OBJECT_NAMES,
        "names of files or folders contain values of the persons, and no step changes names",
        "ask the owner to rename them, then plan again. Or waive this gap; then the run ends with residue until "
        "somebody removes the files and resumes the run",
    )


def _held(label: str, item: CopyDraft) -> bool:
    """Whether a hold keeps the column in every row."""
    kept = [name.lower() for name in item.copy.mask.kept] if item.copy.mask else []
    return any(label.lower() == name or label.lower().startswith(name + ".") for name in kept)


def _gap(item: CopyDraft, told: OthersRows) -> Gap:
    reason, todo = _in_key(told) if told.key else _beside_key(item, told)
    return Gap(
        id=f"gap-{GapKind.OTHERS_ROWS}-{slug(item.copy.id.removeprefix('c-'))}-{slug(told.column)}",
        dataset=item.copy.dataset,
        kind=GapKind.OTHERS_ROWS,
        reason=reason,
        evidence=todo + _WAIVED,
    )


def _beside_key(item: CopyDraft, told: OthersRows) -> tuple[str, str]:
    keys = ", ".join(sorted({t.label() for t in item.copy.places.terms})) if item.copy.places else ""
    those = "row that is not the persons' contains" if told.rows == 1 else "rows that are not the persons' contain"
    stays = "this value would remain" if told.rows == 1 else "these values would remain"
    column = f"{told.column} (a dropped column)" if told.dropped else told.column
    todo = _DROPPED if told.dropped else _TODO
    reason = f"{_number(told)} {those} them in {column}: the plan finds rows by {keys}, so {stays}"
    return reason, todo + _offered(item, told)


def _offered(item: CopyDraft, told: OthersRows) -> str:
    """What can be said of the column in the estate file."""
    listed = names_in_lists(item.state.columns) if item.state is not None and told.offers else {}
    name = next((name for place, name in listed.items() if place.lower() == told.column.lower()), None)
    if name is not None:  # `not_keys` takes whole columns
        return _OFFERED["list"].format(name=f"`{name}`") if told.offers == "other_keys" else ""
    return _OFFERED[told.offers] if told.offers else ""


def _in_key(told: OthersRows) -> tuple[str, str]:
    rows, stay = ("row", "this row would remain") if told.rows == 1 else ("rows", "these rows would remain")
    return (
        f"in {_number(told)} {rows} {told.column} has a value of the persons in a different form (extra blanks, signs "
        f"or words, different case or accents, escapes). The plan compares whole values, so {stay}",
        _WRITTEN,
    )


def _number(told: OthersRows) -> str:
    return f"{told.rows:,}{' or more' if told.more else ''}"
