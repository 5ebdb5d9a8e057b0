"""Facts to arrays. Equal facts give equal arrays, whatever their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np

from pii_tracer.lineage.graph.arrays import (
    HAS_SCHEMA,
    IS_NODE,
    SUBTYPES,
    Columnar,
    is_direct,
    kind_code,
)
from pii_tracer.lineage.graph.canonical_facts import (
    Facts,
    evidence_text,
    job_order,
    text_of,
)
from pii_tracer.lineage.graph.string_pool import U8, U32, Pool
from pii_tracer.model.datasets import ColumnId, DatasetId


@dataclass(frozen=True, eq=False)
class Parts:
    """A graph in numbers, its lists in any order.

    datasets: (namespace, name), sorted. columns: (dataset, word) by number, sorted. words, expressions, evidence:
    sorted texts. schema: (dataset, column, word of its type) in declared order. edges, members: one array per field,
    as `Columnar` has them. jobs: (output, inputs, text), by output, latest last. gaps: texts. aliases: sorted.
    """

    datasets: Sequence[tuple[str, str]]
    roles: Sequence[int]
    columns: tuple[U32, U32]
    words: Sequence[str]
    expressions: Sequence[str]
    evidence: Sequence[str]
    schema: tuple[U32, U32, U32]
    edges: tuple[U32, U32, U8, U32, U32]
    members: tuple[U32, U32, U8, U32]
    jobs: Sequence[tuple[int, Sequence[int], str]]
    gaps: Sequence[str]
    aliases: Sequence[tuple[str, int]]


def encode(facts: Facts) -> Columnar:
    """The arrays of harvested facts."""
    return assemble(_parts(facts))


def assemble(parts: Parts) -> Columnar:
    """Sort the lists and make the indexes that follow from them."""
    namespaces = sorted({namespace for namespace, _ in parts.datasets})
    place = {namespace: number for number, namespace in enumerate(namespaces)}
    number, columns = len(parts.datasets), len(parts.columns[0])
    source, target, kind, expression, proof = parts.edges
    by_target = np.lexsort((proof, expression, kind, source, ~is_direct(kind), target))
    source, target, kind = source[by_target], target[by_target], kind[by_target]
    forward = np.lexsort((np.arange(len(source)), ~is_direct(kind), source))
    into, out_of, subtype, said = parts.members
    by_dataset = np.lexsort((said, subtype, out_of, into))
    owners, direct = parts.columns[0], is_direct(kind)
    pairs = [(owners[source], owners[target]), (owners[out_of], into)]
    pairs += [(_u32(inputs), np.full(len(inputs), output, np.uint32)) for output, inputs, _ in parts.jobs]
    link_source, link_target = _links(pairs, number)
    nodes = [dataset for dataset, role in enumerate(parts.roles) if role & IS_NODE]
    back = np.lexsort((link_target, link_source))
    return Columnar(
        namespaces=Pool.of(namespaces),
        dataset_names=Pool.of(name for _, name in parts.datasets),
        words=Pool.of(parts.words),
        expressions=Pool.of(parts.expressions),
        evidence=Pool.of(parts.evidence),
        jobs=Pool.of(text for _, _, text in parts.jobs),
        gaps=Pool.of(parts.gaps),
        aliases=Pool.of(alias for alias, _ in parts.aliases),
        alias_dataset=_u32(dataset for _, dataset in parts.aliases),
        dataset_namespace=_u32(place[namespace] for namespace, _ in parts.datasets),
        dataset_role=np.array(parts.roles, np.uint8),
        column_start=_starts(owners, number),
        column_name=parts.columns[1],
        schema_start=_starts(parts.schema[0], number),
        schema_column=parts.schema[1],
        schema_type=parts.schema[2],
        edge_start=(edge_start := _starts(target, columns)),
        edge_direct=edge_start[:-1] + _counts(target[direct], columns),
        edge_source=source,
        edge_kind=kind,
        edge_expression=expression[by_target],
        edge_evidence=proof[by_target],
        member_start=_starts(into, number),
        member_source=out_of[by_dataset],
        member_subtype=subtype[by_dataset],
        member_evidence=said[by_dataset],
        job_start=_starts(_u32(output for output, _, _ in parts.jobs), number),
        forward_start=(forward_start := _starts(source, columns)),
        forward_direct=forward_start[:-1] + _counts(source[direct], columns),
        forward_edge=forward.astype(np.uint32),
        forward_target=target[forward],
        link_start=_starts(link_target, number),
        link_source=link_source,
        feed_start=_starts(link_source, number),
        feed_target=link_target[back],
        order=_topological(nodes, link_source, link_target),
    )


def _u32(numbers: Iterable[int]) -> U32:
    return np.fromiter(numbers, np.uint32)


def _counts(members: U32, size: int) -> U32:
    return np.bincount(members, minlength=size).astype(np.uint32)


def _starts(members: U32, size: int) -> U32:
    """Where the run of each number starts, once the list is sorted by it."""
    starts = np.zeros(size + 1, np.uint32)
    np.cumsum(_counts(members, size), out=starts[1:])
    return starts


def _links(pairs: Sequence[tuple[U32, U32]], size: int) -> tuple[U32, U32]:
    """Pairs of different datasets, each once, sorted by the target."""
    source = np.concatenate([a for a, _ in pairs]).astype(np.uint64)
    target = np.concatenate([b for _, b in pairs]).astype(np.uint64)
    keys = np.unique((target * np.uint64(size) + source)[source != target])
    return (keys % np.uint64(max(size, 1))).astype(np.uint32), (keys // np.uint64(max(size, 1))).astype(np.uint32)


def _topological(nodes: Sequence[int], sources: U32, targets: U32) -> U32:
    """Upstream before downstream; members of a cycle stand together, sorted by name."""
    graph = nx.DiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(zip(sources.tolist(), targets.tolist(), strict=True))
    parts = nx.condensation(graph)
    members = {part: sorted(data["members"]) for part, data in parts.nodes(data=True)}
    order = nx.lexicographical_topological_sort(parts, key=lambda part: members[part][0])
    return _u32(dataset for part in order for dataset in members[part])


class _Numbers(dict[str, int]):
    """Sorted texts with their numbers."""

    def __init__(self, texts: Iterable[str]) -> None:
        super().__init__((text, number) for number, text in enumerate(sorted(set(texts))))


def _parts(facts: Facts) -> Parts:
    # tuples of texts as keys: a model's hash is computed anew each time it is asked for
    proofs = {id(fact.evidence): fact.evidence for some in (facts.edges, facts.memberships) for fact in some}
    said = {key: evidence_text(proof) for key, proof in proofs.items()}
    evidence = _Numbers(said.values())
    expressions = _Numbers(e.expression for e in facts.edges if e.expression is not None)
    sources, targets = [_column(e.source) for e in facts.edges], [_column(e.target) for e in facts.edges]
    deciding = [_column(m.source) for m in facts.memberships]
    schemas = sorted(((_dataset(dataset), given) for dataset, given in facts.schemas), key=lambda item: item[0])
    columns = _numbered({*sources, *targets, *deciding, *((*d, c.name) for d, given in schemas for c in given)})
    roles = _roles(facts, columns)
    datasets = {dataset: number for number, dataset in enumerate(roles)}
    words = _Numbers([name for _, _, name in columns] + [c.type for _, given in schemas for c in given])
    declared = [(datasets[d], columns[(d[0], d[1], c.name)], words[c.type]) for d, given in schemas for c in given]
    return Parts(
        datasets=list(roles),
        roles=list(roles.values()),
        columns=(_u32(datasets[c[:2]] for c in columns), _u32(words[c[2]] for c in columns)),
        words=list(words),
        expressions=list(expressions),
        evidence=list(evidence),
        schema=(_u32(d for d, _, _ in declared), _u32(c for _, c, _ in declared), _u32(t for _, _, t in declared)),
        edges=(
            _u32(columns[c] for c in sources),
            _u32(columns[c] for c in targets),
            np.fromiter((kind_code(e.type, e.subtype, e.masking) for e in facts.edges), np.uint8),
            _u32(0 if e.expression is None else expressions[e.expression] + 1 for e in facts.edges),
            _u32(evidence[said[id(e.evidence)]] for e in facts.edges),
        ),
        members=(
            _u32(datasets[_dataset(m.target)] for m in facts.memberships),
            _u32(columns[c] for c in deciding),
            np.fromiter((SUBTYPES.index(m.subtype) for m in facts.memberships), np.uint8),
            _u32(evidence[said[id(m.evidence)]] for m in facts.memberships),
        ),
        jobs=[
            (datasets[_dataset(j.output)], [datasets[_dataset(i)] for i in j.inputs], text_of(j))
            for j in sorted(facts.jobs, key=job_order)
        ],
        gaps=sorted(map(text_of, facts.gaps)),
        aliases=sorted((alias, datasets[_dataset(dataset)]) for alias, dataset in facts.names),
    )


_DatasetKey = tuple[str, str]
_ColumnKey = tuple[str, str, str]


def _dataset(dataset: DatasetId) -> _DatasetKey:
    return dataset.namespace, dataset.name


def _column(column: ColumnId) -> _ColumnKey:
    return column.dataset.namespace, column.dataset.name, column.column


def _numbered(columns: Iterable[_ColumnKey]) -> dict[_ColumnKey, int]:
    return {column: number for number, column in enumerate(sorted(columns))}


def _roles(facts: Facts, columns: Iterable[_ColumnKey]) -> dict[_DatasetKey, int]:
    """Every dataset, sorted, with its role."""
    roles: dict[_DatasetKey, int] = {_dataset(dataset): 0 for _, dataset in facts.names}
    roles |= dict.fromkeys(((namespace, name) for namespace, name, _ in columns), IS_NODE)
    roles |= dict.fromkeys((_dataset(m.target) for m in facts.memberships), IS_NODE)
    for job in facts.jobs:
        roles |= dict.fromkeys(map(_dataset, (job.output, *job.inputs)), IS_NODE)
    roles |= {_dataset(dataset): IS_NODE | HAS_SCHEMA for dataset, _ in facts.schemas}
    return dict(sorted(roles.items()))
