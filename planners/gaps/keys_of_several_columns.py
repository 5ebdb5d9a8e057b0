"""Places in which nobody looks for a key of several columns: the bytes of a user's number tell nobody without a tenant.

Rows of tables, archives and bare folders are compared by all columns of the key. Topics and the like are searched by
bytes, or take one column, so that a person who is there by the key alone would not be seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from pii_tracer.lake.inventory import TableState
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Gap, Override
from planners.formats.registry import planner_of
from planners.locate.subject_survey import Survey, World, title
from planners.step_drafts import slug


def not_compared(found: Survey, world: World) -> list[Gap]:
    """A gap for each place that a plan for a key of several columns cannot look into; none for a key of one."""
    return [gap for place in _places(found, world) for gap in not_compared_place(found, *place)]


def not_compared_place(found: Survey, what: str, place: str, dataset: DatasetId | None) -> list[Gap]:
    """The gap of one place; none for a key of one column. what: the kind of place, for people."""
    if not found.subject.several_columns:
        return []
    return [
        Gap(
            id=f"gap-{GapKind.KEY_OF_SEVERAL}-{slug(found.subject.name)}-{slug(place)}",
            dataset=dataset,
            kind=GapKind.KEY_OF_SEVERAL,
            reason=(
                f"{what} {place} is searched for the persons' identifiers, but not for the composite key "
                f"{found.subject.key}. Rows that only this key finds would remain. Ask its owner to erase them, or "
                "let a named person waive this gap after a check"
            ),
            evidence=f"the key of `{found.subject.name}` is composite",
        )
    ]


def searched_in_rows(found: Survey) -> Override:
    """What reviewers are told of such a plan: which search it goes without."""
    return Override(
        kind="key_of_several",
        reason=(
            f"rows of a `{found.subject.name}` are found by the columns {found.subject.key} together. The byte search "
            "does not use this key, because a value of one column may belong to other people. So the verification of "
            "bytes covers only the identifiers"
        ),
    )


def key_columns_of(found: Survey, state: TableState) -> tuple[str, ...]:
    """The columns of a table that are called as those of the key, if all are there: no lineage, and no bytes, tell
    whether they hold the persons."""
    names = {column.name.lower(): column.name for column in state.columns}
    for told in (found.subject, *found.subject.tables):
        key = [names.get(name.rpartition(".")[2].lower()) for name in told.several_columns]
        if key and None not in key:
            return tuple(name for name in key if name is not None)
    return ()


def unexplained_key(found: Survey, state: TableState) -> list[Gap]:
    """A gap for a table that no lineage connects with the persons, and that has all columns of the key."""
    columns = key_columns_of(found, state)
    if not columns:
        return []
    return [
        Gap(
            id=f"gap-{GapKind.KEY_OF_SEVERAL}-{slug(found.subject.name)}-{slug(title(state))}",
            dataset=state.dataset,
            kind=GapKind.KEY_OF_SEVERAL,
            reason=(
                f"the table has the key columns {', '.join(columns)}, but no lineage shows whose keys these are. The "
                "byte search does not use keys of several columns. Add the table under the subject's `tables`, or "
                "load its lineage, then plan again. If these are numbers of other things, waive this gap"
            ),
            evidence=f"the key of `{found.subject.name}` is {found.subject.key}",
        )
    ]


def _places(found: Survey, world: World) -> Iterator[tuple[str, str, DatasetId | None]]:
    inventory = world.inventory
    compared = {state.location for state in inventory.tables}
    compared |= {p for seen in (world.hdfs, world.stored) for p, found in seen.items() if found.state is not None}
    places: list[tuple[str, DatasetId | None]] = [(str(one.location), one.dataset) for one in inventory.remote]
    places += [(str(one.location), None) for one in inventory.hdfs]
    places += [(str(one.location), None) for one in inventory.object_places]
    yield from (("the place", place, dataset) for place, dataset in places if place not in compared)
    for state in inventory.tables:
        carriage = found.carriages.get(state.dataset)
        by_key = any(trace.beside for _, trace in carriage.terms) if carriage else False
        if by_key and not planner_of(state.format).compares_whole_keys:
            yield "the table", title(state), state.dataset
