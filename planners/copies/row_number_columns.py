"""Columns that number rows of another kind than persons."""

from __future__ import annotations

from planners.locate.key_location import Carriage
from planners.locate.subject_survey import Survey


def numbered_columns(found: Survey, carriage: Carriage) -> dict[str, list[str]]:
    """Columns that hold keys of the persons' rows and nothing else, with the key sets that mean the persons there.

    Rows and persons are counted from one in most shops: order 512301 is not customer 512301.
    """
    row_keys = found.subject.row_keys
    means = sorted(s.name for s in found.key_sets.values() if s.origin in row_keys)
    columns = {}
    for name, known in carriage.columns.items() if means else ():
        plain = known.traces and not (known.lost or known.ended or any(t.access for t in known.traces))
        if plain and all(trace.origin in row_keys for trace in known.traces):
            columns[name] = means
    return columns
