"""Facts as harvested, brought into one canonical form: no repetition, no dependence on the order of reading."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from pydantic import Field

from pii_tracer.lineage.edges import Edge, Evidence, JobRef, LineageGap, Membership
from pii_tracer.model import Column, DatasetId, Frozen


class Facts(Frozen):
    """Everything a graph is made from; lists are sorted and without repetition (make it with `collect`)."""

    edges: tuple[Edge, ...] = ()
    memberships: tuple[Membership, ...] = ()
    jobs: tuple[JobRef, ...] = ()
    gaps: tuple[LineageGap, ...] = ()
    schemas: tuple[tuple[DatasetId, tuple[Column, ...]], ...] = ()
    names: tuple[tuple[str, DatasetId], ...] = Field(default=())

    @property
    def columns(self) -> Mapping[DatasetId, tuple[Column, ...]]:
        return dict(self.schemas)

    @property
    def aliases(self) -> Mapping[str, DatasetId]:
        return dict(self.names)

    def canonical(self) -> str:
        """One JSON text for equal facts."""
        return self.model_dump_json()


def collect(
    edges: Iterable[Edge],
    memberships: Iterable[Membership],
    jobs: Iterable[JobRef],
    gaps: Iterable[LineageGap],
    columns: Mapping[DatasetId, tuple[Column, ...]],
    aliases: Mapping[str, DatasetId],
) -> Facts:
    """Unite equal facts (their evidence is kept side by side) and sort everything."""
    return Facts(
        edges=_united_edges(edges),
        memberships=_united_memberships(memberships),
        jobs=tuple(sorted(set(jobs), key=lambda j: j.model_dump_json())),
        gaps=tuple(sorted(set(gaps), key=lambda g: g.model_dump_json())),
        schemas=tuple(sorted(columns.items(), key=lambda item: item[0])),
        names=tuple(sorted(aliases.items())),
    )


def _evidence(items: Iterable[Evidence]) -> tuple[Evidence, ...]:
    return tuple(sorted(set(items), key=lambda e: e.model_dump_json()))


def _united_edges(edges: Iterable[Edge]) -> tuple[Edge, ...]:
    """Equal edges become one with both evidences; an edge without an expression joins one that has it."""
    groups: dict[object, list[Edge]] = defaultdict(list)
    for edge in edges:
        groups[edge.source, edge.target, edge.type, edge.subtype, edge.masking].append(edge)
    result = []
    for same in groups.values():
        spoken: dict[str | None, list[Evidence]] = defaultdict(list)
        for edge in same:
            spoken[edge.expression] += edge.evidence
        silent = spoken.pop(None, []) if len(spoken) > 1 else []
        result += [
            same[0].model_copy(update={"expression": text, "evidence": _evidence([*proof, *silent])})
            for text, proof in spoken.items()
        ]
    return tuple(sorted(result, key=lambda e: e.model_dump_json()))


def _united_memberships(memberships: Iterable[Membership]) -> tuple[Membership, ...]:
    groups: dict[object, list[Evidence]] = defaultdict(list)
    for item in memberships:
        groups[item.source, item.target, item.subtype] += item.evidence
    made = [
        Membership(source=key[0], target=key[1], subtype=key[2], evidence=_evidence(proof))  # type: ignore[index]
        for key, proof in groups.items()
    ]
    return tuple(sorted(made, key=lambda m: m.model_dump_json()))
