"""Rows of persons that come into a dataset without an identifier: by which statement, and in which columns it lacks.

A dataset whose key another statement writes is erased by that key, and these rows would stay.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from functools import cache, cached_property

from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.model.datasets import Access, ColumnId, DatasetId, FieldAccess
from planners.locate.identifier_traces import Contribution
from planners.locate.identifier_walk import Walk
from planners.locate.renamed_columns import ALTER
from planners.locate.sql.branch_identifiers import UNKNOWN, Relation, Tables
from planners.locate.sql.column_references import Way, leads_to
from planners.locate.sql.statement_rows import (
    Statement,
    Told,
    Views,
    parsed,
)
from planners.locate.sql.target_row_changes import (
    Target,
    brought,
    made_by,
    overwritten,
)

_CHOOSES = re.compile(r"\b(?:case|if)\b", re.IGNORECASE)

Thin = Mapping[DatasetId, Collection[str]]


class Unkeyed:
    """Of one dataset. Complete after the walk's `run`.

    thin: columns (in lower case) of datasets upstream that have an identifier, and not in all rows of persons.
    """

    def __init__(self, walk: Walk, dataset: DatasetId, thin: Thin) -> None:
        self._walk, self._dataset, self._thin = walk, dataset, thin
        self._relations: dict[Told, tuple[Relation, ...]] = {}
        self._others: list[str] | None = None

    def relations(self, statement: Statement) -> tuple[Relation, ...]:
        """The rows that a statement brings, each way by itself."""
        if statement.told not in self._relations:
            self._relations[statement.told] = brought(statement.tree, self._tables(statement.views), self._target)
        return self._relations[statement.told]

    @cached_property
    def _target(self) -> Target:
        declared = self._walk.graph.declared(self._dataset)
        names = self._walk.names(self._dataset)[: len(declared)]
        return Target(names, lambda name: self._walk.named(name) == self._dataset)

    def lacks(
        self, part: Contribution, column: str, into: Collection[DatasetId], access: tuple[Access, ...] = ()
    ) -> bool:
        """Whether a branch of a UNION, an outer join or a ROLLUP brings rows of persons without an identifier in the
        column, or in the field of it that the access leads to.

        So do rows of a table or view in which some have none already. into: the datasets from which identifiers come
        into it.
        """
        statement = part.statement
        if self._thinned(part, column):
            return statement is None or not all(r.fills(column) and r.told for r in self.relations(statement))
        if statement is None or not self._may_lack(statement):
            return False
        texts = (e.expression for e in part.edges if e.target.column.lower() == column.lower())
        chosen = statement.views_unite or statement.subtotals or any(text and _CHOOSES.search(text) for text in texts)
        if not chosen and self._kept(statement, into):
            return False
        fields = tuple(step.name for step in access if isinstance(step, FieldAccess))
        told = fields if len(fields) == len(access) else ()
        return not all(rows.fills(column, told) for rows in self.relations(statement))

    def lacks_in(self, column: ColumnId) -> bool:
        """Whether a column of a dataset upstream lacks its identifier in some rows of persons."""
        return column.column.lower() in self._thin.get(column.dataset, ())

    def _thinned(self, part: Contribution, column: str) -> bool:
        """Whether identifiers come into the column out of one that lacks them in some rows."""
        return bool(self._thin) and any(
            e.source.column.lower() in self._thin.get(e.source.dataset, ())
            for e in part.edges
            if e.target.column.lower() == column.lower()
        )

    def _may_lack(self, statement: Statement) -> bool:
        """Whether a statement brings rows in several ways, over several groups, or from relations that may be empty."""
        several = statement.unites or statement.inserts or statement.subtotals
        return several or statement.joins_outer or statement.views_unite

    def _kept(self, statement: Statement, into: Collection[DatasetId]) -> bool:
        """Whether the tables that a single query joins tell already that nothing lacks; its columns cost more."""
        tables = [(self._walk.named(name), may) for name, may in statement.joined or ()]
        if len({dataset for dataset, _ in tables}) < len(tables):
            return False  # of a table that is joined with itself its name does not say which side is meant
        if any(dataset in into and not may for dataset, may in tables):
            return True
        return bool(tables) and all(
            dataset in into or (self._walk.is_known(dataset) and not self._reads(dataset)) for dataset, _ in tables
        )

    def all_bare(self, part: Contribution) -> bool:
        """Whether some of the rows that a contribution brings have no identifier in any column."""
        statement = part.statement
        if statement is None or not statement.known or statement.pivots:
            return all(self.united(part, column) or self._thinned(part, column) for column in part.columns)
        if any(self._thinned(part, column) for column in part.columns):
            return any(rows.bare or not rows.told for rows in self.relations(statement))
        return self._may_lack(statement) and any(rows.bare for rows in self.relations(statement))

    def united(self, part: Contribution, column: str) -> bool:
        """Without a text, or where columns become rows: whether values that are no identifiers go into the column,
        beside those that are. They are a branch of a UNION, or of a conditional, or a row of their own.
        """
        return any(
            e.target.column.lower() == column.lower()
            and (e.subtype is Subtype.IDENTITY or e.expression is None)
            and self._walk.column(e.source.dataset, e.source.column) is None
            and self._reads(e.source.dataset)
            for e in self._walk.all_edges(self._dataset, part.tellers)
        )

    def looks_united(self, part: Contribution) -> bool:
        """Without a text: whether some column is filled by several branches of a UNION.

        Two tables that go in unchanged are. Two that name persons are, whatever is done to their values, unless all
        are changed and both are told to be joined.
        """
        plain: dict[str, set[DatasetId]] = defaultdict(set)
        naming: dict[str, set[DatasetId]] = defaultdict(set)
        for edge in self._walk.all_edges(self._dataset, part.tellers):
            column, source = edge.target.column.lower(), edge.source.dataset
            if edge.subtype is Subtype.IDENTITY:
                plain[column].add(source)
            if self._reads(source):
                naming[column].add(source)
        joined = self._walk.joined(self._dataset, part)
        return any(len(tables) > 1 for tables in plain.values()) or any(
            len(tables) > 1 and (column in plain or not tables <= joined) for column, tables in naming.items()
        )

    def others(self, parts: Collection[Contribution]) -> list[str]:
        """Statements and runs that bring rows of persons and no identifier: where they are."""
        if self._dataset == self._walk.source:
            return []
        if self._others is None:
            self._others = self._found_others(parts)
        return self._others

    def _found_others(self, parts: Collection[Contribution]) -> list[str]:
        told = {part.statement.told for part in parts if part.statement is not None}
        statements = [(where, Statement(*one)) for one, where in self._texts.items() if one not in told]
        found = {
            where
            for where, one in statements
            if one.known and one.adds_rows and any(rows.bare for rows in self.relations(one))
        }
        return sorted(found | self._runs({job for part in parts for _, job, _ in part.tellers}))

    @cached_property
    def _texts(self) -> dict[Told, str]:
        """Where the statements are that write the dataset, by what is recorded of them."""
        jobs = self._walk.jobs[self._dataset]
        told = {(job.statement, job.views): job.where or job.job for job in jobs if job.statement}
        return {self._walk.equal.said.get(one, one): where for one, where in told.items()}

    def _runs(self, told: Collection[str]) -> set[str]:
        """Jobs without a text that take rows of persons one by one, from columns that hold no identifier."""
        jobs = self._walk.jobs[self._dataset]
        spoken = {*told, *(job.job for job in jobs if job.statement)}
        if jobs and all(job.job in spoken for job in jobs):
            return set()
        taken: dict[str, set[Subtype]] = defaultdict(set)
        for edge in self._walk.all_edges(self._dataset):
            if edge.source.dataset != self._dataset and self._reads(edge.source.dataset):
                for job in {e.job or "" for e in edge.evidence} - spoken:
                    taken[job].add(edge.subtype)
        return {job for job, kinds in taken.items() if Subtype.AGGREGATION not in kinds}

    @cached_property
    def overwritten(self) -> set[str]:
        """Columns in which a statement puts something else than an identifier into rows that are there."""
        found: set[str] = set()
        for text, views in self._texts:
            if "update" in text.lower() or ALTER.match(text):  # parsing costs more than all else
                found |= overwritten(Statement(text).tree, self._tables(views))
        return found

    def _tables(self, views: Views) -> Tables:
        """What a name means in a statement that reads these views of its session."""

        @cache
        def table(name: str) -> Relation:
            at = next((n for n, (view, _) in reversed(list(enumerate(views))) if view == name.lower()), None)
            if at is None:
                return self._table(name)
            return made_by(parsed(views[at][1]), self._tables(views[:at]))

        return table

    def _table(self, name: str) -> Relation:
        dataset = self._walk.named(name)
        if not self._walk.is_known(dataset):
            return UNKNOWN

        def gives(way: Way) -> bool:
            column = self._walk.column(dataset, way[0])
            if way[0] in self._thin.get(dataset, ()):
                return False
            return column is not None and (
                bool(column.lost) or any(leads_to(way[1:], trace.access) for trace in column.traces)
            )

        return Relation(self._reads(dataset), gives, self._walk.names(dataset) or None)

    def _reads(self, dataset: DatasetId) -> bool:
        """Whether its rows name persons, or were taken from such rows; not where an anonymiser ended that."""
        ended = any(column.ended for column in self._walk.columns.get(dataset, {}).values())
        return dataset in self._walk.carriers or (dataset in self._walk.rows_of_carriers[0] and not ended)
