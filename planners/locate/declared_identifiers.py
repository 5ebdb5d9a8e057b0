"""What the estate file says of the source and of a subject's further tables, as what following an identifier finds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from pii_tracer.config.subjects import Named, RowFate
from pii_tracer.model.column_paths import Steps
from planners.locate.identifier_traces import ColumnCarriage, Mentioned, Trace
from planners.locate.sql.spark_functions import INPUT

Placing = Callable[[str], tuple[str, Steps]]
"""The column that a name of the estate file is or lies in, and the way into it."""


def as_told(told: Named, key: Sequence[str], place: Placing) -> tuple[dict[str, ColumnCarriage], tuple[Mentioned, ...]]:
    """What stands in which column, and which columns name persons in rows that are not theirs alone.

    key: the origins of what stands in the columns of its key: those of the subject's key, or an identifier of the
    source. Of several columns that each tell some of a person's rows, what takes one along does not find them all.
    """
    traces: dict[str, set[Trace]] = defaultdict(set)

    def put(name: str, origin: str, *, partial: bool = False, mention: bool = False) -> tuple[str, Trace]:
        column, access = place(name)
        trace = Trace(origin, access, INPUT, partial=partial, mention=mention)
        traces[column].add(trace)
        return column, trace

    for name, origin in told.origins.items():
        put(name, origin)
    if told.several_columns:
        for column, origin in zip(told.key_parts, key, strict=True):
            put(column, origin)
    for owner in () if told.several_columns else told.owners:
        put(owner, key[0], partial=len(told.owners) > 1)
    mentions = tuple(
        Mentioned(*put(other.column, key[0], mention=True), other.clears, other.row is RowFate.KEEP)
        for other in told.key_columns
        if other.row is not RowFate.DELETE
    )
    return {column: ColumnCarriage(frozenset(found)) for column, found in traces.items()}, mentions
