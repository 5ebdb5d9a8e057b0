"""Arrays to facts, as far as somebody asks for them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from pii_tracer.lineage.graph.arrays import (
    HAS_SCHEMA,
    IS_NODE,
    SUBTYPES,
    Columnar,
    kind_of,
)
from pii_tracer.lineage.graph.canonical_facts import Facts, evidence_of
from pii_tracer.lineage.graph.edges import (
    Edge,
    Evidence,
    JobRef,
    LineageGap,
    Membership,
)
from pii_tracer.model.datasets import Column, ColumnId, DatasetId
from pii_tracer.model.errors import LineageError


@contextmanager
def _readable() -> Iterator[None]:
    """Texts that hold no fact mean a file that no pii-tracer wrote."""
    try:
        yield
    except ValidationError:
        raise LineageError("the lineage graph is broken", todo="harvest again") from None


class Reader:
    """Facts by the numbers of their datasets and columns. Only evidence, words, datasets, places and jobs are
    remembered.
    """

    def __init__(self, made: Columnar) -> None:
        self.made = made
        self._proof = lru_cache(maxsize=4096)(self._read_proof)
        self._word = lru_cache(maxsize=65536)(made.words.__getitem__)
        self._namespaces = list(made.namespaces)
        self.number = lru_cache(maxsize=16384)(self._find)
        self.dataset = lru_cache(maxsize=16384)(self._named)
        self.jobs = lru_cache(maxsize=4096)(self._jobs_into)

    def _named(self, number: int) -> DatasetId:
        """The dataset of a number. Who asks again gets the same one: tables of thousands are looked up by it."""
        namespace = self._namespaces[int(self.made.dataset_namespace[number])]
        return DatasetId(namespace=namespace, name=self.made.dataset_names[number])

    def _find(self, dataset: DatasetId) -> int | None:
        """The number of a dataset, or None when the graph does not know it."""
        if dataset.namespace not in self._namespaces:
            return None
        wanted = (dataset.namespace, dataset.name)
        found = bisect_left(range(len(self.made.dataset_names)), wanted, key=self._key)
        return found if found < len(self.made.dataset_names) and self._key(found) == wanted else None

    def _key(self, number: int) -> tuple[str, str]:
        return self._namespaces[int(self.made.dataset_namespace[number])], self.made.dataset_names[number]

    def is_node(self, number: int) -> bool:
        """True when the dataset takes part in lineage."""
        return bool(self.made.dataset_role[number] & IS_NODE)

    def columns_of(self, dataset: int) -> range:
        """The numbers of a dataset's columns, by name."""
        return range(int(self.made.column_start[dataset]), int(self.made.column_start[dataset + 1]))

    def owner(self, column: int) -> int:
        """The number of the dataset of a column."""
        return int(np.searchsorted(self.made.column_start, np.uint32(column), "right")) - 1

    def column_name(self, column: int) -> str:
        """The name of a column."""
        return self._word(int(self.made.column_name[column]))

    def column(self, column: int) -> ColumnId:
        """The column of a number."""
        return ColumnId(dataset=self.dataset(self.owner(column)), column=self.column_name(column))

    def columns(self, numbers: Iterable[int]) -> Iterator[ColumnId]:
        """Columns by their numbers; those of one dataset share its object."""
        wanted = np.fromiter(numbers, np.uint32)
        owners = np.searchsorted(self.made.column_start, wanted, "right") - 1
        for owner, name in zip(owners.tolist(), self.made.column_name[wanted].tolist(), strict=True):
            yield ColumnId(dataset=self.dataset(owner), column=self._word(name))

    def column_number(self, column: ColumnId) -> int | None:
        """The number of a column, or None when the graph does not know it."""
        dataset = self.number(column.dataset)
        if dataset is None:
            return None
        known = self.columns_of(dataset)
        found = bisect_left(known, column.column, key=self.column_name)
        return known[found] if found < len(known) and self.column_name(known[found]) == column.column else None

    def declared(self, dataset: int) -> tuple[Column, ...]:
        """The columns of a dataset as schemas say."""
        made, words = self.made, self.made.words
        run = range(int(made.schema_start[dataset]), int(made.schema_start[dataset + 1]))
        return tuple(
            Column(name=self.column_name(int(made.schema_column[n])), type=words[int(made.schema_type[n])]) for n in run
        )

    def names(self, dataset: int) -> tuple[str, ...]:
        """The names of a dataset's columns: the declared ones in their order, then those that lineage mentions."""
        run = slice(int(self.made.schema_start[dataset]), int(self.made.schema_start[dataset + 1]))
        declared = self.made.schema_column[run].tolist()
        known = [self._word(n) for n in self.made.column_name[declared].tolist()]
        others = set(self.columns_of(dataset)).difference(declared)
        if not others:
            return tuple(known)
        lower = {name.lower() for name in known}
        mentioned = (self.column_name(n) for n in sorted(others))
        return (*known, *(n for n in mentioned if n != "*" and n.lower() not in lower))

    def edges(self, numbers: Iterable[int]) -> tuple[Edge, ...]:
        """Edges by their numbers, in the order of these."""
        wanted = np.fromiter(numbers, np.uint32)
        made = self.made
        source = made.edge_source[wanted].tolist()
        target = (made.edge_start.searchsorted(wanted, "right") - 1).tolist()
        needed = {*source, *target}
        ids = dict(zip(needed, self.columns(needed), strict=True))
        texts = {e: made.expressions[e - 1] for e in set(made.edge_expression[wanted].tolist()) if e}
        return tuple(
            self._edge(ids[s], ids[t], kind, texts.get(text), proof)
            for s, t, kind, text, proof in zip(
                source,
                target,
                made.edge_kind[wanted].tolist(),
                made.edge_expression[wanted].tolist(),
                made.edge_evidence[wanted].tolist(),
                strict=True,
            )
        )

    def _edge(self, source: ColumnId, target: ColumnId, kind: int, text: str | None, proof: int) -> Edge:
        type_, subtype, masking = kind_of(kind)
        return Edge(
            source=source,
            target=target,
            type=type_,
            subtype=subtype,
            masking=masking,
            expression=text,
            evidence=self._proof(proof),
        )

    def edges_into(self, dataset: int) -> range:
        """The numbers of the edges into a dataset."""
        columns = self.columns_of(dataset)
        return range(int(self.made.edge_start[columns.start]), int(self.made.edge_start[columns.stop]))

    def memberships(self, dataset: int) -> tuple[Membership, ...]:
        """What decides about the rows of a dataset."""
        made, target = self.made, self.dataset(dataset)
        return tuple(
            Membership(
                source=self.column(int(made.member_source[n])),
                target=target,
                subtype=SUBTYPES[int(made.member_subtype[n])],
                evidence=self._proof(int(made.member_evidence[n])),
            )
            for n in range(int(made.member_start[dataset]), int(made.member_start[dataset + 1]))
        )

    def _jobs_into(self, dataset: int) -> tuple[JobRef, ...]:
        """The jobs that write a dataset, latest last."""
        run = range(int(self.made.job_start[dataset]), int(self.made.job_start[dataset + 1]))
        with _readable():
            return tuple(JobRef.model_validate_json(self.made.jobs[n]) for n in run)

    def gaps(self) -> tuple[LineageGap, ...]:
        """All gaps."""
        with _readable():
            return tuple(LineageGap.model_validate_json(text) for text in self.made.gaps)

    def aliases(self) -> Iterable[tuple[str, int]]:
        """Names and the numbers of their datasets."""
        return zip(self.made.aliases, self.made.alias_dataset.tolist(), strict=True)

    def told_by_both(self, edges: npt.NDArray[np.int64]) -> bool:
        """True when only events tell of some of these edges, and only SQL of others."""
        proofs = {number: self._proof(number) for number in self.made.edge_evidence[edges].tolist()}
        only = [{e.source for e in proof} for proof in proofs.values()]
        return all(any(sources <= {source} for sources in only) for source in ("openlineage", "sql"))

    def _read_proof(self, number: int) -> tuple[Evidence, ...]:
        with _readable():
            return evidence_of(self.made.evidence[number])

    def facts(self) -> Facts:
        """Everything, as `collect` would have it."""
        datasets = range(len(self.made.dataset_names))
        with_schema = np.flatnonzero(self.made.dataset_role & HAS_SCHEMA).tolist()
        return Facts(
            edges=self.edges(range(len(self.made.edge_source))),
            memberships=tuple(m for d in datasets for m in self.memberships(d)),
            jobs=tuple(j for d in datasets for j in self.jobs(d)),
            gaps=self.gaps(),
            schemas=tuple((self.dataset(d), self.declared(d)) for d in with_schema),
            names=tuple((alias, self.dataset(d)) for alias, d in self.aliases()),
        )
