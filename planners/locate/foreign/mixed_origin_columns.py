"""Columns by which rows are deleted and that are filled from elsewhere, too: a value there may be somebody else's.

Two sources count from one each, and a UNION puts both numbers into one column; a supplier has a person's phone; a
statement counts rows itself. Lineage connects the person with the one and says nothing about the other: nobody can tell
whose row a value there names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from pii_tracer.lake.inventory import GENERATED, IDENTITY, TableState
from pii_tracer.lineage.graph.edges import BY_USER, Edge, JobRef, Subtype
from pii_tracer.model.datasets import Access, ColumnId, DatasetId
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.number_keys import can_be_one
from pii_tracer.model.plan import Gap
from planners.locate.edge_effects import along, joined_tables, value_edges
from planners.locate.foreign.constant_values import fills_with, is_by_user
from planners.locate.foreign.different_prefixes import never_equal
from planners.locate.foreign.generated_values import makes
from planners.locate.identifier_traces import Trace
from planners.locate.key_location import Carriage
from planners.locate.renamed_columns import Renames
from planners.locate.sql.column_expressions import Fate
from planners.locate.sql.column_references import steps_of
from planners.locate.sql.spark_functions import is_plain
from planners.locate.sql.statement_rows import Statement
from planners.locate.sql.target_row_changes import Target
from planners.locate.subject_survey import Survey, World, title
from planners.step_drafts import slug, whole_list

Way = tuple[Access, ...]
"""A way into a column."""


def foreign_keys(found: Survey, world: World, state: TableState, carriage: Carriage) -> list[Gap]:
    """A gap for each column by which rows are deleted and into which keys go that lineage does not connect."""
    told = {found.source, *(world.graph.resolve(table.table) for table in found.subject.tables)}
    if carriage.dataset in told:
        return []
    every: dict[bool, dict[str, list[Trace]]] = {True: {}, False: {}}
    for name, trace in carriage.terms:
        for column, one in ((name, trace), *trace.beside):
            every[found.coincide[trace.origin, trace.expression]].setdefault(column, []).append(one)
    looked_at = every[False] | every[True]
    gaps = []
    ends = frozenset(dataset for dataset in told if dataset is not None)
    for column in sorted(looked_at):
        derived = {(trace.origin, trace.expression) for trace in looked_at[column]} & found.derived.keys()
        keys = {value for at in derived for _, value in found.derived[at].keys.values}
        rivals = _Rivals(found, world, ends, {trace.expression for trace in looked_at[column]}, keys)
        rivals.find(carriage.dataset, column, frozenset(trace.access for trace in looked_at[column]))
        # what the subject's own key was made of counts from where the key does
        unknown = rivals.columns - (
            _above(found, world, looked_at[column]) - rivals.changed if rivals.columns else set()
        )
        others = []
        if column in every[True]:
            others += [f"{world.title_of(source.dataset)}.{source.column}" for source in sorted(unknown)]
            others += [f"values that {where} generates" for where in sorted(rivals.makers)]
            others += [f"a source that the job {job} does not report" for job in sorted(rivals.silent)]
            others += _shared(found, derived)
        # whoever works on the rows of others has an address, too
        others += [f"the name of the user who runs {where}" for where in sorted(rivals.users)]
        if others:
            named = unknown or {ColumnId(dataset=carriage.dataset, column=column)} if rivals.silent else unknown
            gaps.append(
                Gap(
                    id=f"gap-foreign_keys-{slug(title(state))}-{slug(column)}",
                    dataset=state.dataset,
                    kind=GapKind.FOREIGN_KEYS,
                    seen=whole_list(column, others),
                    reason=(
                        f"{column} identifies the rows to delete, but is also filled from {', '.join(others[:3])}. "
                        "Lineage does not connect that source with the person. Equal values may belong to another "
                        f"person, whose rows would be deleted. {_same_persons(found, world, named)}. Otherwise let "
                        "the job write the other values into a separate column, also in old rows, then plan again"
                    ),
                    evidence=carriage.reason,
                )
            )
    return gaps


def _shared(found: Survey, derived: Collection[tuple[str, str]]) -> list[str]:
    """What tells no persons apart, in a column beside keys: it can be somebody else's key."""
    blind = sorted({origin for origin, expression in derived if found.derived[origin, expression].blind})
    mixed = blind and not all(found.derived[at].blind for at in derived)
    return [f"a value computed from {origin} that several persons share" for origin in blind] if mixed else []


