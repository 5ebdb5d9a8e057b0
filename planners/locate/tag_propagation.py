"""PII categories along the lineage: what a column holds, how directly, and the path that is the witness for it.

A tag is put on a column (a subject's key and identifiers, or what OpenLineage's tags say) and goes along value edges
only. It is derived from
the graph each time and stored nowhere: taken away at the source, it is gone downstream. An unchanged or readable value
stays identifying; a masked one (OpenLineage's `masking`: hashes, masks, tokens) is pseudonymous, which under GDPR
Recital 26 is personal data still; a counted one is an aggregate. Only an anonymiser that the estate declares ends it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pii_tracer.config.subjects import Subject, SubjectTable
from pii_tracer.lineage.graph.edges import Edge
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.lineage.sources.dataset_descriptions import Tag as Tagged
from pii_tracer.model.column_paths import Spots, spot_of
from pii_tracer.model.datasets import Access, ColumnId, DatasetId
from pii_tracer.model.key_location import Standing
from planners.locate.edge_effects import Anonymisers, along, value_edges
from planners.locate.sql.column_expressions import Fate

RECORD_KEY = "record_key"
"""Category of a subject's record keys: they identify a row of the person."""


@dataclass(frozen=True)
class Tag:
    """A category, and how directly the column holds it."""

    category: str
    standing: Standing

    def __str__(self) -> str:
        return self.category if self.standing is Standing.IDENTIFYING else f"{self.category} ({self.standing})"


@dataclass(frozen=True)
class Witness:
    """Why a column has a tag: the edges from the tagged source column, in order; none at the source itself.

    Of several paths the shortest is taken, and of these the one whose edges come first by name.
    """

    tag: Tag
    origin: ColumnId
    path: tuple[Edge, ...]


Witnesses = Mapping[str, tuple[Witness, ...]]
"""By column of one dataset; the most direct standing of every category first."""


@dataclass(frozen=True)
class _Stand:
    """Where a tag has come: a column, the way into it, and what happened so far. hidden: the way is not known."""

    dataset: DatasetId
    column: str
    origin: ColumnId
    tag: Tag
    access: tuple[Access, ...]
    hidden: bool


def categories_of(subject: Subject) -> dict[str, str]:
    """The category of each column by which a subject is known, by its origin."""
    given = dict.fromkeys(subject.row_keys, RECORD_KEY)
    given |= {i.column: i.category for i in subject.identifiers}
    given |= {t.origin(i.column): i.category for t in subject.tables for i in t.identifiers}
    given |= dict.fromkeys(subject.key_names, subject.key_category)
    return given


def source_tags(subject: Subject, source: DatasetId) -> dict[ColumnId, str]:
    """The tags that a subject puts on its source."""
    known = categories_of(subject)
    return {ColumnId(dataset=source, column=name): known[name] for name in subject.named}


def further_tags(subject: Subject, further: Mapping[DatasetId, SubjectTable]) -> dict[ColumnId, str]:
    """The tags that a subject puts on its further tables."""
    found: dict[ColumnId, str] = {}
    for dataset, table in further.items():
        given = dict.fromkeys(table.record_keys, RECORD_KEY) | {i.column: i.category for i in table.identifiers}
        of_key = next((i.category for i in subject.identifiers if i.column == table.of), subject.key_category)
        given |= dict.fromkeys(table.key_names, of_key)
        found |= {ColumnId(dataset=dataset, column=name): category for name, category in given.items()}
    return found


PII_KEY = "pii"
"""Key of an OpenLineage tag that names a category: `{"key": "pii", "value": "email", "field": "contact"}`."""


def column_tags(tags: Iterable[Tagged]) -> dict[ColumnId, str]:
    """The categories that tags of columns tell (key `pii`; the value is the category, or `true` for an unnamed one)."""
    found: dict[ColumnId, str] = {}
    for tag in sorted(tags, key=repr):
        value = tag.value.strip().lower()
        if tag.field is not None and tag.key.lower() == PII_KEY and value not in ("false", "0", "no"):
            category = PII_KEY if value in ("", "true", "1", "yes") else value
            found.setdefault(ColumnId(dataset=tag.dataset, column=tag.field), category)
    return found


