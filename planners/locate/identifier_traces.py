"""What following an identifier finds: where it stands in a column, and which statement brought it there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pii_tracer.lineage.graph.edges import Edge, JobRef
from pii_tracer.model.datasets import Access, ElementAccess
from planners.locate.sql.column_expressions import Fate, Place, compose
from planners.locate.sql.statement_rows import Statement, Told
from planners.locate.sql.whole_numbers import NotComputable

LONGEST = 2000
"""Characters of an expression over many hops; what is longer is hidden."""


@dataclass(frozen=True)
class Trace:
    """An identifier of the source standing in a column: `expression` over `x` is what was done to it.

    mixed: the row it stands in may be somebody else's. partial: in other rows of the same persons something else stands
    in its place, by a condition (`CASE`, `coalesce`). mention: the row is somebody else's, too, or may be, as
    far as the estate file says. beside: of a whole key of several columns the others, each with its column.
    """

    origin: str
    access: tuple[Access, ...]
    expression: str
    mixed: bool = False
    partial: bool = False
    mention: bool = False
    beside: tuple[tuple[str, Trace], ...] = ()


@dataclass(frozen=True)
class Mentioned:
    """A column that names a person in rows that are somebody else's, too.

    clears: columns that say more of whom it names. said: the estate file says that such a row stays.
    """

    column: str
    trace: Trace
    clears: tuple[str, ...]
    said: bool

    @property
    def in_list(self) -> bool:
        """Whether the key is one of several, in a list or a map."""
        return any(isinstance(step, ElementAccess) for step in self.trace.access)


def what_is_done(lists: Sequence[str], columns: Sequence[str]) -> str:
    """What becomes of rows that stay. lists: what loses elements. columns: what becomes NULL."""
    lose = f"{', '.join(lists)} lose the person's elements" if lists else ""
    clear = f"{', '.join(columns)} become NULL" if columns else ""
    return " and ".join(filter(None, (lose, clear)))


@dataclass(frozen=True)
class ColumnCarriage:
    """What one column has of the source.

    traces: identifiers that can be found again. lost: identifiers that go in but cannot be found again by equality;
    mixed: of these, or of the traces, some may be in somebody else's row. ended: identifiers that a declared
    anonymiser took out. listed: identifiers of which each stands as one element of a list; they are lost as long as
    they do, and found again where the list becomes rows. hidden: those that are lost otherwise.

    Other values of the source are not followed here: `planners.locate.reachable_columns` finds that they go in.
    """

    traces: frozenset[Trace] = frozenset()
    lost: frozenset[str] = frozenset()
    mixed: bool = False
    ended: frozenset[str] = frozenset()
    listed: frozenset[Trace] = frozenset()
    hidden: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.traces or self.lost or self.ended)


Teller = tuple[str, str, str]
"""Source and job of evidence, and its place where a job has several statements."""


@dataclass(frozen=True)
class Contribution:
    """The rows that one statement, or one run, brings into a dataset. edges: those that persons can come along."""

    where: str
    tellers: tuple[Teller, ...]
    columns: Mapping[str, ColumnCarriage]
    edges: tuple[Edge, ...]
    statement: Statement | None

    @property
    def brings_persons(self) -> bool:
        """Whether any identifier goes in."""
        return any(c.traces or c.lost for c in self.columns.values())


def statements_of(jobs: Iterable[JobRef]) -> dict[Teller, Statement]:
    """Texts by who tells them: by their place where a job has several of them, otherwise by the job."""
    texts: dict[str, dict[str, set[Told]]] = defaultdict(lambda: defaultdict(set))
    for job in jobs:
        if job.statement:
            texts[job.job][job.where].add((job.statement, job.views))
    found: dict[Teller, Statement] = {}
    for name, places in texts.items():
        one = len(set().union(*places.values())) == 1
        for where, told in places.items():
            # several texts in one place: none of them is known to be the one
            found["sql", name, "" if one else where] = Statement(*next(iter(told)) if len(told) == 1 else ("",))
    return found


def composed(trace: Trace, place: Place) -> str | None:
    """What both hops did to the value; None when it is hidden, or longer than anybody wrote."""
    if place.fate is Fate.HIDDEN or len(trace.expression) > LONGEST:
        return None
    try:
        return compose(trace.expression, place.expression)
    except NotComputable:
        return None


def given_up(before: Mapping[str, ColumnCarriage], made: Mapping[str, ColumnCarriage]) -> dict[str, ColumnCarriage]:
    """What still grows after so many rounds (a hash of a hash of …) is hidden, not followed for ever."""
    result = {}
    for name, column in made.items():
        known = before.get(name, ColumnCarriage()).traces
        grown = {t.origin for t in column.traces - known}
        result[name] = replace(column, traces=column.traces & known, lost=column.lost | grown)
    return result