def _same_persons(found: Survey, world: World, unknown: Collection[ColumnId]) -> str:
    """What to do where the other values name the same persons."""
    tables = [f"{{table: {world.title_of(c.dataset)}, key: {c.column}}}" for c in sorted(unknown)[:3]]
    if not tables or found.subject.several_columns:
        return "If equal values there belong to the same persons, waive this gap"
    return f"If equal values there belong to the same persons, write {', '.join(tables)} under the subject's `tables`"


@dataclass(frozen=True)
class _Rivals:
    """What else comes out where the keys stand: in a column, or at their field of it.

    Also through tables and views on the way, which may have no rows of their own to ask this about.
    ends: tables of which the estate file says that their values are the persons'. expressions: what the keys went
    through. keys: the persons' values there. columns: those it comes out of; changed: those of which a value is not put
    there as the keys are. makers: statements that make values themselves. users: those that write who
    runs them. silent: jobs of which nobody tells what they write.
    """

    found: Survey
    world: World
    ends: Collection[DatasetId]
    expressions: Collection[str]
    keys: Collection[str]
    columns: set[ColumnId] = field(default_factory=set)
    changed: set[ColumnId] = field(default_factory=set)
    makers: set[str] = field(default_factory=set)
    users: set[str] = field(default_factory=set)
    silent: set[str] = field(default_factory=set)

    def find(self, dataset: DatasetId, column: str, ways: frozenset[Way]) -> None:
        """Fill all that is found."""
        waiting = [(dataset, column, ways)]
        done = set(waiting)
        while waiting:
            at, name, places = waiting.pop()
            here = self.found.carriages.get(at)
            joined = here.joined_keys if here is not None else frozenset()
            jobs = self.world.graph.jobs_into(at)
            names, edges = self._told(at, name, jobs)
            self._note_users(at, names, jobs)
            self._note_makers(at, names, places, jobs, edges)
            self._note_schema(at, name, edges)
            self.silent.update(self._untold(at, [job for job in jobs if at != dataset or not job.inputs]))
            self.silent.update(_silent(self.found, self.world, at, name))
            for edge in edges:
                if (edge.source, name.lower()) in joined or edge.source.dataset == at:
                    continue
                held = self._held(edge.source)
                if held is None:
                    self._note(edge, places, direct=at == dataset)
                    continue
                into = frozenset(way for way in held if any(p.access in places for p in along(edge, way)))
                step = (edge.source.dataset, edge.source.column, into)
                if into and edge.source.dataset not in self.ends and step not in done:
                    done.add(step)
                    waiting.append(step)

    def _told(self, dataset: DatasetId, name: str, jobs: Iterable[JobRef]) -> tuple[tuple[str, ...], tuple[Edge, ...]]:
        """The names that a column has had, and the value edges into it, also those that are told under such a name."""
        graph = self.world.graph
        renames = Renames(graph, {dataset: tuple(jobs)})
        former = [c.column for c in renames.former(dataset) if renames.today(dataset, c.column).lower() == name.lower()]
        columns = [ColumnId(dataset=dataset, column=one) for one in (name, *former)]
        return (name, *former), renames.told(value_edges(e for c in columns for e in graph.edges_into_column(c)))

    def _note(self, edge: Edge, places: Collection[Way], *, direct: bool) -> None:
        """A column of which nothing is known to be the persons'.

        direct: whether what comes out of it stands beside the keys, and nothing is done to it on the way.
        """
        into = [p for p in along(edge, ()) if p.fate is not Fate.COUNTED and p.access in places]
        if direct:
            into = [p for p in into if p.fate is not Fate.FOUND or not self._never_a_key(p.expression)]
        if into:
            self.columns.add(edge.source)
            self._find_users(edge.source)
        if any(p.fate is not Fate.FOUND or not self._as_keys(p.expression) for p in into):
            self.changed.add(edge.source)

    def _find_users(self, column: ColumnId) -> None:
        """Note who writes a column of nobody, and what goes into it, with the name of the user who runs that."""
        waiting, done = [column], {column}
        while waiting:
            at = waiting.pop()
            jobs = self.world.graph.jobs_into(at.dataset)
            names, edges = self._told(at.dataset, at.column, jobs)
            self._note_users(at.dataset, names, jobs)
            above = {e.source for e in edges if any(p.fate is not Fate.COUNTED for p in along(e, ()))} - done
            done |= above
            waiting += sorted(above)

    def _note_users(self, dataset: DatasetId, names: Collection[str], jobs: Iterable[JobRef]) -> None:
        """Statements, and the table itself, that write who is logged in."""
        mine = {name.lower() for name in names}
        for job in jobs:
            if any(column.lower() in mine and constant == BY_USER for column, constant in job.filled):
                self.users.add(job.where or job.job)
        state = self.world.states.get(self.world.location_of(dataset) or "")
        if state is not None and any(name.lower() in mine and is_by_user(sql) for name, sql in state.defaults):
            self.users.add(f"a default in {title(state)}")

    def _never_a_key(self, expression: str) -> bool:
        return bool(self.expressions) and all(never_equal(expression, keys) for keys in self.expressions)

    def _as_keys(self, expression: str) -> bool:
        return expression in self.expressions or (is_plain(expression) and any(map(is_plain, self.expressions)))

    def _note_makers(
        self,
        dataset: DatasetId,
        names: Collection[str],
        places: Collection[Way],
        jobs: Iterable[JobRef],
        edges: Iterable[Edge],
    ) -> None:
        """Statements that bring rows with a value of their own making, one that no edge tells."""
        plain = {
            (told.job, told.where)
            for edge in edges
            if edge.subtype is Subtype.IDENTITY or (edge.expression is not None and is_plain(edge.expression))
            for told in edge.evidence
        }
        target = Target(
            tuple(c.name for c in self.world.graph.declared(dataset)),
            lambda called: self.world.graph.identities.of_rows(called) == dataset,
        )
        for job in jobs:
            if any(self._fills(names, *one) for one in job.filled):
                self.makers.add(job.where or job.job)
            statement = Statement(job.statement, job.views) if job.statement else None
            if statement is None or (statement.single and (job.job, job.where) in plain):
                continue
            ways = [(name.lower(), *steps_of(place)) for name in names for place in places]
            if any(makes(statement, way, self._names, target, self.keys) for way in ways):
                self.makers.add(job.where or job.job)

    def _note_schema(self, dataset: DatasetId, column: str, edges: Iterable[Edge]) -> None:
        """A column of which its table says that it fills it: by counting rows, by a default, or from other columns.

        A job that writes keys there is told; who leaves the column out may not be. What a column is generated from is
        known where the statement that defines it was read.
        """
        state = self.world.states.get(self.world.location_of(dataset) or "")
        if state is None:
            return
        fixed = {why for name, why in state.fixed.items() if name.lower() == column.lower()}
        told = any(edge.source.dataset == dataset for edge in edges)
        if IDENTITY in fixed:
            self.makers.add(f"the identity column of {title(state)}")
        if GENERATED in fixed and not told:
            self.makers.add(f"the generated column of {title(state)}")
        defaults = [sql for name, sql in state.defaults if name.lower() == column.lower()]
        if any(fills_with(sql, self.keys) for sql in defaults):
            self.makers.add(f"the column's default in {title(state)}")

    def _untold(self, dataset: DatasetId, jobs: Iterable[JobRef]) -> set[str]:
        """Those of the jobs of which neither a text nor a run tells what comes into the dataset.

        One with inputs is a gap of lineage. But that of a table on the way may not be shown: where nothing of the
        persons is left in it, although its rows went on.
        """
        silent = {job.job for job in jobs if not job.statement}
        if silent:
            silent -= {told.job or "" for e in self.world.graph.edges_into(dataset) for told in e.evidence}
        return silent

    def _fills(self, names: Collection[str], column: str, constant: str) -> bool:
        """Whether a table fills a column with what can be a person's: a constant that is, or a number that it makes."""
        if column.lower() not in (name.lower() for name in names):
            return False
        return not constant or can_be_one(constant, self.keys)

    def _names(self, called: str) -> tuple[str, ...] | None:
        dataset = self.world.graph.identities.of_rows(called)
        return (self.world.graph.column_names(dataset) or None) if dataset is not None else None

    def _held(self, column: ColumnId) -> frozenset[Way] | None:
        """Where in a column the persons are; None where nothing of them is known to be in it."""
        known = self.found.carriages.get(column.dataset)
        for name, carried in known.columns.items() if known is not None else ():
            if name.lower() == column.column.lower():
                return frozenset(trace.access for trace in carried.traces)
        return None


