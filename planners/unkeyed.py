"""Rows of persons that come into a dataset without an identifier: by which statement, and in which columns it lacks.

A dataset whose key another statement writes is erased by that key, and these rows would stay.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection
from functools import cached_property

from pii_tracer.lineage.edges import Subtype
from pii_tracer.model import DatasetId
from planners.branches import UNKNOWN, Relation, relation_of
from planners.statements import Statement
from planners.traces import Contribution
from planners.walk import Walk
from planners.ways import Way, leads_to

_CHOOSES = re.compile(r"\b(?:case|if)\b", re.IGNORECASE)


class Unkeyed:
    """Of one dataset. Complete after the walk's `run`."""

    def __init__(self, walk: Walk, dataset: DatasetId) -> None:
        self._walk, self._dataset = walk, dataset
        self._relations: dict[str, Relation] = {}

    def relation(self, statement: Statement) -> Relation:
        """The rows that a statement brings."""
        if statement.text not in self._relations:
            self._relations[statement.text] = relation_of(statement.tree, self._table)
        return self._relations[statement.text]

    def lacks(self, part: Contribution, column: str, into: Collection[DatasetId]) -> bool:
        """Whether a branch of a UNION, or an outer join, brings rows of persons without an identifier in the column.

        into: the datasets from which identifiers come into it.
        """
        statement = part.statement
        if statement is None or not (statement.unites or statement.joins_outer):
            return False
        texts = (e.expression for e in part.edges if e.target.column.lower() == column.lower())
        if not any(text and _CHOOSES.search(text) for text in texts) and self._kept(statement, into):
            return False
        names = [name.lower() for name in self._walk.names(self._dataset)]
        position = names.index(column.lower()) if column.lower() in names else None
        return not self.relation(statement).gives_at(column, position)

    def _kept(self, statement: Statement, into: Collection[DatasetId]) -> bool:
        """Whether the tables that a single query joins tell already that nothing lacks; its columns cost more."""
        tables = [(self._walk.named(name), may) for name, may in statement.joined or ()]
        if any(dataset in into and not may for dataset, may in tables):
            return True
        return bool(tables) and all(
            dataset in into or (self._walk.is_known(dataset) and not self._reads(dataset)) for dataset, _ in tables
        )

    def all_bare(self, part: Contribution) -> bool:
        """Whether some of the rows that a contribution brings have no identifier in any column."""
        statement = part.statement
        if statement is None or not statement.known or statement.pivots:
            return all(self.united(part, column) for column in part.columns)
        return (statement.unites or statement.joins_outer) and self.relation(statement).bare

    def united(self, part: Contribution, column: str) -> bool:
        """Without a text, or where columns become rows: whether values that are no identifiers go unchanged into the
        column, beside those that are. They are a branch of a UNION, or of a conditional, or a row of their own.
        """
        return any(
            e.target.column.lower() == column.lower()
            and e.subtype is Subtype.IDENTITY
            and self._walk.column(e.source.dataset, e.source.column) is None
            and self._reads(e.source.dataset)
            for e in self._walk.all_edges(self._dataset, part.tellers)
        )

    def others(self, parts: Collection[Contribution]) -> list[str]:
        """Statements and runs that bring rows of persons and no identifier: where they are."""
        if self._dataset == self._walk.source:
            return []
        told = {part.statement.text for part in parts if part.statement is not None}
        statements = [(where, Statement(text)) for text, where in self._texts.items() if text not in told]
        found = {where for where, one in statements if one.known and one.adds_rows and self.relation(one).bare}
        return sorted(found | self._runs({job for part in parts for _, job, _ in part.tellers}))

    @cached_property
    def _texts(self) -> dict[str, str]:
        """Where the statements are that write the dataset, by their texts."""
        jobs = self._walk.graph.jobs_into(self._dataset)
        return {job.statement: job.where or job.job for job in jobs if job.statement}

    def _runs(self, told: Collection[str]) -> set[str]:
        """Jobs without a text that take rows of persons one by one, from columns that hold no identifier."""
        jobs = self._walk.graph.jobs_into(self._dataset)
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
        parts = self._walk.contributions(self._dataset)
        given = {p.statement.text: {n.lower() for n in p.columns} for p in parts if p.statement is not None}
        found: set[str] = set()
        for text in self._texts:
            if "update" in text.lower():  # parsing costs more than all else
                found |= Statement(text).overwritten - given.get(text, set())
        return found

    def _table(self, name: str) -> Relation:
        dataset = self._walk.named(name)
        if not self._walk.is_known(dataset):
            return UNKNOWN

        def gives(way: Way) -> bool:
            column = self._walk.column(dataset, way[0])
            return column is not None and (
                bool(column.lost) or any(leads_to(way[1:], trace.access) for trace in column.traces)
            )

        return Relation(self._reads(dataset), gives, self._walk.names(dataset) or None)

    def _reads(self, dataset: DatasetId) -> bool:
        """Whether its rows name persons, or were taken from such rows; not where an anonymiser ended that."""
        ended = any(column.ended for column in self._walk.columns.get(dataset, {}).values())
        return dataset in self._walk.carriers or (dataset in self._walk.rows_of_carriers[0] and not ended)
