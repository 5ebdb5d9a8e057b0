"""What a statement does: where it writes, from which columns, and what is not certain about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.lineage.graph.edges import EdgeType, Subtype
from pii_tracer.lineage.sql.foreign_dialect_functions import with_own_functions
from pii_tracer.lineage.sql.relations import (
    IDENTITY,
    Dep,
    Field,
    Relation,
    limited,
    table_relation,
)
from pii_tracer.lineage.sql.statements.filled_columns import NULL_IS_COUNTED, in_path, may_be_null, with_values
from pii_tracer.lineage.sql.statements.made_values import made_in


class Effect(StrEnum):
    """What becomes of the output. TEMPORARY ones have no data of their own; CLONE shares or copies whole files."""

    QUERY = "query"
    REPLACE = "replace"
    APPEND = "append"
    CHANGE = "change"
    DELETE = "delete"
    VIEW = "view"
    TEMPORARY = "temporary"
    CLONE = "clone"
    RENAME = "rename"
    SCHEMA = "schema"
    DROP = "drop"
    NONE = "none"


_STORES = frozenset({Effect.APPEND, Effect.REPLACE, Effect.CHANGE, Effect.VIEW})


def through_view(name: str) -> str:
    """Why a write to a view or synonym does not show by itself where the rows are."""
    return f"the statement writes through the view {name} to a table behind it, which lineage does not follow"


@dataclass(frozen=True, slots=True)
class SqlEdge:
    """A column of a source table goes into, or decides about, a column of the output."""

    source: tuple[str, str]
    target: tuple[str, str]
    type: EdgeType
    subtype: Subtype
    masking: bool
    expression: str | None

    @property
    def way(self) -> tuple[object, ...]:
        """What it says, but for its expression, which grows with each time that a loop runs."""
        return self.source, self.target, self.type, self.subtype, self.masking


@dataclass(frozen=True)
class Filling:
    """What a statement says of columns that a table fills by itself, where a row comes without a value for them.

    rules: such columns of its output, each with the constant that it gets, or an empty text for a number that the
    engine makes. brings: for each way in which rows come in, the columns (in lower case) that they have a value for.
    left: columns that it leaves to the table, in rows that come in or are there already. made: columns with values of
    its own making, or with constants, where its text does not tell that to a planner. like: tables whose rules its
    output has, too. nulls: columns of its output that may be NULL. counts: whether the engine makes numbers in the
    place of NULL. takes_in: whether rows come in that lie in its output's folder already. tends: the table that a
    statement of administration is about, into which no row comes.
    """

    rules: tuple[tuple[str, str], ...] = ()
    brings: tuple[tuple[str, ...], ...] = ()
    left: tuple[str, ...] = ()
    made: tuple[tuple[str, str], ...] = ()
    like: tuple[str, ...] = ()
    nulls: tuple[str, ...] = ()
    counts: bool = False
    takes_in: bool = False
    tends: str = ""


@dataclass(frozen=True)
class StatementLineage:
    """The lineage of one write of one statement.

    inputs: the tables it comes from, seen through temporary views; read: the tables as named in the statement.
    columns: names of the output's columns that the statement tells. location: the folder its LOCATION clause names.
    partition_at: the folder that it gives to a partition of the output.
    reasons: why it is not complete; empty when it is. assumed: those that only say how columns were named.
    emptied: columns whose values it takes out of the rows that are there, by a change of the schema.
    views: the session's views that it reads, by name with their statements, each after those that it reads itself.
    makes: whether its output is a table or view that it makes, and not one that has to be there.
    filling: of columns that it does not fill itself.
    database: where its session looked up names without one, where a statement before it said so (USE).
    """

    sql: str
    line: int
    effect: Effect
    output: str | None = None
    inputs: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    edges: tuple[SqlEdge, ...] = ()
    indirect: tuple[tuple[str, str, Subtype], ...] = ()
    columns: tuple[str, ...] = ()
    location: str | None = None
    partition_at: str | None = None
    reasons: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    opaque: bool = False
    emptied: tuple[str, ...] = ()
    views: tuple[tuple[str, str], ...] = ()
    makes: bool = False
    filling: Filling = Filling()
    database: str = ""

    @property
    def complete(self) -> bool:
        return not self.reasons


@dataclass
class Draft:
    """A write before its edges are drawn."""

    effect: Effect
    output: str | None
    fields: list[Field] = field(default_factory=list)
    unknown: tuple[str, ...] = ()
    location: str | None = None
    partition_at: str | None = None
    emptied: tuple[str, ...] = ()
    makes: bool = False
    computed: list[Field] = field(default_factory=list)
    """Columns of a new table that it makes of its others."""
    partly: bool = False
    """Whether other rows of the table stay where it is overwritten."""
    fresh: bool = False
    """Whether it fails where the table is there already."""
    optional: bool = False
    """Whether it does nothing where the table is there already."""
    rules: tuple[tuple[str, str], ...] = ()
    """As of `Filling`."""
    like: tuple[str, ...] = ()
    """As of `Filling`."""
    ways: list[tuple[str, ...]] | None = None
    """`brings` of `Filling`, where rows come in otherwise than as the fields say."""
    left: list[str] = field(default_factory=list)
    """As of `Filling`."""
    fixed: list[tuple[str, str]] = field(default_factory=list)
    """Partition columns with the constants that they get."""
    takes_in: bool = False
    """As of `Filling`."""
    tends: str = ""
    """As of `Filling`."""
    seen: bool = True
    """Whether a planner that reads the text sees what the statement makes itself."""

    def filling(self, dialect: str) -> Filling:
        """What it says of columns that it does not fill itself."""
        comes = self.effect in (Effect.APPEND, Effect.REPLACE) and not self.unknown
        ways = self.ways if self.ways is not None else [with_values(self.fields, dialect)] if comes else []
        made: tuple[tuple[str, str], ...] = ()
        if self.effect in _STORES:
            made = (*made_in(self.fields, dialect if self.seen else ""), *self.fixed, *in_path(self.output or ""))
        left = tuple(dict.fromkeys(self.left))
        return Filling(
            rules=self.rules,
            brings=tuple(dict.fromkeys(ways)),
            left=left,
            made=tuple(dict.fromkeys(made)),
            like=self.like,
            nulls=may_be_null(self.fields) if self.effect in _STORES else (),
            counts=dialect in NULL_IS_COUNTED,
            takes_in=self.takes_in,
            tends=self.tends,
        )

    def relation(self) -> Relation:
        """What reading the output would give."""
        return Relation(self.fields, tuple(table_relation(t, ()) for t in self.unknown))

    def edges(self, dialect: str) -> tuple[SqlEdge, ...]:
        """One edge per dependency of every alternative; `*` stands for columns that are not known."""
        found: dict[SqlEdge, None] = {}
        if self.output is None:
            return ()
        for item in self.fields:
            for alt in item.alts:
                text = None if alt.expression is None else with_own_functions(alt.expression, dialect).sql("spark")
                for dep in alt.deps:
                    edge = self._edge(dep, item.name, text)
                    if edge is not None:
                        found[edge] = None
        for table in self.unknown:
            edge = self._edge(Dep(table, "*", IDENTITY), "*", None)
            if edge is not None:
                found[edge] = None
        return tuple(found)

    def _edge(self, dep: Dep, column: str, text: str | None) -> SqlEdge | None:
        source, target = (dep.table, dep.column), (self.output or "", column)
        if source == target and dep.kind == IDENTITY:
            return None
        return SqlEdge(source, target, dep.kind.type, dep.kind.subtype, dep.kind.masking, text)


def by_name(pairs: Iterable[tuple[str, Field]]) -> list[Field]:
    """Unite what several clauses write into the same column."""
    found: dict[str, tuple[str, list[Field]]] = {}
    for name, item in pairs:
        found.setdefault(name.lower(), (name, []))[1].append(item)
    return [Field(name, limited(a for i in items for a in i.alts)) for name, items in found.values()]
