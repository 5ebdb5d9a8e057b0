"""Where rows of persons may have gone without lineage telling what of them: what the byte scan cannot settle.

It looks for keys and identifiers. A name, a birth date, a salted hash are none of what it looks for, so that a table in
which it finds nothing can still be made of nothing but persons.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from pii_tracer.lineage.dataset_names import VIEW
from pii_tracer.lineage.graph.edges import EdgeType, Subtype
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import Carries, DatasetId
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Gap
from planners.locate.key_location import Carriage
from planners.locate.subject_survey import Survey, World
from planners.step_drafts import slug


def unseen(found: Survey, graph: LineageGraph) -> dict[DatasetId, DatasetId | None]:
    """Datasets into which persons' rows may have gone unseen, and what brought them; None where the gap is their own.

    Those are the datasets with a gap of lineage and an input that holds persons, or that is one of them; and what
    takes values of one of them otherwise than added up.
    """
    open_ = {gap.dataset for gap in graph.gaps if gap.same_as is None} & found.carriages.keys()
    persons = {dataset for dataset, carriage in found.carriages.items() if carriage.carries is not Carries.NONE}
    dark: dict[DatasetId, DatasetId | None] = {}
    grows = bool(open_)
    while grows:  # upstream comes first, so that only circles take another round
        before = len(dark)
        for dataset, carriage in found.carriages.items():
            if dataset in dark or dataset == found.source:
                continue
            sources = set(graph.sources_of(dataset)) - {dataset}
            if dataset in open_:
                if sources & (persons | dark.keys()):
                    dark[dataset] = None
            elif carriage.carries is Carries.NONE and sources & dark.keys() and not _ended(carriage):
                origin = _taken_from(graph, dataset, dark)
                if origin is not None:
                    dark[dataset] = origin
        grows = len(dark) > before
    return dark


def _ended(carriage: Carriage) -> bool:
    """Whether a declared anonymiser ends the persons there, on the estate owner's word."""
    return any(column.ended for column in carriage.columns.values())


def _taken_from(graph: LineageGraph, dataset: DatasetId, dark: Collection[DatasetId]) -> DatasetId | None:
    """The first of these datasets whose values go into a dataset otherwise than added up."""
    taken = (
        edge.source.dataset
        for edge in graph.edges_into(dataset)
        if edge.type is EdgeType.DIRECT and edge.subtype is not Subtype.AGGREGATION
    )
    return min((source for source in taken if source in dark and source != dataset), default=None)


def said(found: Survey, dark: Mapping[DatasetId, DatasetId | None]) -> Survey:
    """The survey without the claim that such a dataset holds nothing of the persons."""
    reason = "lineage does not show which values of the persons' rows were copied here"
    carriages = {
        dataset: replace(carriage, reason=reason) if dataset in dark and carriage.carries is Carries.NONE else carriage
        for dataset, carriage in found.carriages.items()
    }
    return replace(found, carriages=carriages)


def made_of_unseen(found: Survey, world: World, dark: Mapping[DatasetId, DatasetId | None]) -> list[Gap]:
    """A gap for what is made of a dataset with a gap, and for tables that hold such a dataset's files."""
    made = {dataset: origin for dataset, origin in dark.items() if origin is not None and dataset.namespace != VIEW}
    by_location = {state.location: state.dataset for state in world.inventory.tables}
    for state in world.inventory.tables:
        origins = [by_location.get(location or "") for location in (state.clone_of, state.same_files_as)]
        for clone_of in (*origins, *state.partitions_of):
            if clone_of is None or clone_of not in dark or state.dataset in found.carriages:
                continue
            if found.carriages[clone_of].carries is Carries.NONE:
                made[state.dataset] = clone_of
    return [
        Gap(
            id=f"gap-lineage-{slug(dataset.name)}-unseen",
            dataset=dataset,
            kind=GapKind.LINEAGE,
            reason=(
                f"it is made from {world.title_of(origin)}, and lineage does not show which values of the persons' "
                "rows were copied there. The scan finds keys and identifiers, but not all other values of a row"
            ),
            evidence=f"the gap of {world.title_of(_first(origin, dark))}",
        )
        for dataset, origin in made.items()
    ]


def _first(dataset: DatasetId, dark: Mapping[DatasetId, DatasetId | None]) -> DatasetId:
    """Where the way back from an unseen dataset begins: at the one that has a gap of its own."""
    while (before := dark[dataset]) is not None:
        dataset = before
    return dataset
