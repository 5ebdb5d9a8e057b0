"""What is not done to tables that a Nessie catalog keeps, and why."""

from __future__ import annotations

from pii_tracer.common.plurals import counted
from pii_tracer.lake.inventory import NessieTable, RefKind, TableState

NO_REBUILD = (
    "it must be rebuilt on every branch and tag of its Nessie catalog, and no step does that: run its job on each of "
    "them"
)
PLACE = "a table of a Nessie catalog"
"""Where single columns cannot become NULL."""


def unsupported(state: TableState, place: NessieTable) -> str | None:
    """Why a table cannot be erased on every reference of its catalog; None where it can. On some it is on none."""
    if place.kind is RefKind.NESSIE_TAG:
        return (
            f"in its Nessie catalog only tags contain this table, first {place.ref}: create a branch from one of "
            "these tags, then plan again"
        )
    own = [ref.name for ref in state.refs if ref.kind in (RefKind.BRANCH, RefKind.TAG)]
    if own:
        return f"the table has Iceberg branches or tags in addition to those of Nessie, first {own[0]}: drop them"
    unnamed = [ref.name for ref in state.refs if ref.table is None]
    if unnamed or state.table is None:
        return (
            f"its Nessie catalog has {counted(len(unnamed) or 1, 'reference')} with a name that SQL cannot write (a "
            f"dot, `@` or `#`), first {unnamed[0] if unnamed else 'the default branch'}: rename or delete them"
        )
    if state.sharing or state.outside:
        return "it shares data files with another table, and no step checks the Nessie references of both tables"
    return None
