"""Facts on their way into the graph: told once each, with everybody who tells them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from pii_tracer.lake.formats.registry import table_formats
from pii_tracer.lineage.dataset_names import UNRESOLVED, Identities
from pii_tracer.lineage.graph.edges import (
    DIRECT_SUBTYPES,
    Edge,
    EdgeType,
    JobRef,
    LineageGap,
    Membership,
    Subtype,
)
from pii_tracer.lineage.sources.evidence_merging import Proof, iso, united
from pii_tracer.lineage.sql.text.global_temp_views import is_global_view
from pii_tracer.lineage.sql.text.names_inside_tables import parts_of
from pii_tracer.lineage.sql.text.table_names import Loose
from pii_tracer.model.datasets import Column, ColumnId, DatasetId
from pii_tracer.model.gap_kinds import LineageGapKind

_WITHIN_COLUMN = re.compile(r"\.|\[")
"""Where the name of a part of a column goes on: a field of a struct, an element of an array or a map."""

_EdgeKey = tuple[ColumnId, ColumnId, Subtype, bool, "str | None"]
_Pairs = tuple[tuple[str, str], ...]
_JobKey = tuple[str, "str | None", "str | None", tuple[DatasetId, ...], DatasetId, _Pairs, _Pairs]
_GapKey = tuple["DatasetId | None", str, str, str]


@dataclass
class Ledger:
    """Edges, memberships, jobs and gaps by what they say; columns of every dataset that was mentioned.

    loose: datasets of whose columns nobody knows the order.
    resolved: pairs of datasets of which a statement that left nothing open goes from one to the other.
    ambiguous: global temporary views that several statements make, each in its own way.
    """

    identities: Identities
    columns: dict[DatasetId, tuple[Column, ...]] = field(default_factory=dict)
    loose: set[DatasetId] = field(default_factory=set)
    _edges: dict[_EdgeKey, set[Proof]] = field(default_factory=lambda: defaultdict(set))
    _members: dict[tuple[ColumnId, DatasetId, Subtype], set[Proof]] = field(default_factory=lambda: defaultdict(set))
    _jobs: dict[_JobKey, set[Proof]] = field(default_factory=lambda: defaultdict(set))
    _gaps: dict[_GapKey, set[Proof]] = field(default_factory=lambda: defaultdict(set))
    plain_gaps: list[LineageGap] = field(default_factory=list)
    declared: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    resolved: dict[tuple[DatasetId, DatasetId], set[Proof]] = field(default_factory=lambda: defaultdict(set))
    ambiguous: set[str] = field(default_factory=set)

    def edge(
        self,
        source: ColumnId,
        target: ColumnId,
        subtype: Subtype,
        masking: bool,
        proof: Proof,
        expression: str | None = None,
    ) -> None:
        """A column goes into, or decides about, another one."""
        self._edges[source, target, subtype, masking, expression].add(proof)

    def member(self, source: ColumnId, target: DatasetId, subtype: Subtype, proof: Proof) -> None:
        """A column decides about a whole dataset."""
        self._members[source, target, subtype].add(proof)

    def job(
        self,
        job: str,
        sql: str | None,
        inputs: frozenset[DatasetId],
        output: DatasetId,
        proof: Proof,
        statement: str | None = None,
        views: _Pairs = (),
        filled: _Pairs = (),
    ) -> None:
        """A job writes a dataset. sql: the statement, if running it again writes it anew. views, filled: as of
        `JobRef`.
        """
        self._jobs[job, sql, statement, tuple(sorted(inputs)), output, views, filled].add(proof)

    def gap(self, dataset: DatasetId | None, kind: LineageGapKind, reason: str, proof: Proof, closes: str) -> None:
        """Something is not complete."""
        self._gaps[dataset, kind, reason, closes].add(proof)

    def dataset(self, table: str, proof: Proof, *, written: bool = False) -> DatasetId:
        """The dataset of a table in SQL; a name that nothing explains is kept as such, with a gap.

        A read of a table's branch, tag or metadata is one of the table, and so is a write to a branch.
        """
        if written:
            found = self.identities.of_rows(table, written=True)
        else:
            part = self.identities.part_of(table)
            found = self.identities.of_table(part.table if part is not None else table)
        if found is not None:
            return found
        made = DatasetId(namespace=UNRESOLVED, name=table.replace("`", ""))
        reason, closes = self._unexplained(table)
        self.gap(made, LineageGapKind.UNRESOLVED_NAME, reason, proof, closes)
        return made

    def _unexplained(self, table: str) -> tuple[str, str]:
        """Why nobody knows which dataset a table is, and what would tell it."""
        if not is_global_view(table):
            reason = f"no catalog, symlink or path explains the table name {table}"
            made = "or, if a program creates it as a view, add its CREATE VIEW … AS SELECT to the SQL"
            return reason, f"declare the table's catalog in the estate file; {made}"
        if table in self.ambiguous:
            reason = (
                f"several statements create the global temporary view {table}, and lineage does not show which one "
                "was read"
            )
            return reason, "give each view a different name, or create each view in the text that reads it"
        reason = f"{table} is a global temporary view, which no catalog contains, and no known SQL creates it"
        return reason, "add the statement that creates the view to the SQL (CREATE GLOBAL TEMPORARY VIEW … AS …)"

    def known_tables(self) -> dict[str, list[tuple[str, str]]]:
        """Every known name of a table with its columns."""
        known: dict[str, list[tuple[str, str]]] = dict(self.declared)
        for alias, dataset in self.identities.aliases.items():
            if dataset in self.columns:
                known[alias] = self._columns(dataset)
            elif any(parts_of(alias)):  # a table of its own, and nobody may take another one's columns for its
                known.setdefault(alias, [])
        kinds = [*(one.name.value for one in table_formats() if one.columns_by_path), "path"]
        for dataset in self.columns:
            if dataset.namespace == "file":
                for kind in kinds:
                    known[f"{kind}.`{dataset.name}`"] = self._columns(dataset)
        return known

    def _columns(self, dataset: DatasetId) -> list[tuple[str, str]]:
        columns = [(c.name, c.type) for c in self.columns[dataset]]
        return Loose(columns) if dataset in self.loose else columns

    def linked(self, *, by_rows: bool) -> dict[tuple[DatasetId, DatasetId], set[Proof]]:
        """Pairs of datasets of which something is told to go from one to the other, and who tells it.

        by_rows: also where it is told only that a column decides about rows. A resolved statement tells all there is,
        even when that is nothing (`SELECT count(*)`).
        """
        found: dict[tuple[DatasetId, DatasetId], set[Proof]] = defaultdict(set)
        for (source, target, *_rest), proofs in self._edges.items():
            found[source.dataset, target.dataset] |= proofs
        for (column, dataset, _), proofs in self._members.items() if by_rows else ():
            found[column.dataset, dataset] |= proofs
        for pair, proofs in self.resolved.items():
            found[pair] |= proofs
        return found

    def reached(self) -> dict[DatasetId, set[str]]:
        """Columns that something is told to go into, or to decide about, in small letters, by dataset."""
        found: dict[DatasetId, set[str]] = defaultdict(set)
        for _, target, *_rest in self._edges:
            found[target.dataset].add(target.column.lower())
        return found

    def taken(self) -> dict[DatasetId, set[ColumnId]]:
        """Columns that something is told to go from, by the dataset that it goes to; names in small letters."""
        found: dict[DatasetId, set[ColumnId]] = defaultdict(set)
        for source, target, *_rest in self._edges:
            found[target.dataset].add(ColumnId(dataset=source.dataset, column=source.column.lower()))
        return found

    def made_of(self) -> dict[ColumnId, set[ColumnId]]:
        """Columns whose values are told to go into a column, by this column; names in small letters."""
        found: dict[ColumnId, set[ColumnId]] = defaultdict(set)
        for source, target, subtype, *_rest in self._edges:
            if subtype not in DIRECT_SUBTYPES:
                continue
            into = ColumnId(dataset=target.dataset, column=target.column.lower())
            found[into].add(ColumnId(dataset=source.dataset, column=source.column.lower()))
        return found

    def grouped(self) -> set[DatasetId]:
        """Datasets whose rows stand for groups of rows of others."""
        return {target for _, target, subtype in self._members if subtype is Subtype.GROUP_BY}

    def column(self, column: ColumnId) -> ColumnId:
        """The column that events mean by a name: `who` by `who.mail` or `who[0]`, if the schema has only the first."""
        within = _WITHIN_COLUMN.search(column.column) is not None
        names = {c.name.lower() for c in self.columns.get(column.dataset, ())} if within else set()
        name = column.column
        while names and name.lower() not in names:
            ends = [found.start() for found in _WITHIN_COLUMN.finditer(name)]
            if not ends:
                return column
            name = name[: ends[-1]]
        return column if name == column.column else ColumnId(dataset=column.dataset, column=name)

    def edges(self) -> Iterator[Edge]:
        for (source, target, subtype, masking, expression), proofs in self._edges.items():
            yield Edge(
                source=source,
                target=target,
                type=EdgeType.DIRECT if subtype in DIRECT_SUBTYPES else EdgeType.INDIRECT,
                subtype=subtype,
                masking=masking,
                expression=expression,
                evidence=tuple(p.evidence() for p in united(proofs)),
            )

    def memberships(self) -> Iterator[Membership]:
        for (source, target, subtype), proofs in self._members.items():
            evidence = tuple(p.evidence() for p in united(proofs))
            yield Membership(source=source, target=target, subtype=subtype, evidence=evidence)

    def jobs(self) -> Iterator[JobRef]:
        for (job, sql, statement, inputs, output, views, filled), proofs in self._jobs.items():
            for proof in united(proofs):
                at = iso(proof.last[0])
                yield JobRef(
                    job=job,
                    sql=sql,
                    inputs=inputs,
                    output=output,
                    at=at,
                    where=proof.where,
                    statement=statement,
                    views=views,
                    filled=filled,
                )

    def without_text(self) -> Iterator[tuple[DatasetId, tuple[DatasetId, ...]]]:
        """Output and inputs of the jobs whose statement nobody tells."""
        yield from ((output, inputs) for _, _, text, inputs, output, *_ in self._jobs if text is None)

    def gaps(self) -> Iterator[LineageGap]:
        yield from self.plain_gaps
        for (dataset, kind, reason, closes), proofs in self._gaps.items():
            found = united(proofs)
            number = sum(max(1, p.runs) for p in found)
            seen = min(p.first for p in found)[1]
            if number > 1:
                seen += f" and {number - 1} more, the last one {max(p.last for p in found)[1]}"
            yield LineageGap(dataset=dataset, kind=kind, reason=reason, evidence=seen, closes=closes)
