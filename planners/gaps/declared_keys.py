"""Keys whose rows may be somebody else's, and keys that the estate file declares: they must find the person alone."""

from __future__ import annotations

from collections.abc import Collection

from pii_tracer.common.plurals import counted
from pii_tracer.lake.inventory import TableState
from pii_tracer.model.datasets import Match, Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Gap
from planners.copies.scan_evidence import Contradicted, Evidence, Place
from planners.locate.subject_survey import title
from planners.step_drafts import CopyDraft, slug, whole_list


def rows_of_others(state: TableState, item: CopyDraft, seen: Evidence | None) -> list[Gap]:
    """Gaps where rows that would be deleted may be somebody else's, by what else stands in the rows or the column."""
    if item.copy.match is None or item.copy.strategy is Strategy.BLOCKED or seen is None:
        return []
    by_column: dict[str, list[Contradicted]] = {}
    for one in seen.contradicted:
        by_column.setdefault(one.column, []).append(one)
    gaps = [
        _gap(
            state,
            column,
            f"{counted(sum(one.rows for one in ones), 'row')} that only {' or '.join(sorted(one.by for one in ones))} "
            f"finds would be deleted. In {column} these rows have a value that the persons do not have in the source, "
            "so the rows may belong to another person",
            "let the job write the key, or correct the table's key or rows, then plan again. (A family may share a "
            "phone, and two systems may number from 1.) If the rows are the persons' own (a former address), waive "
            "this gap",
        )
        for column, ones in sorted(by_column.items())
    ]
    return gaps + [
        _gap(
            state,
            column,
            f"the estate file declares {column} as the key here, but less than half of its values are keys of the "
            "source. The column may contain numbers of another system. Rows with an equal number by chance would be "
            "deleted",
            "remove the table from the subject's `tables`, or correct its `key`, then plan again. If rows of former "
            "persons are the reason, waive this gap",
        )
        for column in sorted(seen.strange_keys - by_column.keys())
    ]


def _gap(state: TableState, column: str, reason: str, todo: str) -> Gap:
    return Gap(
        id=f"gap-{GapKind.FOREIGN_KEYS}-{slug(title(state))}-{slug(column)}-rows",
        dataset=state.dataset,
        kind=GapKind.FOREIGN_KEYS,
        reason=reason,
        evidence=todo,
    )


def silent_key(state: TableState, item: CopyDraft, seen: Evidence | None) -> list[Gap]:
    """A gap where a declared key finds no row, and the scan sees the persons in other places of the rows only, or the
    column has no value that could be a key.
    """
    if item.copy.strategy is Strategy.BLOCKED:
        return []  # nothing is done there, and a gap of its own says why
    keys = item.copy.places
    where = unexplained(keys, seen, state.partition_columns) if seen is not None else ()
    keyless = seen.keyless if seen is not None else ()
    if not where and not keyless:
        return []
    declared = ", ".join(sorted({term.label() for term in keys.terms})) if keys else "no column"
    what = (
        f"This key finds no row of the persons, but the scan found the persons in {', '.join(where[:5])}: their rows "
        "would remain"
        if where
        else (
            f"The source's keys are numbers, but the first values of {', '.join(sorted(keyless))} contain no number: "
            "this key can find no rows"
        )
    )
    return [
        Gap(
            id=f"gap-{GapKind.DECLARED_KEY}-{slug(title(state))}",
            dataset=state.dataset,
            kind=GapKind.DECLARED_KEY,
            seen=whole_list(declared, where),
            reason=f"the estate file declares {declared} as the key here. {what}",
            evidence=(
                "correct the table's `key` under the subject's `tables`, write the identifier that the column "
                "contains as `of`, or remove the table, then plan again"
            ),
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
        column = term.column.lower() in folders if place.of_path else (place.column or "").lower() == term.place.lower()
        if column and place.key_set == term.key_set:
            return True
    return False
