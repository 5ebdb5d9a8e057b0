"""How the persons' rows are found in one table, and in which columns it has something of them."""

from __future__ import annotations

from collections.abc import Mapping

from pii_tracer.lake.inventory import TableState
from pii_tracer.model.datasets import (
    KeyPart,
    Match,
    MatchTerm,
)
from pii_tracer.model.key_location import Standing
from pii_tracer.model.plan import (
    PlannedColumn,
)
from planners.locate.key_location import Carriage
from planners.locate.sql.column_types import leaf_type
from planners.locate.subject_survey import Survey, title


def carriage_of(found: Survey, state: TableState, by_location: Mapping[str, TableState]) -> tuple[Carriage | None, str]:
    """The carriage of a table: its own, or that of the table whose files or partitions it holds."""
    own = found.carriages.get(state.dataset)
    if own is not None:
        return own, ""
    for location, why in ((state.clone_of, "shallow clone of"), (state.same_files_as, "same files as")):
        origin = by_location.get(location or "")
        if origin is not None and origin.dataset in found.carriages:
            return found.carriages[origin.dataset], f"{why} {title(origin)}: "
    if len(state.partitions_of) != 1:  # of several tables: nobody knows whose rows lie there
        return None, ""
    (of,) = state.partitions_of
    return found.carriages.get(of), f"partitions of {of.name}: "


def pii_columns(carriage: Carriage) -> tuple[PlannedColumn, ...]:
    """Columns that hold something of the person, directly or under a pseudonym; counts name nobody."""
    result = {
        PlannedColumn(name=name, category=witness.tag.category)
        for name, witnesses in carriage.tags.items()
        for witness in witnesses
        if witness.tag.standing is not Standing.AGGREGATE
    }
    return tuple(sorted(result, key=lambda c: (c.name, c.category)))


def match_by(found: Survey, state: TableState, carriage: Carriage) -> Match:
    """How a carriage finds the persons' rows in a table."""
    types = {c.name.lower(): c.type for c in state.columns}
    known = [(name, trace, found.derived[trace.origin, trace.expression]) for name, trace in carriage.terms]
    usable = [term for term in known if not term[2].blind]
    terms = {
        MatchTerm(
            column=name,
            access=trace.access,
            key_set=derived.keys.name,
            type=leaf_type(types.get(name.lower(), "string"), trace.access),
            beside=tuple(
                KeyPart(
                    column=column,
                    access=other.access,
                    type=leaf_type(types.get(column.lower(), "string"), other.access),
                )
                for column, other in trace.beside
            ),
        )
        # a person without a phone is found by nothing there, and no executor takes an empty key set
        for name, trace, derived in [term for term in usable if term[2].keys.values] or usable
    }
    return Match(terms=tuple(sorted(terms, key=lambda t: (t.label(), t.key_set))))
