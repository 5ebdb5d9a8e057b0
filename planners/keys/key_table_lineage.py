"""Where lineage leads from key tables and from what they encrypt: copies of the wrapped keys, and opened cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pii_tracer.config.keys import KeyTable
from pii_tracer.lake.inventory import TableState
from pii_tracer.lineage.graph.edges import Edge
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import ColumnId, DatasetId, Strategy
from pii_tracer.model.locations import names_place
from pii_tracer.model.plan import Copy
from planners.copies.declared_origins import is_stored_of
from planners.locate.edge_effects import value_edges
from planners.locate.subject_survey import World, title
from planners.step_drafts import CopyDraft

Columns = frozenset[tuple[DatasetId, str]]
"""Columns of datasets, in lower case: SQL does not tell cases apart."""


def state_of(name: str, states: Sequence[TableState]) -> TableState | None:
    """The table or folder that the estate file calls so."""
    return next((s for s in states if names_place(name, s.table, s.location, s.dataset.name)), None)


def family_of(state: TableState, states: Sequence[TableState]) -> list[TableState]:
    """A dataset with its clones and copied folders."""
    return [state, *(s for s in states if state.location in (s.clone_of, s.same_files_as))]


def edges_below(graph: LineageGraph, datasets: Iterable[DatasetId]) -> tuple[Edge, ...]:
    """The value edges into everything that comes from some datasets."""
    below = {d for dataset in datasets for d in graph.downstream(dataset)}
    return tuple(e for d in sorted(below) for e in value_edges(graph.edges_into(d)))


def led_to(edges: Iterable[Edge], start: Columns) -> Columns:
    """Columns that these edges lead to from some columns, these included."""
    ways: dict[tuple[DatasetId, str], set[tuple[DatasetId, str]]] = {}
    for edge in edges:
        ways.setdefault(place_of(edge.source), set()).add(place_of(edge.target))
    found, fresh = set(start), list(start)
    while fresh:
        more = ways.get(fresh.pop(), set()) - found
        found |= more
        fresh += more
    return frozenset(found)


def wrapped_columns(table: KeyTable, state: TableState, world: World) -> Columns:
    """Columns that jobs fill with wrapped keys out of a key table, the table's own included.

    Cells are made with the key, so that lineage leads from it into encrypted columns; no key stands in these.
    """
    cells = cells_of(table, world.inventory.tables)
    start = frozenset({(state.dataset, table.wrapped_column.lower())})
    return led_to((e for e in edges_below(world.graph, [state.dataset]) if place_of(e.target) not in cells), start)


def wrapped_in(table: KeyTable, state: TableState, world: World) -> list[list[str]]:
    """Other datasets that jobs fill with wrapped keys: name, location and name of the dataset of each."""
    datasets = {dataset for dataset, _ in wrapped_columns(table, state, world)} - {state.dataset}
    return sorted(_place(dataset, world) for dataset in datasets)


def cells_of(table: KeyTable, states: Sequence[TableState]) -> Columns:
    """The columns that a key table encrypts, those of clones and copied folders included."""
    known = [(entry, state_of(entry.dataset, states)) for entry in table.encrypts]
    return frozenset(
        (one.dataset, name.lower())
        for entry, state in known
        if state
        for one in family_of(state, states)
        for name in entry.encrypted
    )


def _place(dataset: DatasetId, world: World) -> list[str]:
    state = next((s for s in world.inventory.tables if s.dataset == dataset), None)
    return [title(state), state.location, dataset.name] if state else [dataset.name] * 3


def remembers(item: CopyDraft, table: str | None, location: str, dataset: str) -> bool:
    """Clones, copied folders, archives and vaults of a key table hold its keys, too. Branches and tags go with it."""
    if is_stored_of(item, table, location, dataset):
        return True
    return item.state is not None and location in (item.state.clone_of, item.state.same_files_as)


def has_wrapped(item: CopyDraft, places: Iterable[Sequence[str]]) -> bool:
    """Whether a copy is one of these datasets, or is stored of one. places: as `wrapped_in` tells them."""
    return any(
        item.copy.dataset.name == name or remembers(item, table, location, name) for table, location, name in places
    )


def has_key(item: CopyDraft, key: Copy) -> bool:
    """Whether another copy has the keys of a key table, too."""
    return remembers(item, key.table, key.location, key.dataset.name) or has_wrapped(item, key.facts["wrapped_in"])


def place_of(column: ColumnId) -> tuple[DatasetId, str]:
    """A column as it stands in `Columns`."""
    return column.dataset, column.column.lower()


def unreadable_after_keys(items: Sequence[CopyDraft]) -> list[tuple[str, str]]:
    """Reading is tried when the key is gone everywhere and the caches are over (a rule of `step_order`)."""
    waits = {i.copy.id: d.id for i in items for d in i.drafts if d.action is Action.KEY_AWAIT_CACHES}
    keys = [i for i in items if i.copy.id in waits]
    remembering = [
        (waits[key.copy.id], item.drafts[-1].id)
        for key in keys
        for item in items
        if item.drafts
        and item is not key
        and item.copy.strategy is not Strategy.DESTROY_KEY
        and has_key(item, key.copy)
    ]
    return remembering + [
        (item.drafts[0].id, waits[item.copy.facts["key_copy"]])
        for item in items
        if item.copy.strategy is Strategy.DESTROY_KEY and item.drafts and item.copy.facts["key_copy"] in waits
    ]