def _silent(found: Survey, world: World, dataset: DatasetId, column: str) -> list[str]:
    """Jobs without a text that may put into a column what their runs do not tell.

    Such are runs that tell of other columns, out of tables of nobody, and not of this one; and those that unite tables
    of which one fills other columns alone.
    """
    jobs = world.graph.jobs_into(dataset)
    spoken = {job.job for job in jobs if job.statement}
    if jobs and all(job.job in spoken for job in jobs):
        return []
    filled: dict[str, dict[str, set[Edge]]] = defaultdict(lambda: defaultdict(set))
    for edge in value_edges(world.graph.edges_into(dataset)):
        for job in {evidence.job for evidence in edge.evidence if evidence.job} - spoken:
            filled[job][edge.target.column.lower()].add(edge)
    return sorted(
        job
        for job, told in filled.items()
        if _leaves_open(found, dataset, told, column, joined_tables(world.graph, dataset, {job}))
    )


def _leaves_open(
    found: Survey,
    dataset: DatasetId,
    told: Mapping[str, Collection[Edge]],
    column: str,
    joined: Collection[DatasetId],
) -> bool:
    """Whether rows may come with something in a column that a run does not tell. told: its edges, by column.

    Several tables in one column are the branches of a UNION, where one of them goes in unchanged. Otherwise they may be
    in an expression of a join, if that is told. joined: the tables of joins.
    """
    here = {edge.source.dataset for edge in told.get(column.lower(), ())}
    if not here:
        sources = {edge.source.dataset for edges in told.values() for edge in edges}
        return dataset not in sources and sources.isdisjoint(found.carriages)
    for edges in told.values():
        tables = {edge.source.dataset for edge in edges}
        united = any(edge.subtype is Subtype.IDENTITY for edge in edges) or not tables <= set(joined)
        if united and tables & here and not tables - {dataset} <= here | found.carriages.keys():
            return True
    return False


def _above(found: Survey, world: World, keys: Iterable[Trace]) -> set[ColumnId]:
    """The columns from which the source has what the keys are made of, unchanged."""
    origins = {name for key in keys for name in (found.subject.key_parts if key.beside else (key.origin,))}
    waiting = [ColumnId(dataset=found.source, column=name) for name in origins]
    above: set[ColumnId] = set()
    while waiting:
        for edge in value_edges(world.graph.edges_into_column(waiting.pop())):
            places = along(edge, ())
            same = bool(places) and all(p.fate is Fate.FOUND and is_plain(p.expression) for p in places)
            if same and edge.source not in above:
                above.add(edge.source)
                waiting.append(edge.source)
    return above