def spread(
    graph: LineageGraph,
    tags: Mapping[ColumnId, str],
    anonymisers: Anonymisers,
    known: Mapping[DatasetId, tuple[Edge, ...]] | None = None,
    spots: Spots | None = None,
) -> dict[DatasetId, dict[str, tuple[Witness, ...]]]:
    """Every column that one of the tags reaches, with its witnesses, by dataset.

    known: value edges into datasets, where somebody has read them already. spots: where tags stand inside structs.
    """
    outgoing = _outgoing(graph, {tagged.dataset for tagged in tags}, known or {})
    found: dict[tuple[DatasetId, str, Tag], Witness] = {}
    seen: set[_Stand] = set()
    level: list[_Step] = [
        ((str(c),), _Stand(c.dataset, spot.column, c, Tag(category, Standing.IDENTIFYING), spot.access, False), ())
        for c, category in sorted(tags.items())
        for spot in [spot_of(spots or {}, c.dataset, c.column)]
    ]
    while level:
        following: list[_Step] = []
        for names, stand, path in level:
            if stand in seen:
                continue
            seen.add(stand)
            found.setdefault((stand.dataset, stand.column, stand.tag), Witness(stand.tag, stand.origin, path))
            for edge in outgoing.get((stand.dataset, stand.column.lower()), ()):
                name = f"{edge.target} {edge.subtype} {edge.expression}"
                following += [((*names, name), to, (*path, edge)) for to in _steps(stand, edge, anonymisers)]
        level = sorted(following, key=lambda step: (step[0], str(step[1].tag), str(step[1].access)))
    return _by_dataset(found)


_Step = tuple[tuple[str, ...], _Stand, tuple[Edge, ...]]
"""Where a path has come: the names of its edges, to sort by; where it stands; its edges."""


def _outgoing(
    graph: LineageGraph, sources: set[DatasetId], known: Mapping[DatasetId, tuple[Edge, ...]]
) -> Mapping[tuple[DatasetId, str], list[Edge]]:
    outgoing: dict[tuple[DatasetId, str], list[Edge]] = defaultdict(list)
    for dataset in {d for source in sources for d in graph.downstream(source)}:
        for edge in known[dataset] if dataset in known else value_edges(graph.edges_into(dataset)):
            outgoing[edge.source.dataset, edge.source.column.lower()].append(edge)
    return outgoing


def _steps(stand: _Stand, edge: Edge, anonymisers: Anonymisers) -> Iterator[_Stand]:
    if edge.source.dataset == edge.target.dataset and edge.source.column.lower() == edge.target.column.lower():
        return  # an update in place: the column has the tag already
    for place in along(edge, () if stand.hidden else stand.access):
        if anonymisers.end(edge, place):
            continue
        standing = stand.tag.standing
        if place.fate is Fate.COUNTED:
            standing = Standing.AGGREGATE
        elif edge.masking and standing is Standing.IDENTIFYING:
            standing = Standing.PSEUDONYMOUS
        hidden = stand.hidden or place.fate is not Fate.FOUND
        yield _Stand(
            edge.target.dataset,
            edge.target.column,
            stand.origin,
            Tag(stand.tag.category, standing),
            () if hidden else place.access,
            hidden,
        )


def _by_dataset(
    found: Mapping[tuple[DatasetId, str, Tag], Witness],
) -> dict[DatasetId, dict[str, tuple[Witness, ...]]]:
    result: dict[DatasetId, dict[str, tuple[Witness, ...]]] = defaultdict(dict)
    standings = list(Standing)
    for dataset, column, tag in sorted(
        found, key=lambda k: (k[0], k[1], standings.index(k[2].standing), k[2].category)
    ):
        result[dataset][column] = (*result[dataset].get(column, ()), found[dataset, column, tag])
    return dict(result)
