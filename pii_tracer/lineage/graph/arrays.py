"""The graph as arrays: datasets, columns, edges and memberships are numbers, texts stand once in pools.

Datasets are numbered in the order of (namespace, name), the columns of a dataset follow each other in the order of
their names, edges in the order of their target: all that goes into a column, or into a dataset, is one run. What an
array's name ends with says how it is read: `_start` has n+1 places, the run of number i is [start[i], start[i+1]).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from pii_tracer.lineage.graph.edges import EdgeType, Subtype
from pii_tracer.lineage.graph.string_pool import (
    U8,
    U32,
    U64,
    Pool,
)

TYPES = (EdgeType.DIRECT, EdgeType.INDIRECT)
SUBTYPES = (
    Subtype.AGGREGATION, Subtype.CONDITIONAL, Subtype.FILTER, Subtype.GROUP_BY, Subtype.IDENTITY, Subtype.JOIN,
    Subtype.SORT, Subtype.TRANSFORMATION, Subtype.WINDOW,
)  # fmt: skip
"""The numbers of types and subtypes in files: further ones go to the end, with a new format version."""

_INDIRECT = 2 * len(SUBTYPES)
KINDS = 2 * _INDIRECT

IS_NODE, HAS_SCHEMA = 1, 2
"""Bits of `dataset_role`: takes part in lineage (and is not only the target of a name); its columns are declared."""


def kind_code(type_: EdgeType, subtype: Subtype, masking: bool) -> int:
    """Type, subtype and masking of an edge as one number below `KINDS`; the direct ones come first."""
    return TYPES.index(type_) * _INDIRECT + SUBTYPES.index(subtype) * 2 + masking


def kind_of(code: int) -> tuple[EdgeType, Subtype, bool]:
    """What `kind_code` was made from."""
    return TYPES[code // _INDIRECT], SUBTYPES[code % _INDIRECT // 2], bool(code % 2)


def is_direct(codes: U8) -> npt.NDArray[np.bool_]:
    """True where a code is that of a DIRECT edge."""
    return codes < _INDIRECT


@dataclass(frozen=True, eq=False)
class Columnar:
    """All arrays of a graph. What is not itself harvested but follows from it is said so.

    words: names and types of columns. expressions: number 0 means that there is none, number n is text n-1.
    evidence, jobs, gaps: JSON texts; jobs stand by their output. column_name, schema_type: numbers of words.
    schema_column: columns as declared, in that order. edge_direct: where a column's DIRECT edges end and the INDIRECT
    ones begin. forward_*: the edges by their source, DIRECT ones first (follows from the edges).
    link_source, feed_target: datasets that feed a dataset, and that it feeds (follows from edges, memberships and
    jobs). order: datasets of lineage, upstream before downstream (follows from the links).
    """

    namespaces: Pool
    dataset_names: Pool
    words: Pool
    expressions: Pool
    evidence: Pool
    jobs: Pool
    gaps: Pool
    aliases: Pool
    alias_dataset: U32
    dataset_namespace: U32
    dataset_role: U8
    column_start: U32
    column_name: U32
    schema_start: U32
    schema_column: U32
    schema_type: U32
    edge_start: U32
    edge_direct: U32
    edge_source: U32
    edge_kind: U8
    edge_expression: U32
    edge_evidence: U32
    member_start: U32
    member_source: U32
    member_subtype: U8
    member_evidence: U32
    job_start: U32
    forward_start: U32
    forward_direct: U32
    forward_edge: U32
    forward_target: U32
    link_start: U32
    link_source: U32
    feed_start: U32
    feed_target: U32
    order: U32

    def arrays(self) -> Iterator[tuple[str, npt.NDArray[np.generic]]]:
        """Every array with its name, pools as two, always in the same order."""
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, Pool):
                yield f"{one.name}.starts", value.starts
                yield f"{one.name}.data", value.data
            else:
                yield one.name, value


def layout() -> dict[str, np.dtype[np.generic]]:
    """Name and type of every array, in the order of `Columnar.arrays`; little-endian."""
    result: dict[str, np.dtype[np.generic]] = {}
    for one in fields(Columnar):
        if one.type == "Pool":
            result[f"{one.name}.starts"] = np.dtype("<u8")
            result[f"{one.name}.data"] = np.dtype("u1")
        else:
            result[one.name] = np.dtype("u1" if one.type == "U8" else "<u4")
    return result


def columnar_of(arrays: dict[str, npt.NDArray[np.generic]]) -> Columnar:
    """The arrays by the names of `layout`, put together; nothing is copied."""
    given = {
        one.name: Pool(arrays[f"{one.name}.starts"], arrays[f"{one.name}.data"])  # type: ignore[arg-type]
        if one.type == "Pool"
        else arrays[one.name]
        for one in fields(Columnar)
    }
    return Columnar(**given)  # type: ignore[arg-type]


def fault(made: Columnar) -> str | None:
    """The first reason why the arrays do not fit each other, or None. Every number must lead to something."""
    for one in fields(made):
        value = getattr(made, one.name)
        if isinstance(value, Pool):
            wrong = value.fault()
            if wrong:
                return f"{one.name}: {wrong}"
    datasets, columns, edges = len(made.dataset_names), len(made.column_name), len(made.edge_source)
    runs = (
        ("column_start", datasets, columns), ("schema_start", datasets, len(made.schema_column)),
        ("edge_start", columns, edges), ("member_start", datasets, len(made.member_source)),
        ("job_start", datasets, len(made.jobs)), ("forward_start", columns, edges),
        ("link_start", datasets, len(made.link_source)), ("feed_start", datasets, len(made.feed_target)),
    )  # fmt: skip
    for name, number, end in runs:
        start: U32 = getattr(made, name)
        if len(start) != number + 1 or start[0] != 0 or start[-1] != end or (start[1:] < start[:-1]).any():
            return f"{name} does not cut its list"
    return _lost_numbers(made, datasets, columns, edges)


def _lost_numbers(made: Columnar, datasets: int, columns: int, edges: int) -> str | None:
    members = len(made.member_source)
    numbers = (
        ("alias_dataset", len(made.aliases), datasets), ("dataset_namespace", datasets, len(made.namespaces)),
        ("dataset_role", datasets, 4), ("column_name", columns, len(made.words)),
        ("schema_column", len(made.schema_column), columns), ("schema_type", len(made.schema_column), len(made.words)),
        ("edge_direct", columns, edges + 1), ("edge_source", edges, columns), ("edge_kind", edges, KINDS),
        ("edge_expression", edges, len(made.expressions) + 1), ("edge_evidence", edges, len(made.evidence)),
        ("member_source", members, columns), ("member_subtype", members, len(SUBTYPES)),
        ("member_evidence", members, len(made.evidence)), ("forward_direct", columns, edges + 1),
        ("forward_edge", edges, edges), ("forward_target", edges, columns),
        ("link_source", len(made.link_source), datasets), ("feed_target", len(made.feed_target), datasets),
        ("order", int((made.dataset_role & IS_NODE).astype(bool).sum()), datasets),
    )  # fmt: skip
    for name, length, below in numbers:
        array = getattr(made, name)
        if len(array) != length or (length and int(array.max()) >= below):
            return f"{name} leads nowhere"
    inside = (made.edge_direct >= made.edge_start[:-1]) & (made.edge_direct <= made.edge_start[1:])
    inside &= (made.forward_direct >= made.forward_start[:-1]) & (made.forward_direct <= made.forward_start[1:])
    return _false_indexes(made) if inside.all() else "the ends of the direct edges lie outside"


def _false_indexes(made: Columnar) -> str | None:
    """The first index that says another thing than the list it is made from."""
    direct, places = is_direct(made.edge_kind), np.arange(len(made.edge_source), dtype=np.uint32)
    targets, by_source = numbers_of(made.edge_start), numbers_of(made.forward_start)
    listed = np.zeros(len(places), np.bool_)
    listed[made.forward_edge] = True
    said = {
        "edge_direct": np.array_equal(direct, places < made.edge_direct[targets]),
        "forward_start": np.array_equal(made.edge_source[made.forward_edge], by_source),
        "forward_edge": bool(listed.all()),
        "forward_target": np.array_equal(targets[made.forward_edge], made.forward_target),
        "forward_direct": np.array_equal(direct[made.forward_edge], places < made.forward_direct[by_source]),
        "order": np.array_equal(np.sort(made.order), np.flatnonzero(made.dataset_role & IS_NODE)),
        "feed_target": np.array_equal(
            np.sort(_pairs(made.link_source, numbers_of(made.link_start))),
            np.sort(_pairs(numbers_of(made.feed_start), made.feed_target)),
        ),
    }
    return next(
        (f"{name} is another one than the list it follows from" for name, right in said.items() if not right), None
    )


def numbers_of(start: U32) -> U32:
    """For every place of a list the number whose run it is in."""
    return np.repeat(np.arange(len(start) - 1, dtype=np.uint32), np.diff(start))


def _pairs(first: U32, second: U32) -> U64:
    pairs: U64 = first.astype(np.uint64) << np.uint64(32) | second
    return pairs
