"""Follows the identifying columns of a source along value edges, hop by hop, with the expression each hop recorded.

What comes out is, per column, the places where an identifier stands (plain, or put through an expression), or that it
went in and cannot be told. `planners.locate.key_location` makes the dataset's answer of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import cached_property, partial

from pii_tracer.config.subjects import Named, Subject, SubjectTable
from pii_tracer.lineage.dataset_names import UNRESOLVED
from pii_tracer.lineage.graph.edges import (
    Edge,
    Evidence,
    Subtype,
)
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.column_paths import Spots, Steps, spot_of, struct_fields
from pii_tracer.model.datasets import ColumnId, DatasetId
from planners.locate.composite_key_lineage import person_keys, whole_keys
from planners.locate.declared_identifiers import as_told
from planners.locate.edge_effects import Anonymisers, JoinedColumns, carried, joined_tables, value_edges
from planners.locate.identifier_traces import (
    ColumnCarriage,
    Contribution,
    Mentioned,
    Teller,
    given_up,
    statements_of,
)
from planners.locate.list_elements import united
from planners.locate.reachable_columns import Reach, columns_of
from planners.locate.renamed_columns import Renames
from planners.locate.sql.column_expressions import Place
from planners.locate.sql.column_references import leads_to
from planners.locate.sql.relation_rows import Rows
from planners.locate.sql.statement_rows import Statement, Told

ROUNDS = 4
"""How often datasets that feed each other in a circle are gone through; what still grows then is hidden."""


class Walk:
    """Goes along the value edges from a source. `columns` grows dataset by dataset, upstream before downstream."""

    def __init__(
        self,
        graph: LineageGraph,
        source: DatasetId,
        subject: Subject,
        anonymisers: Anonymisers,
        also: Iterable[ColumnId] = (),
        further: Mapping[DatasetId, SubjectTable] | None = None,
        spots: Spots | None = None,
    ) -> None:
        """also: further columns whose edges somebody will ask `edges` for. further: the subject's further tables.

        spots: where the names that these and the subject tell stand inside structs.
        """
        self.graph, self.source, self.subject, self.anonymisers = graph, source, subject, anonymisers
        self.keys = person_keys(subject)
        self._columns: dict[DatasetId, tuple[str, ...]] = {}
        self._spellings: dict[DatasetId, Mapping[str, str]] = {}
        self._spots = spots or {}
        self.mentions: dict[DatasetId, tuple[Mentioned, ...]] = {}
        self.told = {d: self._tell(d, told) for d, told in {source: subject, **(further or {})}.items()}
        self.keyed_by = {dataset: table.of for dataset, table in (further or {}).items()}
        self.several = {dataset: table for dataset, table in (further or {}).items() if table.several}
        self.order = self._order()
        self.jobs = {d: graph.jobs_into(d) for d in (*self.told, *self.order)}
        self.renames = Renames(graph, self.jobs)
        begin = [column for dataset, columns in self.told.items() for column in columns_of(dataset, columns)]
        begin += [column for dataset in self.told for column in self.renames.former(dataset)]
        self.reach = Reach(graph, source, [*begin, *also])
        self.edges = {d: self.renames.told(self.reach.edges_into(d)) for d in self.order}
        self.statements = {d: statements_of(self.jobs[d]) for d in self.order}
        self._names: dict[str, DatasetId] = {}
        self._brought: dict[DatasetId, dict[str, ColumnCarriage]] = {}
        self._parts: dict[DatasetId, tuple[Contribution, ...]] = {}
        self._grouped: dict[str, frozenset[str] | None] = {}
        self.columns: dict[DatasetId, dict[str, ColumnCarriage]] = dict(self.told)
        self.circular = False
        self.equal = JoinedColumns(self)

    def _order(self) -> tuple[DatasetId, ...]:
        """What is downstream of the source or of a further table, and these tables, upstream first."""
        found = tuple(d for d in self.graph.downstream(self.source) if d != self.source)
        if len(self.told) == 1:
            return found
        more = {d for table in self.told for d in (table, *self.graph.downstream(table))}
        return self.graph.in_order({*found, *more} - {self.source})

    def _tell(self, dataset: DatasetId, told: Named) -> dict[str, ColumnCarriage]:
        """What the estate file says of the source or a further table, by the columns that its names are or lie in."""
        spelled = self._spelled(dataset)

        def place(name: str) -> tuple[str, Steps]:
            spot = spot_of(self._spots, dataset, name)
            return spelled.get(spot.column.lower(), spot.column), spot.access

        columns, self.mentions[dataset] = as_told(
            told, (told.keyed_by,) if told.keyed_by else self.subject.key_parts, place
        )
        return columns

    def run(self) -> None:
        """Fill `columns`; circles are gone through again until nothing changes."""
        position = {d: n for n, d in enumerate((self.source, *self.order))}
        back = any(position.get(e.source.dataset, -1) >= position[d] for d in self.order for e in self.edges[d])
        self.circular = back
        for number in range(ROUNDS if back else 1):
            if not self._once(last=number == ROUNDS - 1):
                break
        self._grouped.clear()
        if back:
            self._parts.clear()

    def _once(self, *, last: bool) -> bool:
        """Go through all datasets; whether anything changed. In the last round what still grows is hidden."""
        changed = False
        for dataset in self.order:
            before = self.columns.get(dataset)
            self._parts.pop(dataset, None)
            self._grouped.clear()  # known as long as the columns upstream stay as they are
            self.equal.take(dataset)
            brought = self._brought[dataset] = self.columns_of(dataset, self.edges[dataset])
            made = self.columns[dataset] = self._with_told(dataset, brought)
            made = self._with_joins(dataset, made)
            if made != before:
                changed = True
                if last and before is not None:
                    made = given_up(before, made)
            self.columns[dataset] = made
        return changed

    def _with_told(self, dataset: DatasetId, made: dict[str, ColumnCarriage]) -> dict[str, ColumnCarriage]:
        """What lineage brings, and beside it what the estate file tells; of whose a row is that has several keys, it
        alone."""
        told = self.told.get(dataset, {})
        if dataset in self.several:
            return made | told
        united = {
            name: replace(made[name], traces=made[name].traces | column.traces) if name in made else column
            for name, column in told.items()
        }
        return made | united

    def _with_joins(self, dataset: DatasetId, made: dict[str, ColumnCarriage]) -> dict[str, ColumnCarriage]:
        """Columns that a join of persons with other persons filled are mixed, from here on downstream."""
        result = dict(made)
        for part in self.contributions(dataset) if dataset not in self.several else ():
            if part.brings_persons and self._apart(dataset, part):
                for name in (n for n, c in part.columns.items() if c.traces or c.lost):
                    traces = frozenset(replace(trace, mixed=True) for trace in made[name].traces)
                    result[name] = replace(made[name], traces=traces, mixed=True, listed=frozenset())
        return result

    def columns_of(self, dataset: DatasetId, edges: Iterable[Edge]) -> dict[str, ColumnCarriage]:
        """What these edges bring into a dataset's columns."""
        coming = [(e, came) for e in edges if (came := self.column(e.source.dataset, e.source.column))]
        spelled = dict(self._spelled(dataset)) if coming else {}
        beside: dict[str, set[str]] = defaultdict(set)
        for edge, came in coming:
            if came.traces:
                beside[edge.target.column.lower()].add(edge.source.column.lower())

        def step(edge: Edge, came: ColumnCarriage) -> ColumnCarriage:
            others = partial(self.picks_others, edge)
            return carried(edge, came, beside[edge.target.column.lower()], self.anonymisers, others)

        def name(edge: Edge) -> str:
            return spelled.setdefault(edge.target.column.lower(), edge.target.column)

        made = united(self.graph, coming, name, step, lambda: self.all_edges(dataset))
        return whole_keys(made, self.subject.several_columns)

    def _spelled(self, dataset: DatasetId) -> Mapping[str, str]:
        """Columns as they are written, by their names in lower case."""
        known = self._spellings.get(dataset)
        if known is None:
            known = self._spellings[dataset] = {name.lower(): name for name in self.names(dataset)}
        return known

    def column(self, dataset: DatasetId, name: str) -> ColumnCarriage | None:
        """A column by its name, in whatever case; None when nothing of the persons is known to be in it."""
        known = self.columns.get(dataset)
        if known is None:
            return None
        name = self.renames.today(dataset, name)  # statements call it what it was called when they ran
        found = known.get(name)
        return found or next((c for other, c in known.items() if other.lower() == name.lower()), None)

    def picks_others(self, edge: Edge, place: Place) -> bool:
        """Whether an aggregate or a window may have put the value into a row that is not the person's own."""
        for partition in place.windows:
            told = (self._surely_at(edge.source.dataset, way) for way in partition)
            if not self.keys.tell(frozenset[str]().union(*told)):
                return True
        return place.group and not self._grouped_by_person(edge)

    def _surely_at(self, dataset: DatasetId, way: tuple[str, ...]) -> frozenset[str]:
        """Identifiers that a column or a field of one, written out with its table, has in it.

        Where it can be read in several ways, and none has the table's whole name first, those of all of them.
        """
        kinds = {column.name.lower(): column.type for column in self.graph.columns(dataset)}
        readings = {
            n: way[n:]
            for n, part in enumerate(way)
            if part in kinds and (n == len(way) - 1 or not kinds[part] or struct_fields(kinds[part]) is not None)
        } or {len(way) - 1: way[-1:]}
        whole = [reading for n, reading in readings.items() if n and self.named(".".join(way[:n])) == dataset]
        meant = whole if len(whole) == 1 else readings.values()
        return frozenset.intersection(*(self._at(dataset, reading[0], reading[1:]) for reading in meant))

    def _at(self, dataset: DatasetId, column: str, fields: tuple[str, ...]) -> frozenset[str]:
        """Identifiers that can be found at a field of a column, or below it, each in its own person's row."""
        found = self.column(dataset, column)
        traces = found.traces if found is not None else ()
        return frozenset(t.origin for t in traces if not (t.mixed or t.mention) and leads_to(fields, t.access))

    def _grouped_by_person(self, edge: Edge) -> bool:
        """Every statement that tells the edge groups once, and by a key of the person."""
        dataset = edge.target.dataset
        told = [self.teller(dataset, e) for e in edge.evidence if e.source == "sql"]
        texts = [self.statements[dataset].get(teller) for teller in told]
        if not told or not all(s and s.known and s.grouping_levels == 1 for s in texts):
            return False
        found = [self._grouping(s) for s in texts if s is not None]
        known = [by for by in found if by is not None]
        return all(map(self.keys.tell, known)) and (len(known) == len(found) or self.member_groups(edge, told))

    def _grouping(self, statement: Statement) -> frozenset[str] | None:
        if statement.text not in self._grouped:
            self._grouped[statement.text] = statement.grouped_by(self._resolved, self.keys)
        return self._grouped[statement.text]

    def member_groups(self, edge: Edge, told: Collection[Teller]) -> bool:
        """Whether lineage says it of every statement: it sees through the views of a session. A struct's field it does
        not name, so that a column with its key in a field does not count.
        """
        dataset = edge.target.dataset
        grouped: dict[tuple[Teller, DatasetId], set[str]] = defaultdict(set)
        for member in self.graph.memberships_into(dataset):
            if member.subtype is Subtype.GROUP_BY and (origins := self._whole(member.source)):
                for evidence in member.evidence:
                    grouped[self.teller(dataset, evidence), member.source.dataset] |= origins
        return set(told) <= {teller for (teller, _), origins in grouped.items() if self.keys.tell(origins)}

    def _whole(self, column: ColumnId) -> frozenset[str]:
        """Identifiers that a column is, each in its own person's row."""
        found = self.column(column.dataset, column.column)
        traces = found.traces if found is not None else ()
        return frozenset(t.origin for t in traces if not (t.mixed or t.mention or t.access))

    def _resolved(self, table: str) -> Rows | None:
        """The rows of a table by its name in a statement; None where lineage does not know it."""
        dataset = self.named(table)
        return self.rows(dataset) if self.is_known(dataset) else None

    def names(self, dataset: DatasetId) -> tuple[str, ...]:
        """The names of a dataset's columns, in its order."""
        if dataset not in self._columns:
            self._columns[dataset] = self.graph.column_names(dataset)
        return self._columns[dataset]

    def teller(self, dataset: DatasetId, evidence: Evidence) -> Teller:
        """Who wrote a dataset's rows: a statement, or a job of which no more than one statement is known."""
        job = evidence.job or ""
        exact = (evidence.source, job, evidence.where)
        return exact if exact in self.statements[dataset] else (evidence.source, job, "")

    def named(self, table: str) -> DatasetId:
        """The dataset of a table's name in a statement, as the harvest names it."""
        if table not in self._names:
            unknown = DatasetId(namespace=UNRESOLVED, name=table.replace("`", ""))
            told = self.graph.number(unknown) is not None  # a table of its own that looks like another one's branch
            self._names[table] = unknown if told else self.graph.identities.of_rows(table) or unknown
        return self._names[table]

    def all_edges(self, dataset: DatasetId, tellers: Collection[Teller] | None = None) -> tuple[Edge, ...]:
        """The value edges into a dataset, those of persons and all others; tellers: that one of these tells."""
        return tuple(
            e
            for e in self.renames.told(value_edges(self.graph.edges_into(dataset)))
            if tellers is None or any(self.teller(dataset, evidence) in tellers for evidence in e.evidence)
        )

    def contributions(self, dataset: DatasetId) -> tuple[Contribution, ...]:
        """What brings persons into a dataset, statement by statement; equal ones once. Complete after `run`."""
        if dataset not in self._parts:
            self._parts[dataset] = self._by_statement(dataset)
        return self._parts[dataset]

    def _by_statement(self, dataset: DatasetId) -> tuple[Contribution, ...]:
        edges = self.edges.get(dataset, ())
        by_teller: dict[Teller, set[int]] = defaultdict(set)
        for number, edge in enumerate(edges):
            for evidence in edge.evidence:
                by_teller[self.teller(dataset, evidence)].add(number)
        found: dict[tuple[frozenset[int], Told | None], list[Teller]] = defaultdict(list)
        for teller, numbers in sorted(by_teller.items()):
            statement = self.statements[dataset].get(teller)
            found[frozenset(numbers), statement.told if statement else None].append(teller)
        spoken = {(mine, who[1]) for (mine, text), told in found.items() if text is not None for who in told}
        parts = []
        for (mine, text), told in sorted(found.items(), key=lambda item: item[1]):
            # what a run tells, its job's statement tells better
            mute = [who for who in told if text is None and (mine, who[1]) not in spoken]
            if text is not None or mute:
                tellers = tuple(told if text is not None else mute)
                parts.append(self._contribution(dataset, tellers, tuple(edges[n] for n in sorted(mine))))
        return tuple(parts)

    def _contribution(self, dataset: DatasetId, tellers: tuple[Teller, ...], edges: tuple[Edge, ...]) -> Contribution:
        _, job, where = tellers[0]
        statement = self.statements[dataset].get(tellers[0])
        # what all edges bring is known from going through the dataset; in circles it may change since
        again = self.circular or dataset in self.several or edges != self.edges.get(dataset)
        known = None if again else self._brought.get(dataset)
        columns = self.columns_of(dataset, edges) if known is None else known
        return Contribution(where or job, tellers, columns, edges, statement)

    def _apart(self, dataset: DatasetId, part: Contribution) -> bool:
        """Whether the statement joins persons with other persons, so that one row can hold two."""
        if part.statement is None:
            return self._joined_twice(dataset, part)
        resolved: set[DatasetId] = set()

        def tables(name: str) -> Rows:
            known = self.named(name)
            resolved.add(known)
            return self.rows(known)

        if part.statement.apart(tables, self.keys):
            return True
        known = resolved | {dataset}
        if {d for d in self.reach.sources_into(dataset) if self._carries(d)} <= known:
            return False
        if {
            e.source.dataset for e in self.all_edges(dataset, part.tellers) if self._carries(e.source.dataset)
        } <= known:
            return False
        # a table with persons hides behind a name that lineage does not know (a view of the session): any could be it
        return part.statement.apart(self._resolved, self.keys)

    def _joined_twice(self, dataset: DatasetId, part: Contribution) -> bool:
        """Without a text: whether one column with persons fills several, unchanged, and a join is told: payer and payee
        come from one table that is joined twice.
        """
        filled: dict[ColumnId, set[str]] = defaultdict(set)
        for edge in part.edges:
            if edge.subtype is Subtype.IDENTITY and self.column(edge.source.dataset, edge.source.column):
                filled[edge.source].add(edge.target.column.lower())
        if all(len(columns) < 2 for columns in filled.values()):
            return False
        return bool(self.joined(dataset, part))

    def joined(self, dataset: DatasetId, part: Contribution) -> set[DatasetId]:
        """The tables whose columns decide about a join of a contribution's jobs, as events tell."""
        return joined_tables(self.graph, dataset, {job for _, job, _ in part.tellers})

    def is_known(self, dataset: DatasetId) -> bool:
        """Whether lineage knows a dataset that a statement names."""
        return dataset.namespace != UNRESOLVED

    def rows(self, dataset: DatasetId) -> Rows:
        def origins(way: tuple[str, ...]) -> frozenset[str]:
            return self._at(dataset, way[0], way[1:])

        return Rows(self._carries(dataset), origins)

    @cached_property
    def rows_of_carriers(self) -> tuple[frozenset[DatasetId], frozenset[DatasetId]]:
        """Datasets with values out of rows that name persons: row by row, and added up. Complete after `run`."""
        return self.reach.rows_of(self.carriers)

    @cached_property
    def carriers(self) -> frozenset[DatasetId]:
        """Datasets whose rows name persons. Complete after `run`."""
        return frozenset(d for d in self.columns if self._carries(d))

    def _carries(self, dataset: DatasetId) -> bool:
        return any(c.traces or c.lost for c in self.columns.get(dataset, {}).values())

    def nearest(self, dataset: DatasetId, far: Mapping[DatasetId, int]) -> DatasetId:
        """The upstream dataset that explains best how the person came here. far: hops from the source, where known."""
        near = [d for d in self.reach.sources_into(dataset) if d in far]
        near += [m.source.dataset for m in self.graph.memberships_into(dataset) if m.source.dataset in far]
        return min(near, key=lambda d: (far[d], d), default=self.source)
