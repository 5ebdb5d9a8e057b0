"""A subject's key under which the source has several persons, as where each tenant counts its own."""

from __future__ import annotations

from pii_tracer.common.plurals import counted
from pii_tracer.lake.inventory import TableState
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Gap
from planners.locate.key_uniqueness import SameKey
from planners.locate.subject_survey import Survey, World
from planners.step_drafts import slug

_TIMES = ("date", "timestamp")
"""Types of a column that tells apart the versions of one person's row, and not persons."""


def keys_of_several(found: Survey, world: World) -> list[Gap]:
    """A gap for each request whose key looks like several persons': all their rows would go as one person's.

    Identifiers that differ say so; where they say nothing, a key of rows that the table itself declares and that needs
    more columns than the subject's key.
    """
    state = next((s for s in world.inventory.tables if s.dataset == found.source), None)
    beside = _beside(found, state) if state else ()
    gaps = []
    for request, same in sorted(found.keys.same_key.items()):
        if same.other_texts:
            gaps.append(_written_otherwise(found, request, same.other_texts))
        elif same.persons > 1 or (beside and same.groups > 1):
            gaps.append(
                Gap(
                    id=several_id(found, request),
                    dataset=found.source,
                    kind=GapKind.KEY_OF_SEVERAL,
                    reason=(
                        f"{_why(found, request, same, beside)}. The plan would erase all these rows, and all rows "
                        "that their values find, as rows of one person. Name all columns that together distinguish "
                        f"persons, as `key: [{', '.join(_together(found, beside))}]`, then plan again. If somebody "
                        "checked that all these rows belong to the person of the request, waive this gap"
                    ),
                    evidence=f"current rows of {found.subject.source} with the key of {request}: {same.rows}"
                    + (f"; the table's key of a row: {', '.join(state.row_key)}" if state and beside else ""),
                )
            )
    return gaps


def _written_otherwise(found: Survey, request: str, number: int) -> Gap:
    """The gap of a key that the source has in several texts of one number: a copy may have either as the other."""
    source = found.subject.source
    return Gap(
        id=several_id(found, request),
        dataset=found.source,
        kind=GapKind.KEY_OF_SEVERAL,
        reason=(
            f"the key of {request} is a whole number, and {source} has the same number as "
            f"{counted(number, 'other key')} (as `4711` and `4711.0`). The plan would erase all of them as one "
            f"person. If they are several persons, change the key of one of them in {source} and its copies, then "
            "plan again. If somebody checked that all of them are the person of the request, waive this gap"
        ),
        evidence=f"current rows of {source} with the number of {request}",
    )


def several_id(found: Survey, request: str) -> str:
    """The id of the gap of this request."""
    return f"gap-{GapKind.KEY_OF_SEVERAL}-{slug(found.subject.name)}-{slug(request)}"


def _together(found: Survey, beside: tuple[str, ...]) -> tuple[str, ...]:
    """A key that could tell the persons apart."""
    return (*(beside or ("tenant_id",)), *found.subject.key_parts)


def _why(found: Survey, request: str, same: SameKey, beside: tuple[str, ...]) -> str:
    source = found.subject.source
    rows = f"the key of {request} is in {counted(same.rows, 'row')} of {source}"
    if same.persons > 1:
        return (
            f"{rows}, which look like {counted(same.persons, 'person')}: no value in {', '.join(same.columns)} "
            "connects them (one person who changed one of several identifiers would keep the others)"
        )
    return (
        f"{rows}, and no identifier shows that they belong to one person. {source} also distinguishes its rows by "
        f"{', '.join(beside)}"
    )


def _beside(found: Survey, state: TableState) -> tuple[str, ...]:
    """What belongs to the table's own key of a row beside the subject's key, and could be a tenant.

    A time tells versions of a row apart, and a record key of the subject belongs to one person by itself.
    """
    mine = {name.lower() for name in (*found.subject.key_parts, *found.subject.record_keys)}
    types = {column.name.lower(): column.type.lower() for column in state.columns}
    if not {name.lower() for name in found.subject.key_parts} <= {name.lower() for name in state.row_key}:
        return ()
    return tuple(
        name
        for name in state.row_key
        if name.lower() not in mine and not types.get(name.lower(), "").startswith(_TIMES)
    )
