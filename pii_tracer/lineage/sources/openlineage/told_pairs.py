"""Which datasets are told to go into which others, and by whom.

What the events of one job say explains that job. It explains no other job that reads and writes the same: that one may
put other columns there. SQL of files, of logs and of catalogs stands for any job: the owner gives it for that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from pii_tracer.lineage.dataset_names import VIEW
from pii_tracer.lineage.sources.dataset_facets import Parent
from pii_tracer.lineage.sources.evidence import Proof
from pii_tracer.lineage.sources.fact_ledger import Ledger
from pii_tracer.lineage.sources.reached import reached
from pii_tracer.model.datasets import DatasetId

Kin = frozenset[str]
"""A job, and those whose events explain it."""


class ToldPairs:
    """Pairs of datasets of which something goes from one to the other. by_rows: as of `Ledger.linked`."""

    def __init__(self, ledger: Ledger, jobs: frozenset[str], *, by_rows: bool) -> None:
        self._into: dict[DatasetId, dict[DatasetId, set[str]]] = defaultdict(lambda: defaultdict(set))
        for (source, target), proofs in ledger.linked(by_rows=by_rows).items():
            self._into[target][source].update(_teller(proof, jobs) for proof in proofs)
        self._known: dict[tuple[DatasetId, Kin], frozenset[DatasetId]] = {}

    def into(self, output: DatasetId, kin: Kin) -> frozenset[DatasetId]:
        """What a dataset is made of, also by way of views: their queries are read as tables are."""
        found = self._known.get((output, kin))
        if found is None:
            waiting, seen = [output], {output}
            sources: set[DatasetId] = set()
            while waiting:
                fresh = {
                    d for d, tellers in self._of(waiting.pop()).items() if "" in tellers or tellers & kin
                } - sources
                sources |= fresh
                behind = {d for d in fresh if d.namespace == VIEW} - seen
                seen |= behind
                waiting += behind
            found = self._known[output, kin] = frozenset(sources)
        return found

    def _of(self, target: DatasetId) -> Mapping[DatasetId, set[str]]:
        return self._into.get(target, {})


def _teller(proof: Proof, jobs: frozenset[str]) -> str:
    """The job whose events say so; an empty name for what stands for any job."""
    of_events = proof.source == "openlineage" or (proof.source == "sql" and proof.runs and proof.job in jobs)
    return proof.job if of_events else ""


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
