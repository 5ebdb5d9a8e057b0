"""Gaps that planning would have for anybody: by inventory, lineage, and the plan for an invented person."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from pii_tracer.app.estate_readiness.canary_search import Followed
from pii_tracer.app.estate_readiness.estate_facts import Named
from pii_tracer.app.estate_readiness.invented_person_plan import AnybodysPlan
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.inventory import Inventory
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import Carries, DatasetId
from pii_tracer.model.gap_kinds import HDFS_PLACES, GapKind
from pii_tracer.model.plan import Gap
from pii_tracer.readiness.findings import Finding, FindingKind, Level
from planners.copies.match_key_resolution import Keys
from planners.gaps.copy_gaps import inventory_gaps, missing, open_lineage
from planners.gaps.table_descriptions import is_of_catalog
from planners.locate.subject_survey import Survey, World

SEARCH_SETTLES = frozenset(
    {GapKind.UNKNOWN_FILE, GapKind.FOLDER_AROUND_TABLES, GapKind.MIXED_COLUMNS, GapKind.STAGED_SNAPSHOT}
)
"""Kinds that are no gap of a plan whose search finds that the person is not there."""

_OF_PLACES = frozenset({*HDFS_PLACES, GapKind.OBJECT_PLACE})

_TOLD_ABOVE = frozenset({*SEARCH_SETTLES, GapKind.NOT_FOUND})
"""Kinds that are told from the inventory and lineage; the plan for anybody has them, too."""


def standing_gaps(
    estate: Estate,
    inventory: Inventory,
    graph: LineageGraph,
    followed: Iterable[Followed],
    plans: Iterable[AnybodysPlan],
    paths: EstatePaths,
    named: Named,
) -> tuple[Finding, ...]:
    """The findings, each once. Nobody's bytes were searched for them, so that none is settled by evidence."""
    world = World(graph=graph, inventory=inventory, evidence={}, is_dev=paths.is_dev)
    tables = {state.dataset: state for state in inventory.tables}
    found: dict[str, Finding] = {}
    plans, unread = tuple(plans), _unsearched(inventory)
    asked = {state.location for state in inventory.tables}  # by the plan for anybody
    told_of = {gap.evidence for made in plans for gap in made.gaps if gap.kind in _OF_PLACES}

    def title(dataset: DatasetId | None, evidence: str) -> str:
        if dataset is None:
            return evidence
        if dataset in tables:
            return named.of(tables[dataset])
        # of a table that is gone, the name that lineage knows
        return max(_aliases(graph, dataset), key=lambda name: (name.count("."), name), default=dataset.name)

    def owner(dataset: DatasetId | None, evidence: str) -> str:
        if dataset in tables:
            return named.owner(tables[dataset])
        return named.rules.owner_of(dataset.name if dataset else evidence, *_aliases(graph, dataset))

    def of(gap: Gap, level: Level) -> Finding:
        todo = "see docs/gaps.md for what closes it"
        if level is Level.UNKNOWN:
            todo = "make a plan for a person: its search reads the files there"
        # of many tables of a catalog: a list as it is now would make a new finding of each new table
        told = gap.evidence.partition(".")[0] if is_of_catalog(gap) else gap.evidence
        where = title(gap.dataset, told)
        return Finding(
            FindingKind.GAP,
            level,
            where,
            owner(gap.dataset, told),
            gap.reason,
            todo,
            detail=gap.id,
            gap=gap.kind.value,
        )

    def all_of() -> Iterator[Finding]:
        for made in plans:  # first: what stands against a plan is no warning, whatever else tells it
            for gap in made.gaps:
                if gap.kind not in _TOLD_ABOVE:
                    unknown = gap.kind in _OF_PLACES and gap.evidence in unread - asked
                    yield of(gap, Level.UNKNOWN if unknown else Level.BLOCKING)
        for gap in inventory_gaps(world):
            if gap.kind not in _OF_PLACES:
                yield of(gap, Level.WARNING if gap.kind in SEARCH_SETTLES else Level.BLOCKING)
            elif gap.evidence not in told_of:
                yield of(gap, Level.UNKNOWN if gap.evidence in unread else Level.BLOCKING)
        for one in followed:
            mine = Survey(one.subject, one.source, one.carriages, Keys(one.subject, {}, {}), {})
            yield from (of(gap, Level.BLOCKING) for gap in missing(mine, world))
            for gap in open_lineage(mine, world, ()):
                # the search of a plan settles it where it can read the table
                yield of(gap, Level.WARNING if gap.dataset in tables else Level.BLOCKING)
            for dataset, carriage in one.carriages.items():
                if carriage.carries is Carries.UNKNOWN and dataset in tables:
                    where, whose = title(dataset, ""), owner(dataset, "")
                    kind, name = FindingKind.NO_WAY_TO_ROWS, one.subject.name
                    text = f"persons of `{name}` come here: {carriage.reason}"
                    yield Finding(kind, Level.BLOCKING, where, whose, text, carriage.closes, name)

    for finding in all_of():
        plain = {name: named.mask(getattr(finding, name)) for name in ("where", "text", "todo", "detail")}
        clean = replace(finding, **plain)  # type: ignore[arg-type]
        found.setdefault(clean.id, clean)
    return tuple(found.values())


def _unsearched(inventory: Inventory) -> frozenset[str]:
    """Places in stores of which only the search of a plan tells whether a step erases the persons there. No step writes
    what is encrypted or erasure-coded, or a table that has a reason against it."""
    in_hdfs = (str(p.location) for p in inventory.hdfs if not (p.untreated or p.encrypted or p.striped))
    objects = (str(p.location) for p in inventory.object_places if not p.untreated)
    return frozenset(chain(in_hdfs, objects))


def _aliases(graph: LineageGraph, dataset: DatasetId | None) -> tuple[str, ...]:
    return graph.aliases_of(dataset) if dataset is not None else ()
