"""What a table of aggregates is computed from, and why its owner's word that it was computed again would prove nothing.

Computed from what still holds the persons, it would count them again. So every source, over any number of datasets, has
to be erased and verified by the plan. What no step looks at, and what nobody knows, counts as holding them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence

from pii_tracer.lineage.dataset_names import VIEW
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import CopyKind, DatasetId, Strategy
from pii_tracer.model.plan import STAYS, Gap
from planners.step_drafts import CopyDraft

NO_INPUT = frozenset({CopyKind.OBJECT_VERSION, CopyKind.REPLICA, CopyKind.BACKUP})
"""Copies of a dataset that no job reads under its name."""
_SHOWN = 3


def sources(dataset: DatasetId, graph: LineageGraph) -> frozenset[DatasetId]:
    """All that a dataset is made from, over any number of datasets; itself where it is made from itself."""
    found, todo = set[DatasetId](), [dataset]
    while todo:
        new = _inputs(todo.pop(), graph) - found
        found |= new
        todo += new
    return frozenset(found)


def _inputs(dataset: DatasetId, graph: LineageGraph) -> set[DatasetId]:
    """What it is directly made from, itself included where a job or a column says so."""
    return {
        *(read for job in graph.jobs_into(dataset) for read in job.inputs),
        *(edge.source.dataset for edge in graph.edges_into(dataset)),
        *(member.source.dataset for member in graph.memberships_into(dataset)),
    }


def against(
    asked: Collection[DatasetId], free: Collection[DatasetId], graph: LineageGraph, title: Callable[[DatasetId], str]
) -> dict[DatasetId, str]:
    """Why some of the asked tables cannot be computed again without the persons, in words for people.

    free: datasets that are without the persons by then. An asked table is, too, where nothing is against it.
    """
    above = {dataset: sources(dataset, graph) for dataset in asked}
    wrong: dict[DatasetId, str] = {}
    while True:
        good = {*free, *(above.keys() - wrong.keys())}
        more = {
            dataset: why
            for dataset, found in above.items()
            if dataset not in wrong and (why := _against(dataset, found, good, graph, title))
        }
        if not more:
            return wrong
        wrong |= more


def _against(
    dataset: DatasetId,
    found: Collection[DatasetId],
    good: Collection[DatasetId],
    graph: LineageGraph,
    title: Callable[[DatasetId], str],
) -> str | None:
    if not found:
        return "lineage does not show its sources"
    if dataset in found:
        return "it is computed from itself, so its old rows would be copied into the new ones"
    told = {*found, dataset}
    if any(gap.dataset is None or {gap.dataset, gap.same_as} & told for gap in graph.gaps):
        return "lineage is not complete, so it may have unknown sources"
    held = sorted(title(one) for one in found if one not in good and not _shows(one, graph))
    if held:
        more = f" and {len(held) - _SHOWN} more" if len(held) > _SHOWN else ""
        return f"it is computed from {', '.join(held[:_SHOWN])}{more}, which no step verifies before the job runs"
    return None


def _shows(dataset: DatasetId, graph: LineageGraph) -> bool:
    """Whether it is a view over known datasets: these are sources, too."""
    return dataset.namespace == VIEW and bool(_inputs(dataset, graph))


def free_of_persons(items: Sequence[CopyDraft], gaps: Iterable[Gap]) -> set[DatasetId]:
    """Datasets that are without the persons when the plan has erased them. One that a gap is about is not, waived or
    not: a waiver accepts that something is left. Nor is one that was only searched: a person may come into it before
    the job runs, and no step looks at it again."""
    inputs = [item for item in items if item.copy.kind not in NO_INPUT]
    left = {item.copy.dataset for item in inputs if not _erases(item)}
    doubted = {gap.dataset for gap in gaps if gap.dataset}
    return {item.copy.dataset for item in inputs} - left - doubted


def _erases(item: CopyDraft) -> bool:
    stays = item.copy.strategy in STAYS or item.copy.strategy is Strategy.BLOCKED
    return not stays and bool(item.drafts) and item.drafts[-1].action is Action.VERIFY_COPY


def shown(dataset: DatasetId, found: Collection[DatasetId], graph: LineageGraph) -> str:
    """Digest of the sources of a table and of all that lineage tells of the jobs between: a waiver is for these."""
    told = sorted((str(one), _told(one, graph)) for one in {dataset, *found})
    return hashlib.sha256(repr(told).encode("utf-8", "surrogateescape")).hexdigest()


def _told(dataset: DatasetId, graph: LineageGraph) -> list[str]:
    jobs = {
        repr((job.job, job.sql, job.statement, job.views, sorted(map(str, job.inputs))))
        for job in graph.jobs_into(dataset)
    }
    edges = {
        repr((str(e.source), str(e.target), e.type.value, e.subtype.value, e.masking, e.expression))
        for e in graph.edges_into(dataset)
    }
    members = {repr((str(m.source), m.subtype.value)) for m in graph.memberships_into(dataset)}
    return sorted(jobs | edges | members)
