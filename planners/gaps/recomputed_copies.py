"""Tables of aggregates that no step writes again, and that their owners compute again after the erasure.

Such a table holds no key and no identifier, and the byte search finds nobody in its files. A waiver of its gap with a
task gives it a strategy of its own. Its steps: when all that it is computed from is erased and verified, the run notes
which files are there. Then the owner does the task. Then the verification shows that none of these files is left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import PLAIN, Carries, CopyKind, DatasetId, Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import HELD, Gap
from planners.copies.scan_evidence import Evidence
from planners.step_drafts import CopyDraft, Draft, verification

_OFFER = (
    ". Or its owner computes it again after the erasure (docs/gaps.md#computed-again-by-its-owner). Then waive this gap"
    " with a task: {who: NAME, why: REASON, until: DATE, of: DIGEST, task: {owner: TEAM, act: run the job of %s again}}"
)
_NO_INPUT = frozenset({CopyKind.OBJECT_VERSION, CopyKind.REPLICA})
"""Copies of a dataset that no job reads."""


def with_offer(item: CopyDraft, seen: Evidence | None) -> CopyDraft:
    """The copy, marked where its owner may compute it again. seen: what the byte search showed of its files."""
    return replace(item, recomputable=_is_offered(item, seen))


def _is_offered(item: CopyDraft, seen: Evidence | None) -> bool:
    copy, carriage = item.copy, item.carriage
    if copy.strategy is not Strategy.BLOCKED or carriage is None or carriage.carries is not Carries.AGGREGATE:
        return False
    if copy.kind is not CopyKind.DERIVED or copy.format not in PLAIN or copy.columns:
        return False
    if carriage.found_in or carriage.lost or carriage.mixed or carriage.joined_keys:
        return False
    if seen is None or seen.found or seen.unread or seen.keyless:
        return False
    return seen.weak <= frozenset(copy.other_keys)


def offer_of(item: CopyDraft) -> str:
    """What the gap of a copy says behind its reason: the waiver by which its owner computes it again."""
    return _OFFER % (item.copy.table or item.copy.dataset.name) if item.recomputable else ""


def is_recomputed_by(item: CopyDraft, gaps: Collection[str]) -> bool:
    """Whether the task of some gaps (ids) is to compute this copy again."""
    return item.copy.strategy is Strategy.RECOMPUTED and _gap_id(item) in gaps


def looked_at_after(item: CopyDraft, task: str) -> CopyDraft:
    """The copy, verified when a task is done."""
    *before, look = item.drafts
    return replace(item, drafts=(*before, replace(look, after=(*look.after, task))))


def recomputed(items: Sequence[CopyDraft], gaps: Iterable[Gap], graph: LineageGraph) -> tuple[CopyDraft, ...]:
    """The copies, where those that owners compute again have their strategy and their steps.

    What is computed from such a copy waits for its verification. One that is computed from what a hold keeps, or from
    what nobody erases, stays blocked: computed again, it would count the persons again.
    """
    tasks = {gap.id for gap in gaps if gap.task and gap.kind == GapKind.CANNOT_BE_PROVED}
    asked = {item.copy.id: _sources(item.copy.dataset, graph) for item in items if _is_asked(item, tasks)}
    while True:
        kept = {i.copy.dataset for i in items if i.copy.strategy in HELD or _stays_blocked(i, asked)}
        open_ = {name for name, sources in asked.items() if sources & kept}
        if not open_:
            break
        asked = {name: sources for name, sources in asked.items() if name not in open_}
    found = tuple(_with_steps(item) if item.copy.id in asked else item for item in items)
    again = {item.copy.dataset: item.drafts[-1].id for item in found if item.copy.id in asked}
    return tuple(_ordered(item, found, asked.get(item.copy.id), again, graph) for item in found)


def _is_asked(item: CopyDraft, tasks: Collection[str]) -> bool:
    return item.recomputable and item.copy.strategy is Strategy.BLOCKED and _gap_id(item) in tasks


def _stays_blocked(item: CopyDraft, asked: Collection[str]) -> bool:
    return item.copy.strategy is Strategy.BLOCKED and item.copy.id not in asked


def _gap_id(item: CopyDraft) -> str:
    return f"gap-no_way-{item.copy.id.removeprefix('c-')}"


def _sources(dataset: DatasetId, graph: LineageGraph) -> frozenset[DatasetId]:
    """All that a dataset is made from, over any number of datasets, without itself."""
    found, todo = set[DatasetId](), [dataset]
    while todo:
        new = set(graph.sources_of(todo.pop())) - found
        found |= new
        todo += new
    return frozenset(found - {dataset})


def _with_steps(item: CopyDraft) -> CopyDraft:
    reason = f"{item.copy.reason}; its owner computes it again after the erasure"
    copy = item.copy.model_copy(update={"strategy": Strategy.RECOMPUTED, "reason": reason})
    item = replace(item, copy=copy)
    note = Draft(
        id=f"{copy.id}/01-note-files",
        copy=copy.id,
        action=Action.NOTE_FILES,
        executor="verify",
        parameters={"table": copy.table, "location": copy.location},
        hazards=("F9",),
        irreversible=False,
        verification="the journal has a mark of each file that is there",
        reason="all that it is computed from is erased: none of the files that are there now may stay",
    )
    look = replace(
        verification(item, (note,)),
        hazards=("F4", "F9"),
        verification="none of the noted files is left, and the byte search finds nobody; counts are not compared",
    )
    return replace(item, drafts=(note, look))


def _ordered(
    item: CopyDraft,
    items: Sequence[CopyDraft],
    sources: Collection[DatasetId] | None,
    again: dict[DatasetId, str],
    graph: LineageGraph,
) -> CopyDraft:
    """Sources first: of a copy that is computed again all of them, of one that a step rebuilds those computed again."""
    after: set[str] = set()
    if sources is not None:
        inputs = (i for i in items if i.copy.dataset in sources and i.copy.kind not in _NO_INPUT and i.drafts)
        after = {i.drafts[-1].id for i in inputs}
    elif item.copy.strategy is Strategy.REBUILD and item.drafts and again:
        after = {again[source] for source in _sources(item.copy.dataset, graph) if source in again}
    if not after:
        return item
    first = item.drafts[0]
    return replace(item, drafts=(replace(first, after=tuple(sorted({*first.after, *after}))), *item.drafts[1:]))
