"""Which datasets are told to go into which others, and by whom.

What the events of one job say explains that job. It explains no other job that reads and writes the same: that one may
put other columns there. SQL of files, of logs and of catalogs stands for any job: the owner gives it for that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from pii_tracer.lineage.dataset_names import VIEW
from pii_tracer.lineage.sources.dataset_descriptions import Parent
from pii_tracer.lineage.sources.evidence_merging import Proof
from pii_tracer.lineage.sources.fact_ledger import Ledger
from pii_tracer.lineage.sources.transitive_closure import reached
from pii_tracer.model.datasets import DatasetId

Kin = frozenset[str]
"""A job, and those whose events explain it."""


class ToldPairs:
    """Pairs of datasets of which something goes from one to the other. by_rows: as of `Ledger.linked`."""

    def __init__(self, ledger: Ledger, jobs: frozenset[str], *, by_rows: bool) -> None:
        self._into: dict[DatasetId, dict[DatasetId, set[str | None]]] = defaultdict(lambda: defaultdict(set))
        self._views: dict[DatasetId, list[DatasetId]] = defaultdict(list)
        for (source, target), proofs in ledger.linked(by_rows=by_rows).items():
            self._into[target][source].update(_teller(proof, jobs) for proof in proofs)
            if source.namespace == VIEW:
                self._views[target].append(source)
        self._known: dict[tuple[DatasetId, Kin], tuple[DatasetId, ...]] = {}

    def untold(self, inputs: Iterable[DatasetId], output: DatasetId, kin: Kin) -> frozenset[DatasetId]:
        """Those of which nothing is told to go into a dataset, also by way of views: their queries are read as tables
        are.
        """
        targets = self._with_views(output, kin)
        return frozenset(one for one in inputs if not any(self._is_told(one, target, kin) for target in targets))

    def into(self, output: DatasetId, kin: Kin) -> frozenset[DatasetId]:
        """All that a dataset is made of, also by way of views."""
        targets = self._with_views(output, kin)
        pairs = ((one, target) for target in targets for one in self._into.get(target, ()))
        return frozenset(one for one, target in pairs if self._is_told(one, target, kin))

    def _with_views(self, output: DatasetId, kin: Kin) -> tuple[DatasetId, ...]:
        """The dataset, and the views that it is made of."""
        found = self._known.get((output, kin))
        if found is None:
            waiting, seen = [output], {output: None}
            while waiting:
                target = waiting.pop()
                views = [v for v in self._views.get(target, ()) if v not in seen and self._is_told(v, target, kin)]
                seen |= dict.fromkeys(views)
                waiting += views
            found = self._known[output, kin] = tuple(seen)
        return found

    def _is_told(self, source: DatasetId, target: DatasetId, kin: Kin) -> bool:
        tellers = self._into[target].get(source, set()) if target in self._into else set()
        return None in tellers or not tellers.isdisjoint(kin)


def _teller(proof: Proof, jobs: frozenset[str]) -> str | None:
    """The job whose events say so; None for what stands for any job.

    What the events of a dataset say of it has no job, and explains none.
    """
    of_events = proof.source == "openlineage" or (proof.source == "sql" and proof.runs and proof.job in jobs)
    return proof.job if of_events else None


class Kindred:
    """The jobs whose events explain a job: its own, those of its steps, and those of what it is a step of.

    https://openlineage.io/docs/spec/facets/run-facets/parent_run
    """

    def __init__(self, parents: Iterable[Parent]) -> None:
        self._up: dict[str, set[str]] = defaultdict(set)
        self._down: dict[str, set[str]] = defaultdict(set)
        for one in parents:
            self._up[one.job].add(one.parent)
            self._down[one.parent].add(one.job)

    def of(self, job: str) -> Kin:
        """Names of jobs."""
        return frozenset({job, *reached(job, self._up), *reached(job, self._down)})
