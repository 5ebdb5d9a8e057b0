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
            f"Spark cannot compare rows with the type of {name} ({_INCOMPARABLE}), so nobody can verify that a "
            "rebuild loses no rows. Run the table's job after the erasure, or let the job write the key"
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
            "lineage says that several columns are a key together, and no step for this format compares several "
            "columns. Let the table's job write the key as one column, then plan again"
        )
    kinds = {column.name.lower(): column.type for column in state.columns}
    for column, access in ways:
        kind = kinds.get(column.lower(), "")
        if kinds and column.lower() not in kinds:
            return f"lineage says that {column} is a key, and {planner.missing_column(state)}"
        if unnamed := planner.unnamed_column(state, column):
            return (
                f"the column {column}, known by its position, is a key, and {unnamed}: no step can distinguish the "
                "first line from a row. Let the job write a header, then plan again"
            )
        way = _way(column, access)
        in_text = any(isinstance(step, JsonAccess) for step in access)
        if why := planner.out_of_reach(way, in_text=in_text):
            return f"lineage says that {'.'.join(way)} is a key, and {why}"
        if any(_on(way, other) for other in state.uneven):
            return (
                f"lineage says that {'.'.join(way)} is a key, but not every file of the folder has this column. "
                "Nobody knows whose the rows in the other files are. Rewrite the other files with this column, then "
                "plan again"
            )
        if column.lower() in {name.lower() for name in state.padded}:
            return (
                f"lineage says that {column} is a key, but its type is CHAR. This type pads values with blanks, and "
                "no step compares such values. Ask the owner to change the type to STRING, then plan again"
            )
        if access and column.lower() in {name.lower() for name in state.mixed}:
            return (
                f"lineage says that {column} contains a key, but some lines have an object or a list there, and other "
                "lines a different type. No reader finds the key in both. Let the job write all lines in one form, "
                "then plan again"
            )
        if any(_on(way, other) for other in state.unlike):
            return (
                f"lineage says that {'.'.join(way)} is a key, but readers disagree about its values. A second name "
                "differs only in case, files have different types for it, or lines mix text with fractions or "
                "exponents. Let the job write all rows in one form, then plan again"
            )
        for step in access if kind else ():
            if isinstance(step, JsonAccess):
                break  # a text with JSON, whose members no schema tells
            if isinstance(step, ElementAccess):
                inner = elements_of(kind) if step.name == "element" else keys_of(kind)
                if inner is None:
                    return f"the estate file says that {'.'.join(way)} is a key, but the table has no such list or map"
                kind = inner
                continue
            fields = {name.lower(): inner for name, inner in struct_fields(kind) or ()}
            if step.name.lower() not in fields:
                return f"lineage says that {column} has a key in its field {step.name}, but the table has no such field"
            kind = fields[step.name.lower()]
        else:
            if kind and struct_fields(kind) is not None:
                return (
                    f"lineage says that {column} is a key, but the column is a struct: lineage does not show which "
                    "field has the key"
                )
            if planner.incomparable(state, kind):
                return (
                    f"lineage says that {column} is a key, but no step compares values of its type {kind}. Let the "
                    "job write the key as text or a number, then plan again"
                )
    return None


def _way(column: str, access: tuple[Access, ...]) -> tuple[str, ...]:
    """The names down to a key, or to the text with JSON in which it is."""
    return (column, *(step.name for step in access if not isinstance(step, JsonAccess)))


def _on(way: Sequence[str], other: Sequence[str]) -> bool:
    """Whether one of two ways leads on from the other; their case does not matter."""
    return all(here.lower() == there.lower() for here, there in zip(way, other, strict=False))
