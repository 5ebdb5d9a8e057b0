"""Tables that no executor may touch, and why: said in the plan, not found out in the middle of a run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from pii_tracer.lake.inventory import TableState
from pii_tracer.model.column_paths import elements_of, keys_of, struct_fields
from pii_tracer.model.datasets import Access, ElementAccess, JsonAccess
from planners.formats.registry import planner_of

_INCOMPARABLE = "variant"
"""A type of which Spark compares no rows (`exceptAll`). Maps are compared by their entries."""


def unsupported(state: TableState, keys: Collection[str] = ()) -> str | None:
    """Why a table cannot be erased by any step, with what its owner can do about it; None where one can.

    keys: the columns with a key of the persons.
    """
    return planner_of(state.format).unsupported(state, keys)


def no_rebuild(state: TableState) -> str | None:
    """Why no step writes a table again by its recorded query; None where one does."""
    name = next((c.name for c in state.columns if _INCOMPARABLE in c.type.lower()), None)
    if name is not None:
        return (
            f"Spark compares no rows with the type of {name} ({_INCOMPARABLE}), so no rebuild can be shown to lose"
            " nobody's rows. Run its job after the erasure, or let the job write the key"
        )
    return planner_of(state.format).no_rebuild(state)


def astray(state: TableState, ways: Iterable[tuple[str, tuple[Access, ...]]], *, several: bool = False) -> str | None:
    """Why a key does not stand where lineage says, as the table's schema shows; None where it may.

    ways: columns with a key of the persons, and the ways into these. several: some make one key together.

    A job that writes structs by position, or an event
    that leaves out a struct's field, tells of another shape than the table has; a column may have been renamed or
    dropped since. By a column that is not there no executor can find a row.
    """
    planner = planner_of(state.format)
    if several and not planner.compares_whole_keys:
        return (
            "lineage says that several columns are a key together, and no step for this format compares them so. Its"
            " job writes the key as one column, then plan again"
        )
    kinds = {column.name.lower(): column.type for column in state.columns}
    for column, access in ways:
        kind = kinds.get(column.lower(), "")
        if kinds and column.lower() not in kinds:
            return f"lineage says that {column} is a key, and {planner.missing_column(state)}"
        if unnamed := planner.unnamed_column(state, column):
            return (
                f"by its place the column {column} is a key, and {unnamed}: no step can distinguish the first line from"
                " a row; its job writes a header, then plan again"
            )
        way = _way(column, access)
        in_text = any(isinstance(step, JsonAccess) for step in access)
        if why := planner.out_of_reach(way, in_text=in_text):
            return f"lineage says that {'.'.join(way)} is a key, and {why}"
        if any(_on(way, other) for other in state.uneven):
            return (
                f"lineage says that {'.'.join(way)} is a key, and not every file of the folder has this column."
                " It is unknown whose the rows of the others are: write these files again with it"
            )
        if column.lower() in {name.lower() for name in state.padded}:
            return (
                f"lineage says that {column} is a key, and it is of type CHAR. Blanks are added to its values, and no"
                " step compares such values: its owner makes it STRING, then plan again"
            )
        if access and column.lower() in {name.lower() for name in state.mixed}:
            return (
                f"lineage says that {column} has a key in it, and there one line has an object or a list where another"
                " has something else. No reader finds the key in both: its job writes the lines alike, then plan again"
            )
        if any(_on(way, other) for other in state.unlike):
            return (
                f"lineage says that {'.'.join(way)} is a key, and readers differ in what its values are. Another name"
                " differs in case alone, files have different types for it, or one line has text where another has"
                " a fraction or an exponent. Its job writes all rows alike, then plan again"
            )
        for step in access if kind else ():
            if isinstance(step, JsonAccess):
                break  # a text with JSON, whose members no schema tells
            if isinstance(step, ElementAccess):
                inner = elements_of(kind) if step.name == "element" else keys_of(kind)
                if inner is None:
                    return f"the estate file says that {'.'.join(way)} is a key, and the table has no such list or map"
                kind = inner
                continue
            fields = {name.lower(): inner for name, inner in struct_fields(kind) or ()}
            if step.name.lower() not in fields:
                return f"lineage says that {column} has a key in its field {step.name}, and the table has no such field"
            kind = fields[step.name.lower()]
        else:
            if kind and struct_fields(kind) is not None:
                return (
                    f"lineage says that {column} is a key, and it is a struct there: lineage does not say which field"
                )
            if planner.incomparable(state, kind):
                return (
                    f"lineage says that {column} is a key, and it is of type {kind}, whose values no step compares."
                    " Its job writes the key as text or a number, then plan again"
                )
    return None


def _way(column: str, access: tuple[Access, ...]) -> tuple[str, ...]:
    """The names down to a key, or to the text with JSON in which it is."""
    return (column, *(step.name for step in access if not isinstance(step, JsonAccess)))


def _on(way: Sequence[str], other: Sequence[str]) -> bool:
    """Whether one of two ways leads on from the other; their case does not matter."""
    return all(here.lower() == there.lower() for here, there in zip(way, other, strict=False))
