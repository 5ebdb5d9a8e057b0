"""Tables of aggregates that no step writes again, and that their owners compute again after the erasure.

Such a table holds no key and no identifier, the byte search finds nobody in its files, and all that it is computed from
is without the persons by then (`planners.gaps.recomputed_sources`). A waiver of its gap with a task gives it a strategy
of its own. Its steps: when its sources are erased and verified, the run notes which files are there. Then the owner
does the task. Then the verification shows that no file is left that is older than that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.actions import SOURCES, Action
from pii_tracer.model.datasets import PLAIN, Carries, CopyKind, DatasetId, Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Gap
from planners.copies.scan_evidence import Evidence
from planners.gaps.recomputed_sources import NO_INPUT, against, free_of_persons, shown, sources
from planners.locate.sql.rebuild_statement import overwrites
from planners.locate.subject_survey import World
from planners.step_drafts import CopyDraft, Draft, verification

_OFFER = (
    ". Or ask the owner to recompute it after the erasure (docs/gaps.md#computed-again-by-its-owner). Then waive "
    "this gap with a task: {who: NAME, why: REASON, until: DATE, of: DIGEST, task: {owner: TEAM, act: run the job "
    "of %s again}}"
)
_KEEPS = "some of its jobs have no recorded statement that overwrites the whole table: old rows may remain in it"
_UNPLANNED = "this plan erases none of its sources"
_NO_OFFER = ". A recomputation by its owner after the erasure is not possible: %s"


@dataclass(frozen=True)
class ByOwners:
    """Tables that their owners may compute again, by the id of their gap. sources: datasets that each is computed from;
    against: of those that would hold the persons again, why. names: the tables' names. shown: digests of the jobs."""

    sources: Mapping[str, frozenset[DatasetId]]
    against: Mapping[str, str]
    names: Mapping[str, str]
    shown: Mapping[str, str]

    def told(self, gap: Gap) -> Gap:
        """The gap of such a table, with the waiver by which its owner computes it again, or why no waiver does. A
        waiver is for the jobs and sources that its author saw."""
        if gap.id not in self.names:
            return gap
        why = self.against.get(gap.id)
        reason = gap.reason + (_NO_OFFER % why if why else _OFFER % self.names[gap.id])
        return gap.model_copy(update={"reason": reason, "seen": f"{gap.seen or reason}; {self.shown[gap.id]}"})


def by_owners(items: Sequence[CopyDraft], gaps: Sequence[Gap], world: World) -> ByOwners:
    """What owners may compute again. gaps: all of the plan."""
    mine = {_gap_id(item): item.copy for item in items if item.recomputable and item.copy.strategy is Strategy.BLOCKED}
    others = [gap for gap in gaps if gap.id not in mine]
    above = {name: sources(copy.dataset, world.graph) for name, copy in mine.items()}
    doubted = {gap.dataset: f"{gap.id} also concerns this copy" for gap in others if gap.dataset}
    worked = {item.copy.dataset for item in items if item.copy.kind not in NO_INPUT and item.drafts}
    for name, copy in mine.items():
        if not overwrites(world.graph.jobs_into(copy.dataset)):
            doubted.setdefault(copy.dataset, _KEEPS)
        elif above[name] and above[name].isdisjoint(worked):
            doubted.setdefault(copy.dataset, _UNPLANNED)
    asked = {copy.dataset for copy in mine.values()} - doubted.keys()
    wrong = against(asked, free_of_persons(items, others), world.graph, world.title_of) | doubted
    return ByOwners(
        above,
        {name: wrong[copy.dataset] for name, copy in mine.items() if copy.dataset in wrong},
        {name: copy.table or copy.dataset.name for name, copy in mine.items()},
        {name: shown(copy.dataset, above[name], world.graph) for name, copy in mine.items()},
    )


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


def is_recomputed_by(item: CopyDraft, gaps: Collection[str]) -> bool:
    """Whether the task of some gaps (ids) is to compute this copy again."""
    return item.copy.strategy is Strategy.RECOMPUTED and _gap_id(item) in gaps


def looked_at_after(item: CopyDraft, task: str) -> CopyDraft:
    """The copy, verified when a task is done."""
    *before, look = item.drafts
    return replace(item, drafts=(*before, replace(look, after=(*look.after, task))))


def recomputed(
    items: Sequence[CopyDraft], gaps: Iterable[Gap], ways: ByOwners, graph: LineageGraph
) -> tuple[CopyDraft, ...]:
    """The copies, where those that owners compute again have their strategy and their steps.

    What is computed from such a copy waits for its verification. One that is computed from another for which no task is
    given stays blocked: that one holds the persons still.
    """
    tasks = {gap.id for gap in gaps if gap.task and gap.kind == GapKind.CANNOT_BE_PROVED}
    could = {name: item for item in items if (name := _gap_id(item)) in ways.names and name not in ways.against}
    asked = {name for name in could if name in tasks}
    while True:
        stays = {could[name].copy.dataset for name in could.keys() - asked}
        if not (open_ := {name for name in asked if ways.sources[name] & stays}):
            break
        asked -= open_
    found = tuple(_with_steps(item) if _gap_id(item) in asked else item for item in items)
    again = {item.copy.dataset: item for item in found if item.copy.strategy is Strategy.RECOMPUTED}
    return tuple(_ordered(item, found, again, graph) for item in found)


def _gap_id(item: CopyDraft) -> str:
    return f"gap-no_way-{item.copy.id.removeprefix('c-')}"


def _with_steps(item: CopyDraft) -> CopyDraft:
    reason = f"{item.copy.reason}; its owner recomputes it after the erasure"
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
        verification="the journal lists each existing file",
        reason="all its sources are erased, so the recomputation must replace every file that exists now",
    )
    look = replace(
        verification(item, (note,)),
        hazards=("F4", "F9"),
        verification=(
            "none of the listed files exists any more, and the byte search finds none of the persons; row counts are "
            "not compared"
        ),
    )
    return replace(item, drafts=(note, look))


def _ordered(
    item: CopyDraft, items: Sequence[CopyDraft], again: Mapping[DatasetId, CopyDraft], graph: LineageGraph
) -> CopyDraft:
    """Sources first: of a copy that is computed again all of them, of one that a step rebuilds those computed again."""
    if item.copy.strategy not in (Strategy.RECOMPUTED, Strategy.REBUILD) or not item.drafts or not again:
        return item
    above = sources(item.copy.dataset, graph)
    if item.copy.strategy is Strategy.REBUILD:
        inputs = [again[dataset] for dataset in sorted(above & again.keys())]
    else:
        inputs = [i for i in items if i.copy.dataset in above and i.copy.kind not in NO_INPUT and i.drafts]
    first, *rest = item.drafts
    if item.copy.strategy is Strategy.RECOMPUTED:
        first = replace(first, parameters={**first.parameters, SOURCES: sorted(i.copy.id for i in inputs)})
    after = {*first.after, *(i.drafts[-1].id for i in inputs)}
    return replace(item, drafts=(replace(first, after=tuple(sorted(after))), *rest))
