"""Facts as harvested, brought into one canonical form: no repetition, no dependence on the order of reading."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from pydantic import Field, TypeAdapter

from pii_tracer.lineage.graph.arrays import SUBTYPES, kind_code
from pii_tracer.lineage.graph.edges import (
    Edge,
    Evidence,
    JobRef,
    LineageGap,
    Membership,
)
from pii_tracer.model.datasets import (
    Column,
    ColumnId,
    DatasetId,
    Frozen,
)

_EVIDENCE = TypeAdapter(tuple[Evidence, ...])


class Facts(Frozen):
    """Everything a graph is made from; lists are sorted and without repetition (make it with `collect`)."""

    edges: tuple[Edge, ...] = ()
    memberships: tuple[Membership, ...] = ()
    jobs: tuple[JobRef, ...] = ()
    gaps: tuple[LineageGap, ...] = ()
    schemas: tuple[tuple[DatasetId, tuple[Column, ...]], ...] = ()
    names: tuple[tuple[str, DatasetId], ...] = Field(default=())


def text_of(fact: JobRef | LineageGap) -> str:
    """One JSON text for equal facts."""
    return fact.model_dump_json(exclude_defaults=True)


def evidence_text(items: tuple[Evidence, ...]) -> str:
    """One JSON text for equal evidence."""
    return _EVIDENCE.dump_json(items, exclude_defaults=True).decode()


def evidence_of(text: str) -> tuple[Evidence, ...]:
    """What `evidence_text` wrote."""
    return _EVIDENCE.validate_json(text)


def edge_order(edge: Edge) -> tuple[object, ...]:
    """Edges stand by their target column, the DIRECT ones first, then by their source."""
    source, target, text = edge.source, edge.target, edge.expression
    kind = kind_code(edge.type, edge.subtype, edge.masking)
    into = (target.dataset.namespace, target.dataset.name, target.column, edge.type.value)
    out_of = (source.dataset.namespace, source.dataset.name, source.column)
    return (*into, *out_of, kind, text is not None, text or "", evidence_text(edge.evidence))


def membership_order(item: Membership) -> tuple[object, ...]:
    """Memberships stand by their target, then by their source."""
    source, target = item.source, item.target
    subtype = SUBTYPES.index(item.subtype)
    out_of = (source.dataset.namespace, source.dataset.name, source.column)
    return (target.namespace, target.name, *out_of, subtype, evidence_text(item.evidence))


def job_order(job: JobRef) -> tuple[object, ...]:
    """Jobs stand by their output, the latest last."""
    return (job.output.namespace, job.output.name, job.at or "", job.where, job.job, text_of(job))


def collect(
    edges: Iterable[Edge],
    memberships: Iterable[Membership],
    jobs: Iterable[JobRef],
    gaps: Iterable[LineageGap],
    columns: Mapping[DatasetId, tuple[Column, ...]],
    aliases: Mapping[str, DatasetId],
) -> Facts:
    """Unite equal facts (their evidence is kept side by side) and sort everything; a column gets one spelling."""
    edges, memberships = list(edges), list(memberships)
    spelled = _spelled(columns, [*(c for e in edges for c in (e.source, e.target)), *(m.source for m in memberships)])
    return Facts(
        edges=_united_edges(_edge_spelled(e, spelled) for e in edges),
        memberships=_united_memberships(
            m.model_copy(update={"source": spelled.get(m.source, m.source)}) for m in memberships
        ),
        jobs=tuple(sorted(set(jobs), key=job_order)),
        gaps=tuple(sorted(set(gaps), key=text_of)),
        schemas=tuple(sorted(columns.items(), key=lambda item: item[0])),
        names=tuple(sorted(aliases.items())),
    )


def with_edges(facts: Facts, edges: Iterable[Edge]) -> Facts:
    """The facts and some more edges, in canonical form."""
    return collect(
        edges=[*facts.edges, *edges],
        memberships=facts.memberships,
        jobs=facts.jobs,
        gaps=facts.gaps,
        columns=dict(facts.schemas),
        aliases=dict(facts.names),
    )


def _spelled(
    declared: Mapping[DatasetId, tuple[Column, ...]], mentioned: Iterable[ColumnId]
) -> dict[ColumnId, ColumnId]:
    """The one spelling of each column that is mentioned in another.

    Engines write names in their own case and Spark's know none (spark.sql.caseSensitive is false by default): two
    spellings left apart would break a walk in two. The schema's spelling holds, else the first in sorted order; names
    that a schema itself tells apart by case stay apart.
    """
    known: dict[tuple[DatasetId, str], set[str]] = defaultdict(set)
    for dataset, columns in declared.items():
        for column in columns:
            known[dataset, column.name.lower()].add(column.name)
    seen = dict.fromkeys(mentioned)
    written: dict[tuple[DatasetId, str], set[str]] = defaultdict(set)
    for one in seen:
        written[one.dataset, one.column.lower()].add(one.column)
    result = {}
    for one in seen:
        key = one.dataset, one.column.lower()
        choice = known.get(key) or {min(written[key])}
        name = one.column if one.column in choice or len(choice) > 1 else next(iter(choice))
        if name != one.column:
            result[one] = ColumnId(dataset=one.dataset, column=name)
    return result


def _edge_spelled(edge: Edge, spelled: Mapping[ColumnId, ColumnId]) -> Edge:
    if not spelled or (edge.source not in spelled and edge.target not in spelled):
        return edge
    ends = {"source": spelled.get(edge.source, edge.source), "target": spelled.get(edge.target, edge.target)}
    return edge.model_copy(update=ends)


def _evidence(items: Iterable[Evidence]) -> tuple[Evidence, ...]:
    return tuple(sorted(set(items), key=lambda e: e.model_dump_json()))


def _united_edges(edges: Iterable[Edge]) -> tuple[Edge, ...]:
    """Equal edges become one with both evidences; an edge without an expression joins one that has it."""
    groups: dict[object, list[Edge]] = defaultdict(list)
    for edge in edges:
        groups[edge.source, edge.target, edge.type, edge.subtype, edge.masking].append(edge)
    result: list[Edge] = []
    for same in groups.values():
        if len(same) == 1 and len(same[0].evidence) < 2:
            result += same
            continue
        spoken: dict[str | None, list[Evidence]] = defaultdict(list)
        for edge in same:
            spoken[edge.expression] += edge.evidence
        silent = spoken.pop(None, []) if len(spoken) > 1 else []
        result += [
            same[0].model_copy(update={"expression": text, "evidence": _evidence([*proof, *silent])})
            for text, proof in spoken.items()
        ]
    return tuple(sorted(result, key=edge_order))


def _united_memberships(memberships: Iterable[Membership]) -> tuple[Membership, ...]:
    groups: dict[object, list[Evidence]] = defaultdict(list)
    for item in memberships:
        groups[item.source, item.target, item.subtype] += item.evidence
    made = [
        Membership(source=key[0], target=key[1], subtype=key[2], evidence=_evidence(proof))  # type: ignore[index]
        for key, proof in groups.items()
    ]
    return tuple(sorted(made, key=membership_order))
