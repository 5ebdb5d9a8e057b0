"""Places where an erased person's bytes survive, as data.

basis: `tested` has a test in this repository that shows the survival and the remedy; `tried` was run by hand on the
versions in docs/stack.md; `documented` is read in the system's own documentation or source.
"""

from __future__ import annotations

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.identities import Frozen


class Basis(StrEnum):
    """How we know."""

    TESTED = "tested"
    TRIED = "tried"
    DOCUMENTED = "documented"


class Hazard(Frozen):
    """One place of survival and what removes the bytes from there. engine: the system that it belongs to."""

    id: str
    engine: str
    survives_in: str
    remedy: str
    basis: Basis


def hazard(hazard_id: str, engine: str, survives_in: str, remedy: str, basis: Basis) -> Hazard:
    """An entry of the catalogue."""
    return Hazard(id=hazard_id, engine=engine, survives_in=survives_in, remedy=remedy, basis=basis)
