"""Keys that the estate file declares for a table: they must find the person where the scan sees one."""

from __future__ import annotations

from collections.abc import Collection

from pii_tracer.lake.inventory import TableState
from pii_tracer.model.datasets import Match, Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Gap
from planners.copies.scan_evidence import Evidence, Place
from planners.locate.subject_survey import title
from planners.step_drafts import CopyDraft, slug


def silent_key(state: TableState, item: CopyDraft, seen: Evidence | None) -> list[Gap]:
    """A gap where a declared key finds no row, and the scan sees the persons in other places of the rows only."""
    if item.copy.strategy is Strategy.BLOCKED:
        return []  # nothing is done there, and a gap of its own says why
    keys = item.copy.places
    where = unexplained(keys, seen, state.partition_columns) if seen is not None else ()
    if not where:
        return []
    declared = ", ".join(sorted({term.label() for term in keys.terms})) if keys else "no column"
    return [
        Gap(
            id=f"gap-{GapKind.DECLARED_KEY}-{slug(title(state))}",
            dataset=state.dataset,
            kind=GapKind.DECLARED_KEY,
            reason=f"the estate file declares {declared} as the key here. It finds no row of the persons, but the scan"
            f" sees them in {', '.join(where[:5])}: their rows would stay",
            evidence="correct the table's `key` under the subject's `tables`, or take the table out, then plan again",
        )
    ]


def unexplained(keys: Match | None, seen: Evidence, partitions: Collection[str] = ()) -> tuple[str, ...]:
    """Where the scan sees the persons among the rows, if the match finds no row and explains none of these places.

    A match that finds no row now explains all the same what stands in its own columns: rows of former versions.
    partitions: columns whose values stand in names of folders.
    """
    if seen.rows or not seen.found:
        return ()
    places = [place for place in seen.places if not place.weak]
    if any(_explained(place, keys, partitions) for place in places):
        return ()
    return tuple(sorted({place.column or "places without a column" for place in places}))


def _explained(place: Place, keys: Match | None, partitions: Collection[str]) -> bool:
    """Whether a place is one of the match, in whatever case its column is written."""
    folders = {name.lower() for name in partitions}
    for term in keys.terms if keys else ():
        column = (
            term.column.lower() in folders if place.of_path else (place.column or "").lower() == term.label().lower()
        )
        if column and place.key_set == term.key_set:
            return True
    return False
