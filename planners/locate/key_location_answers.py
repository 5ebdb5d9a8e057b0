"""Where is the key? From carriages to the answer that people and programs read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pii_tracer.config.subjects import Subject
from pii_tracer.lineage.graph.edges import Edge
from pii_tracer.lineage.sql.text.literal_redaction import hidden
from pii_tracer.model.datasets import (
    Access,
    Carries,
    DatasetId,
    JsonAccess,
)
from pii_tracer.model.key_location import (
    GroupSizes,
    Held,
    HeldColumn,
    Hop,
    SubjectWhereabouts,
    Whereabouts,
)
from planners.locate.composite_key_lineage import ways_of
from planners.locate.key_location import Carriage
from planners.locate.sql.column_expressions import shown
from planners.locate.sql.group_sizes import Groups
from planners.locate.tag_propagation import Witness

Named = Callable[[DatasetId], str]
"""The name people know a dataset by."""


def whereabouts(
    subject: Subject,
    carriages: Mapping[DatasetId, Carriage],
    named: Named,
    groups: Mapping[DatasetId, Groups],
) -> SubjectWhereabouts:
    """The view over `follow`'s result. groups: sizes of those aggregates that could be measured."""
    return SubjectWhereabouts(
        subject=subject.name,
        source=subject.source,
        key=subject.key,
        datasets=tuple(_one(subject, c, named, groups.get(c.dataset)) for c in carriages.values()),
    )


def _one(subject: Subject, carriage: Carriage, named: Named, sizes: Groups | None) -> Whereabouts:
    return Whereabouts(
        table=named(carriage.dataset),
        dataset=carriage.dataset,
        carries=carriage.carries,
        reason=carriage.reason,
        closes=carriage.closes,
        columns=tuple(_column(name, carriage, named) for name in sorted(carriage.tags, key=_used_first(carriage))),
        mixed=carriage.mixed,
        lineage=tuple(named(hop) for hop in carriage.hops),
        bridge=subject.source if carriage.carries is Carries.BRIDGE else None,
        groups=GroupSizes(**vars(sizes)) if sizes is not None else None,
    )


def _used_first(carriage: Carriage) -> Callable[[str], tuple[bool, str]]:
    used = {name for name, _ in carriage.ways}
    return lambda name: (name not in used, name)


def _column(name: str, carriage: Carriage, named: Named) -> HeldColumn:
    finds = tuple(
        f"{_label(access)}{trace.origin if trace.beside else shown(trace.expression, trace.origin)}"
        for term, trace in carriage.found_in
        for column, access in ways_of((term, trace))
        if column == name
    )
    return HeldColumn(
        name=name,
        finds=finds,
        holds=tuple(_held(witness, named) for witness in carriage.tags[name]),
        mixed=name in carriage.mixed,
    )


def _label(access: Sequence[Access]) -> str:
    """`.id: ` or `.$.user.id: `: the way into the column, if there is one."""
    way = "".join(".$." + ".".join(a.path) if isinstance(a, JsonAccess) else f".{a.name}" for a in access)
    return f"{way}: " if way else ""


def _held(witness: Witness, named: Named) -> Held:
    return Held(
        category=witness.tag.category,
        standing=witness.tag.standing,
        path=tuple(_hop(edge, named) for edge in witness.path),
    )


def _hop(edge: Edge, named: Named) -> Hop:
    kind = edge.subtype.value.lower() + (", masking" if edge.masking else "")
    return Hop(
        source=f"{named(edge.source.dataset)}.{edge.source.column}",
        target=f"{named(edge.target.dataset)}.{edge.target.column}",
        kind=kind,
        expression=edge.expression and hidden(edge.expression),
        evidence=tuple(dict.fromkeys(e.where for e in edge.evidence)),
    )
