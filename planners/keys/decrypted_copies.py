"""What jobs make out of encrypted datasets: what they opened into another one stays readable without the key.

Whether a job copies ciphertext or opens it, lineage does not tell. Such a dataset is erased where its rows are found by
a key that the same statement writes, or where its columns are declared to be encrypted themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from pii_tracer.config.keys import Encrypted, KeyTable
from pii_tracer.lake.inventory import TableState
from pii_tracer.lineage.dataset_names import VIEW
from pii_tracer.lineage.graph.edges import JobRef, Subtype
from pii_tracer.model.datasets import DatasetId, Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Gap
from planners.copies.classification import Recognised
from planners.keys.key_table_lineage import (
    cells_of,
    edges_below,
    family_of,
    led_to,
    place_of,
    state_of,
)
from planners.locate.sql.statement_rows import Statement
from planners.locate.subject_survey import World
from planners.step_drafts import CopyDraft, slug


@dataclass(frozen=True)
class _Opened:
    """A dataset into which values of encrypted columns go. origins: the encrypted ones; columns: where they go."""

    dataset: DatasetId
    origins: frozenset[DatasetId]
    columns: frozenset[str]


def with_opened(found: Recognised, world: World, tables: Sequence[KeyTable]) -> Recognised:
    """A gap for every dataset that may hold opened cells in rows that nothing here erases. tables: of one subject.

    A rebuild of such a dataset would read the cells before their key is gone: it is blocked.
    """
    opened = _opened(found, world, tables)
    sources = {d for one in opened for d in (one.dataset, *one.origins)}
    left = [one for one in opened if not _erased(one, found.items, world, sources)]
    if not left:
        return found
    datasets = {one.dataset for one in left}
    return replace(
        found,
        items=tuple(_not_rebuilt(i) if i.copy.dataset in datasets else i for i in found.items),
        gaps=(*found.gaps, *(_gap(one, world) for one in left)),
        examined=tuple(e for e in found.examined if e.dataset not in datasets),
    )


def _opened(found: Recognised, world: World, tables: Sequence[KeyTable]) -> list[_Opened]:
    states = world.inventory.tables
    followed = {i.copy.location for i in found.items if i.copy.match is not None}
    cells = frozenset(cell for table in tables for cell in cells_of(table, states))
    origins: dict[DatasetId, set[DatasetId]] = defaultdict(set)
    columns: dict[DatasetId, set[str]] = defaultdict(set)
    for entry in (entry for table in tables for entry in table.encrypts):
        state = state_of(entry.dataset, states)
        # where the person's key stands beside the cells, lineage follows it from there
        for one in family_of(state, states) if state and state.location not in followed else ():
            for dataset, column in _reached(entry, one, world) - cells:
                if dataset.namespace != VIEW and dataset != one.dataset:
                    origins[dataset].add(one.dataset)
                    columns[dataset].add(column)
    return [_Opened(d, frozenset(origins[d]), frozenset(columns[d])) for d in sorted(origins)]


def _reached(entry: Encrypted, state: TableState, world: World) -> set[tuple[DatasetId, str]]:
    """Columns into which values of encrypted columns go: row by row, or added up where the key's name stands beside.

    Columns that the dataset no longer has count as encrypted: what they were called before is not known.
    """
    edges = edges_below(world.graph, [state.dataset])
    plain = {c.name.lower() for c in state.columns} - {name.lower() for name in entry.encrypted}
    key = (state.dataset, entry.key_column.lower())
    sources = {place_of(e.source) for e in edges}
    start = frozenset(s for s in sources if s[0] == state.dataset and s[1] not in plain and s != key)
    by_row = [e for e in edges if e.subtype is not Subtype.AGGREGATION]
    named = {dataset for dataset, _ in led_to(by_row, frozenset({key}))}
    return set(led_to(by_row, start)) | {c for c in led_to(edges, start) if c[0] in named}


def _erased(one: _Opened, items: Sequence[CopyDraft], world: World, sources: Collection[DatasetId]) -> bool:
    """Whether its rows are deleted by a key that each statement writes which brings values out of encrypted columns."""
    item = next((i for i in items if i.copy.dataset == one.dataset and i.copy.match is not None), None)
    jobs = [job for job in world.graph.jobs_into(one.dataset) if not set(sources).isdisjoint(job.inputs)]
    matched = {i.copy.dataset for i in items if i.copy.match is not None}
    return item is not None and bool(jobs) and all(_keyed(item, job, world, matched) for job in jobs)


def _keyed(item: CopyDraft, job: JobRef, world: World, matched: Collection[DatasetId]) -> bool:
    statement = Statement(job.statement or "")
    if not job.statement or not statement.known or statement.unites or statement.joins_outer:
        return False
    terms = {t.column.lower() for t in item.copy.match.terms} if item.copy.match else set()
    givers = set(job.inputs) & set(matched)
    return any(
        e.target.column.lower() in terms
        and e.source.dataset in givers
        and (not e.evidence or job.job in {told.job for told in e.evidence})
        for e in world.graph.edges_into(item.copy.dataset)
    )


def _not_rebuilt(item: CopyDraft) -> CopyDraft:
    if item.copy.strategy is not Strategy.REBUILD:
        return item
    return replace(item, rebuild_sql=None, copy=item.copy.model_copy(update={"strategy": Strategy.BLOCKED}))


def _gap(one: _Opened, world: World) -> Gap:
    name = world.title_of(one.dataset)
    origins = ", ".join(sorted(world.title_of(d) for d in one.origins))
    jobs = sorted({job.job for job in world.graph.jobs_into(one.dataset)})
    return Gap(
        id=f"gap-key_opened-{slug(name)}",
        dataset=one.dataset,
        kind=GapKind.KEY_OPENED,
        reason=(
            f"it is made from {origins}, which is encrypted, and {', '.join(sorted(one.columns))} may contain "
            "decrypted values, which remain readable when the key is destroyed. If these columns are ciphertext, "
            "declare the dataset under `encrypts` of the key table. Otherwise let its job write the person's key, or "
            "drop the dataset, then plan again. If somebody erased the person in it and in its stored copies, waive "
            "this gap"
        ),
        evidence="; ".join(jobs) if jobs else "lineage",
    )
