"""Where is the key? The answer for every dataset downstream of a subject, as pure data: `planners` makes it."""

from __future__ import annotations

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.datasets import Carries, DatasetId, Frozen


class Standing(StrEnum):
    """How directly a column holds what its category says; most direct first."""

    IDENTIFYING = "identifying"
    PSEUDONYMOUS = "pseudonymous"
    AGGREGATE = "aggregate"


class Hop(Frozen):
    """One edge of a witness path. evidence: the statements and runs that tell it."""

    source: str
    target: str
    kind: str
    expression: str | None
    evidence: tuple[str, ...]


class Held(Frozen):
    """A category that a column holds, how directly, and the path from the tagged column of the source."""

    category: str
    standing: Standing
    path: tuple[Hop, ...]


class HeldColumn(Frozen):
    """A column that holds something of the person.

    finds: what its value is compared with to find the person's rows, `user_id` or an expression over it; empty for
    columns that are not used for it. mixed: the person may stand in somebody else's row here.
    """

    name: str
    finds: tuple[str, ...]
    holds: tuple[Held, ...]
    mixed: bool


class GroupSizes(Frozen):
    """Persons per group of an aggregate: number of groups, the smallest, and how many hold one person only."""

    groups: int
    smallest: int
    alone: int


class Whereabouts(Frozen):
    """One dataset. lineage: datasets from the source. bridge: the table a bridge leads to. closes: for an unknown."""

    table: str
    dataset: DatasetId
    carries: Carries
    reason: str
    closes: str
    columns: tuple[HeldColumn, ...]
    mixed: tuple[str, ...]
    lineage: tuple[str, ...]
    bridge: str | None = None
    groups: GroupSizes | None = None


class SubjectWhereabouts(Frozen):
    """Everything downstream of one kind of subject, the source first, upstream before downstream."""

    subject: str
    source: str
    key: str
    datasets: tuple[Whereabouts, ...]
